//! The runner: drains what is waiting, decides all of it against one view, commits once, answers
//! all. While one batch is being made durable the next one is being decided.

mod batch;
mod queue;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use batch::{Decider, Ids};
use queue::{Gate, Ticket};
use tally_core::command::{Call, Command, Decided};
use tally_core::hash::fingerprint;
use tally_core::reply::Reply;
use tally_core::rows::{Changes, RowKind, TotalKey};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::Wants;
use tally_core::{Catalog, Refusal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::{Clock, Engine, Lanes, Mark, StoreError, Together};

/// Bounds of a runner.
#[derive(Clone, Copy, Debug)]
pub struct RunnerOptions {
    /// Commands that may wait, those inside batches counted singly. Past it: overloaded.
    pub queue_commands_max: usize,
    /// Commands decided and committed together.
    pub batch_commands_max: usize,
    /// Batches that may be on their way to the disk at once.
    pub batches_in_flight_max: usize,
    /// Where ids and waits begin, so that a run can be repeated; left out, at random.
    pub seed: Option<u64>,
}

impl Default for RunnerOptions {
    fn default() -> Self {
        Self { queue_commands_max: 65_536, batch_commands_max: 4_096, batches_in_flight_max: 64, seed: None }
    }
}

/// Why a call has no decision.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// Too much is waiting. Nothing was done; try again shortly.
    #[error("too many requests are waiting; try again shortly")]
    Overloaded,
    /// The store could not take it. Whether it took effect is known only by reading.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The runner is stopping. Nothing was done.
    #[error("the server is stopping")]
    Stopping,
}

impl Failure {
    /// The runner has ended in between, by a panic. Nobody can say any more what became of the call.
    fn unanswered() -> Self {
        Self::Store(StoreError::Unavailable("the runner ended before it could answer".into()))
    }
}

/// A batch that is durable.
pub struct Settled {
    /// Totals that it changed, each as it is after the batch.
    pub totals: Vec<(TotalKey, i64)>,
    /// Commands that it held.
    pub commands: usize,
    /// How often it was decided again because of a conflict.
    pub conflicts: u32,
    /// Decisions that broke an internal check.
    pub broken: usize,
    /// When rows that it wrote are due: of each kind and partition the soonest.
    pub due: Vec<MadeDue>,
    /// The time with which it was stamped.
    pub at: Timestamp,
}

/// A row that was written is due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MadeDue {
    /// Its kind.
    pub kind: RowKind,
    /// Its partition.
    pub partition: u8,
    /// When.
    pub at: Timestamp,
}

impl MadeDue {
    /// Of everything that was written, of each kind and partition the soonest.
    fn of(changes: &Changes) -> Vec<Self> {
        let due = changes.rows.iter().filter_map(|(key, change)| {
            let at = change.after.as_ref()?.due()?;
            Some(Self { kind: key.kind(), partition: key.partition(), at })
        });
        let mut due: Vec<Self> = due.collect();
        due.sort();
        due.dedup_by_key(|due| (due.kind, due.partition));
        due
    }
}

/// What is told of every batch, after it is durable and before it is answered.
pub type Observer = Arc<dyn Fn(&Settled) + Send + Sync>;

/// A handle on a runner; clones share it. When the last one goes, the runner answers what it
/// accepted and ends.
pub struct Runner {
    /// One for each lane.
    tickets: Vec<mpsc::UnboundedSender<Ticket>>,
    lanes: Lanes,
    gate: Arc<Gate>,
    ended: Arc<AtomicBool>,
}

impl Clone for Runner {
    fn clone(&self) -> Self {
        let (tickets, lanes, gate) = (self.tickets.clone(), self.lanes, self.gate.clone());
        Self { tickets, lanes, gate, ended: self.ended.clone() }
    }
}

/// Says that a part of the runner is no more, however it ended.
struct Ending(Arc<AtomicBool>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Decided, and waiting to be durable.
struct Pending {
    mark: Mark,
    answers: Vec<(Ticket, Decided)>,
    settled: Settled,
}

impl Runner {
    /// Prepares the engine and starts a runner on it.
    pub async fn start<E: Engine>(
        engine: Arc<E>,
        catalog: Arc<Catalog>,
        clock: impl Clock,
        options: RunnerOptions,
        observer: Observer,
    ) -> Result<(Self, JoinHandle<()>), StoreError> {
        let floor = engine.prepare().await?;
        warn_of_the_future(&*engine, &clock, floor).await;
        let (gate, clock) = (Arc::new(Gate::new(options.queue_commands_max)), Arc::new(clock));
        let (mut tickets, mut tasks, ended) = (Vec::new(), Vec::new(), Arc::new(AtomicBool::new(false)));
        let nature = engine.nature();
        let lanes = Lanes { count: nature.lanes.count.max(1), ..nature.lanes };
        let batch_max = options.batch_commands_max.min(nature.batch_commands_max);
        for lane in 0..lanes.count {
            let ids = Ids::new(options.seed.map(|seed| seed.wrapping_add(lane as u64)));
            // The queue is bounded by the gate, which counts commands; the channel counts calls.
            let (lane, waiting) = mpsc::unbounded_channel();
            tickets.push(lane);
            let (pending, settling) = mpsc::channel(options.batches_in_flight_max);
            let (catalog, clock) = (catalog.clone(), clock.clone());
            let decider = Decider::new(engine.clone(), catalog, clock, floor, batch_max, ids);
            let (draining, answering) = (Ending(ended.clone()), Ending(ended.clone()));
            let drain = drain(waiting, decider, pending, gate.clone());
            let answer = answer(engine.clone(), settling, observer.clone());
            tasks.push(tokio::spawn(async move { (draining, drain.await).1 }));
            tasks.push(tokio::spawn(async move { (answering, answer.await).1 }));
        }
        let done = tokio::spawn(async move {
            for task in tasks {
                // Each ends by itself when the last handle is gone; a panic is the caller's to see
                // through the calls that it drops.
                let _ = task.await;
            }
        });
        Ok((Self { tickets, lanes, gate, ended }, done))
    }

    /// Queues a call and waits for its answer: decided, durable.
    pub async fn apply(&self, call: Call) -> Result<Decided, Failure> {
        let weight = call.command.weight();
        if !self.gate.enter(weight) {
            return Err(Failure::Overloaded);
        }
        let lane = &self.tickets[lane_of(&call.command, self.lanes)];
        let (ticket, answer) = Ticket::new(call, weight);
        if lane.send(ticket).is_err() {
            self.gate.leave(weight);
            return Err(Failure::Stopping);
        }
        answer.await.unwrap_or_else(|_| Err(Failure::unanswered()))
    }

    /// Whether a lane has ended while this handle is held: by a panic. Calls in that lane are not answered any more.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Commands that are waiting.
    pub fn waiting(&self) -> usize {
        self.gate.inside()
    }
}

/// A clock that was far ahead when the newest row was made is seen for as long as it was ahead: that is said.
async fn warn_of_the_future<E: Engine>(engine: &E, clock: &impl Clock, newest: Stamp) {
    let mut now = Stamp::at(clock.now());
    if newest.time_at(now) < newest && engine.is_shared() {
        // The store's clock counts, if it can be asked.
        now = engine.load(&Wants::default()).await.ok().and_then(|loaded| loaded.now).unwrap_or(now);
    }
    if newest.time_at(now) < newest {
        tracing::warn!(
            newest = %newest.time(), now = %now.time(),
            "the newest row is from the future: a clock was wrong then, or is now. New rows are stamped right behind it until \
             the clock is there; limits and expiry go by the clock"
        );
    }
}

/// The commands of one subject, or about one object, share a lane.
fn lane_of(command: &Command, lanes: Lanes) -> usize {
    if lanes.count == 1 {
        return 0;
    }
    // The end of an id hardly reaches the upper half of its fingerprint, so it is mixed once more.
    let mixed = |parts: &[&[u8]]| fingerprint(parts).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let lane = command.home(lanes.by).map_or(0, |[name, key]| mixed(&[name.as_bytes(), key.as_bytes()]));
    lane as usize % lanes.count
}

async fn drain<E: Engine, C: Clock>(
    mut waiting: mpsc::UnboundedReceiver<Ticket>,
    mut decider: Decider<E, C>,
    pending: mpsc::Sender<Pending>,
    gate: Arc<Gate>,
) {
    let mut tickets = Vec::new();
    let mut held: Option<Ticket> = None;
    loop {
        if let Some(ticket) = held.take() {
            tickets.push(ticket);
        } else if waiting.recv_many(&mut tickets, 1).await == 0 {
            return;
        }
        let mut weight: usize = tickets.iter().map(|ticket| ticket.weight).sum();
        while let Ok(ticket) = waiting.try_recv() {
            if weight + ticket.weight > decider.batch_max() {
                held = Some(ticket);
                break;
            }
            weight += ticket.weight;
            tickets.push(ticket);
        }
        gate.leave(weight);
        if pending.is_closed() {
            // Nobody is left to answer, so nothing more may be committed.
            tickets.drain(..).chain(held).for_each(|ticket| ticket.answer(Err(Failure::Stopping)));
            return;
        }
        // A caller that has gone does not want it any more.
        tickets.retain(|ticket| !ticket.is_abandoned());
        decider.run(std::mem::take(&mut tickets), &pending).await;
        // Lets the tasks that this batch woke run before the next one is taken.
        tokio::task::yield_now().await;
    }
}

async fn answer<E: Engine>(engine: Arc<E>, mut settling: mpsc::Receiver<Pending>, observer: Observer) {
    while let Some(batch) = settling.recv().await {
        match engine.settle(batch.mark).await {
            Ok(()) => {
                observer(&batch.settled);
                for (ticket, decided) in batch.answers {
                    ticket.answer(Ok(decided));
                }
            }
            Err(error) => {
                tracing::error!(%error, commands = batch.settled.commands, "a batch could not be made durable");
                for (ticket, _) in batch.answers {
                    ticket.answer(Err(Failure::Store(error.clone())));
                }
            }
        }
    }
}

/// A refusal that is really a defect.
fn is_broken(decided: &Decided) -> bool {
    fn is_defect(refusal: &Refusal) -> bool {
        match refusal {
            Refusal::Broken(_) => true,
            Refusal::BatchRefused { cause, .. } => is_defect(cause),
            _ => false,
        }
    }
    if let Ok(Reply::Batch(replies)) = &decided.reply {
        return replies.iter().any(|reply| reply.as_ref().is_err_and(is_defect));
    }
    decided.reply.as_ref().is_err_and(is_defect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_core::command::{DeleteObject, Suspend, Unrelate};
    use tally_core::rows::Side;
    use tally_core::{Name, ObjectId, SubjectId};

    #[test]
    fn a_subjects_commands_share_a_lane_and_every_lane_is_used() {
        let (relation, object) = (Name::new("like").unwrap(), ObjectId::new("post:1").unwrap());
        let by = |by| Lanes { count: 3, by };
        let lanes: std::collections::BTreeSet<usize> = (0..100)
            .map(|n| {
                let subject = SubjectId::new(&format!("u{n}")).unwrap();
                let unlike = Command::from(Unrelate {
                    relation: relation.clone(),
                    object: object.clone(),
                    subject: subject.clone(),
                });
                let lane = lane_of(&unlike, by(Side::Subject));
                assert_eq!(lane_of(&Command::from(Suspend { subject }), by(Side::Subject)), lane);
                let about = lane_of(&unlike, by(Side::Object));
                assert_eq!(lane_of(&Command::from(DeleteObject { object: object.clone() }), by(Side::Object)), about);
                lane
            })
            .collect();
        assert_eq!(lanes, [0, 1, 2].into());
        let likes =
            (0..8).map(|n| Command::from(DeleteObject { object: ObjectId::new(&format!("post:{n}")).unwrap() }));
        let apart: std::collections::BTreeSet<usize> =
            likes.map(|like| lane_of(&like, Lanes { count: 128, by: Side::Object })).collect();
        assert!(apart.len() > 5, "ids that differ in their end alone share {} lanes", apart.len());
        assert_eq!(lane_of(&Command::from(DeleteObject { object }), by(Side::Subject)), 0);
    }
}
