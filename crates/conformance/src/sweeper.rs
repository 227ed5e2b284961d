//! Goes on with jobs wherever they were left: finds their edges, and sends one step after another.

use tally_core::Command;
use tally_core::command::Sweep;
use tally_core::rows::{EdgeKey, JobId, Key, ListKey, Row, Side, Work};
use tally_core::time::Stamp;
use tally_engine::{Engine, Failure, Place, Range};

use crate::running::Running;
use crate::stand::Stand;
use crate::{EngineFactory, walk};

/// How a sweep goes about it.
#[derive(Clone, Copy)]
pub(crate) struct Sweeper {
    /// Edges in a step.
    pub(crate) edges: usize,
    /// Steps before it stops, as if the process had ended there.
    pub(crate) steps: usize,
    /// How often each step is sent.
    pub(crate) times: usize,
}

impl Sweeper {
    /// To the end, without ado.
    pub(crate) const ALL: Self = Self { edges: 100, steps: usize::MAX, times: 1 };

    /// Goes on with every open job. Says whether all of them have ended.
    pub(crate) async fn run<F: EngineFactory>(
        mut self,
        stand: &Stand<F>,
        engine: &F::Engine,
        running: &Running,
    ) -> Result<bool, Failure> {
        let jobs = engine.scan(&Range::OPEN_JOBS, 1_000).await?;
        for (key, row) in jobs.items {
            let (Key::Job(id), Row::Job(job)) = (key, row) else { panic!("a range of jobs holds jobs") };
            for list in lists(&job.work) {
                stand.drain(engine).await;
                let mut after = None;
                loop {
                    // Edges newer than the job stay where they are, so each page begins behind the last.
                    let (page, more) = walk::page(engine, &list, after, self.edges).await;
                    after = page.last().map(|(key, edge)| Place::of(&list, key, edge));
                    let edges: Vec<EdgeKey> = page.into_iter().map(|(key, _)| key).collect();
                    if !edges.is_empty() && !self.step(running, (id, job.before), edges).await? {
                        return Ok(false);
                    }
                    if !more {
                        break;
                    }
                }
            }
            if !self.step(running, (id, job.before), Vec::new()).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// One step, unless they are used up.
    async fn step(
        &mut self,
        running: &Running,
        (job, before): (JobId, Stamp),
        edges: Vec<EdgeKey>,
    ) -> Result<bool, Failure> {
        if self.steps == 0 {
            return Ok(false);
        }
        self.steps -= 1;
        for _ in 0..self.times {
            let decided = running.apply(Command::from(Sweep { job, before, edges: edges.clone() })).await?;
            decided.reply.expect("a step of an open job is not refused");
        }
        Ok(true)
    }
}

/// The lists in which the edges of a job stand.
fn lists(work: &Work) -> Vec<ListKey> {
    let list = |side, id: &str, hidden| ListKey { side, id: id.to_owned(), relation: None, hidden };
    match work {
        Work::Forget { subject } => [false, true].map(|hidden| list(Side::Subject, subject.as_str(), hidden)).to_vec(),
        Work::Clear { object } => [false, true].map(|hidden| list(Side::Object, object.as_str(), hidden)).to_vec(),
        Work::Hide { subject } => vec![list(Side::Subject, subject.as_str(), false)],
        Work::Show { subject } => vec![list(Side::Subject, subject.as_str(), true)],
        Work::Copy { .. } | Work::Verify { .. } | Work::Verifying { .. } | Work::Ended { .. } => Vec::new(),
    }
}
