//! Long work in short steps. A step names the edges that it found; the rule looks at each again,
//! so a step that comes late or twice does no harm.

use crate::command::{JobReply, Reply};
use crate::decide::Context;
use crate::error::Refusal;
use crate::limits::SWEEP_EDGES_MAX;
use crate::rows::{Edge, EdgeKey, Job, JobId, Key, Row, TotalKey, Work};
use crate::rules::{forget, relation};
use crate::view::{Stop, View};

impl Work {
    /// Its name, as clients see it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Forget { .. } => "forget",
            Self::Clear { .. } => "clear",
            Self::Hide { .. } => "hide",
            Self::Show { .. } => "show",
            Self::Copy { .. } => "copy",
            Self::Verify { .. } | Self::Verifying { .. } => "verify",
        }
    }
}

/// Writes down a new job.
pub fn begin(work: Work, context: &Context<'_>, view: &mut View) -> Result<(JobId, Job), Stop> {
    let id = JobId(context.id);
    let key = Key::Job(id);
    if view.row_uncounted(&key)?.is_some() {
        return Err(Refusal::Broken("a fresh id is taken".into()).into());
    }
    let job = Job { work, before: context.stamp, edges: 0, created_at: context.now(), finished_at: None };
    view.set(key, Some(Row::Job(job.clone())))?;
    Ok((id, job))
}

/// Changes these edges, or ends the job when none are left.
pub fn sweep(id: JobId, edges: &[EdgeKey], context: &Context<'_>, view: &mut View) -> Result<Reply, Stop> {
    if edges.len() > SWEEP_EDGES_MAX {
        return Err(Refusal::TooLarge(format!("a step takes at most {SWEEP_EDGES_MAX} edges")).into());
    }
    want(id, edges, view)?;
    let Some(Row::Job(mut job)) = view.row_uncounted(&Key::Job(id))? else {
        return Err(Refusal::NotFound("there is no such job".into()).into());
    };
    if matches!(job.work, Work::Copy { .. } | Work::Verify { .. } | Work::Verifying { .. }) {
        return Err(Refusal::Conflict(format!("a {} has no edges to step over", job.work.name())).into());
    }
    if job.finished_at.is_some() {
        return Ok(Reply::Job(JobReply::new(id, &job)));
    }
    // A job to hide that was overtaken by a restore has nothing left to do; the other way round,
    // an edge of a subject that is suspended again stays hidden.
    let obsolete = is_obsolete(id, &job.work, view)?;
    if edges.is_empty() || obsolete {
        let more = match &job.work {
            Work::Forget { subject } => forget::counted(subject, context, view)?,
            _ => false,
        };
        job.finished_at = (!more).then(|| context.now());
    } else {
        let mut missed = false;
        for key in edges {
            let start = view.savepoint();
            match step(key, &job, context, view) {
                Ok(changed) => job.edges += u64::from(changed),
                // The totals of an edge's kind are known only now; one load brings them all.
                // What this one did before it missed must not be seen by the next.
                Err(Stop::Miss) => {
                    view.rollback(start);
                    missed = true;
                }
                Err(stop) => return Err(stop),
            }
        }
        if missed {
            return Err(Stop::Miss);
        }
    }
    view.set_uncounted(Key::Job(id), Some(Row::Job(job.clone())))?;
    Ok(Reply::Job(JobReply::new(id, &job)))
}

fn want(id: JobId, edges: &[EdgeKey], view: &mut View) -> Result<(), Stop> {
    let mut rows = vec![Key::Job(id)];
    rows.extend(edges.iter().cloned().map(Key::Edge));
    rows.extend(edges.iter().map(|edge| Key::Subject(edge.subject.clone())));
    let totals: Vec<TotalKey> = edges
        .iter()
        .flat_map(|key| {
            let edge = Edge { created: Default::default(), kind: None, meta: None, hidden: false };
            key.totals(&edge).collect::<Vec<_>>()
        })
        .collect();
    view.want(&rows, &totals)
}

fn is_obsolete(id: JobId, work: &Work, view: &mut View) -> Result<bool, Stop> {
    let subject = match work {
        Work::Forget { .. } | Work::Clear { .. } | Work::Copy { .. } | Work::Verify { .. } | Work::Verifying { .. } => {
            return Ok(false);
        }
        Work::Hide { subject } | Work::Show { subject } => subject,
    };
    let row = view.row_uncounted(&Key::Subject(subject.clone()))?;
    Ok(match (work, row) {
        (Work::Hide { .. }, Some(Row::Subject(subject))) => subject.job != id,
        (Work::Hide { .. }, _) => true,
        (_, row) => row.is_some(),
    })
}

/// One edge of a job; says whether it changed.
fn step(key: &EdgeKey, job: &Job, context: &Context<'_>, view: &mut View) -> Result<bool, Stop> {
    let Some(edge) = view.edge(key)? else { return Ok(false) };
    if edge.created >= job.before && !is_older_than_its_stamp(key, job, context, view)? {
        return Ok(false);
    }
    match &job.work {
        Work::Forget { subject } if *subject == key.subject => relation::remove(key, &edge, view)?,
        Work::Clear { object } if *object == key.object => relation::remove(key, &edge, view)?,
        Work::Hide { subject } if *subject == key.subject && !edge.hidden => {
            relation::set_hidden(key, &edge, true, view)?;
        }
        Work::Show { subject } if *subject == key.subject && edge.hidden => {
            relation::set_hidden(key, &edge, false, view)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Where nothing can be made since the job began, whatever is there was there before. Another server
/// may have stamped it later than the job, and committed it first.
fn is_older_than_its_stamp(key: &EdgeKey, job: &Job, context: &Context<'_>, view: &mut View) -> Result<bool, Stop> {
    match &job.work {
        Work::Hide { .. } | Work::Show { .. } => Ok(true),
        Work::Clear { object } => {
            let required = context.catalog.relation(&key.relation).is_ok_and(|relation| relation.requires_object);
            Ok(required && view.row_uncounted(&Key::Object(object.clone()))?.is_none())
        }
        Work::Forget { .. } | Work::Copy { .. } | Work::Verify { .. } | Work::Verifying { .. } => Ok(false),
    }
}
