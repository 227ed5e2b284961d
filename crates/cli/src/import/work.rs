//! The import itself: a page of keys, their members, their edges, their counts; and again.
//!
//! Redis may show a key or a member twice when its tables shrink meanwhile. The edge is there once all the same.

use tally::core::{ObjectId, SubjectId};

use super::edges::{BATCH_EDGES, Edges, RATE_LIMITED};
use super::finding::{Disagreement, Finding, Refused, Skipped, Subtotal};
use super::plan::{Plan, shown};
use super::rehearse::Rehearsed;
use super::source::{Counter, Counts, Kind, Look, Page, Source};
use super::state::{Checkpoint, Large, Pass, State};
use crate::failure::Failure;

/// Keys whose members are in memory at once.
const KEYS_AT_ONCE: usize = 200;
/// Pages of a large set between two checkpoints.
const PAGES_A_CHECKPOINT: usize = 5;
/// Steps through keys of which none fits, between two checkpoints.
const STEPS_A_CHECKPOINT: usize = 100;

/// An import under way.
pub(super) struct Work<'a> {
    pub(super) plan: &'a Plan,
    pub(super) source: &'a Source,
    pub(super) edges: &'a Edges<'a>,
    pub(super) state: &'a mut State,
    pub(super) at: Checkpoint,
    /// Gets the members read so far.
    pub(super) told: &'a dyn Fn(u64),
    /// What a dry run would have made.
    pub(super) rehearsed: Rehearsed,
}

/// A key that fits the pattern.
struct Found {
    key: String,
    id: String,
    object: ObjectId,
}

/// Edges that wait for a full batch, each with its place among the sums.
#[derive(Default)]
struct Waiting {
    edges: Vec<(ObjectId, SubjectId)>,
    sums: Vec<usize>,
}

impl Work<'_> {
    /// Goes on until everything is read.
    pub(super) async fn run(mut self) -> Result<Checkpoint, Failure> {
        for steps in 1.. {
            while let Some(large) = self.at.large.last().cloned() {
                self.finish_large(large).await?;
            }
            let some = match self.at.pass {
                Pass::Sets => self.step().await?,
                Pass::Counters => self.step_counters().await?,
                Pass::Done => break,
            };
            if some || steps % STEPS_A_CHECKPOINT == 0 {
                self.state.reach(&self.at)?;
            }
        }
        self.state.reach(&self.at)?;
        Ok(self.at)
    }

    /// One step through the keys. Says whether any fitted.
    async fn step(&mut self) -> Result<bool, Failure> {
        let (cursor, mut keys) = self.source.scan(self.at.shard, self.at.cursor, &self.plan.sets.glob()).await?;
        keys.sort_unstable();
        keys.dedup();
        let mut found = Vec::new();
        for key in &keys {
            if let Some(id) = self.plan.sets.id_in(key) {
                match self.plan.object_of(id) {
                    Ok((id, object)) => found.push(Found { key: self.plan.sets.with(&id), id, object }),
                    Err(reason) => self.refuse_key(key, reason).await?,
                }
            }
        }
        for some in found.chunks(KEYS_AT_ONCE) {
            self.import(some).await?;
        }
        self.go_on_at(cursor);
        Ok(!keys.is_empty())
    }

    /// To the next step, the next server, or the next pass.
    pub(super) fn go_on_at(&mut self, cursor: u64) {
        self.at.cursor = cursor;
        if cursor != 0 {
            return;
        }
        self.at.shard += 1;
        if self.at.shard == self.source.shards() {
            self.at.shard = 0;
            self.at.pass = match self.at.pass {
                Pass::Sets => Pass::Counters,
                Pass::Counters | Pass::Done => Pass::Done,
            };
        }
    }

    /// Imports some keys; of those with many members, the first page.
    async fn import(&mut self, found: &[Found]) -> Result<(), Failure> {
        let keys: Vec<_> = found.iter().map(|found| (found.key.clone(), self.plan.counter_of(&found.id))).collect();
        let (mut sums, mut rest, mut waiting) = (Vec::new(), Vec::new(), Waiting::default());
        for (found, look) in found.iter().zip(self.source.look(&keys).await?) {
            let (kind, first, counts) = match look {
                Look::Members { kind, first, counts } => (kind, first, counts),
                Look::Other(kind) => {
                    self.skip(&found.key, format!("it is of type {kind}, neither a set nor a sorted set"))?;
                    continue;
                }
                Look::Gone => continue,
            };
            self.at.totals.objects += 1;
            self.at.totals.sorted_sets += u64::from(kind == Kind::SortedSet);
            sums.push(Subtotal::of(&found.key, &found.object));
            rest.push((kind, first.next.clone(), counts));
            self.take(first, &found.object, &mut sums, &mut waiting).await?;
        }
        self.flush(&mut sums, &mut waiting).await?;
        let mut whole = Vec::new();
        for (sum, (kind, next, counts)) in sums.into_iter().zip(rest) {
            match next {
                Some(next) => self.at.large.push(Large { kind, next, so_far: sum }),
                None => whole.push((sum, counts)),
            }
        }
        self.close(whole).await
    }

    /// Reads the last of the large sets to its end.
    async fn finish_large(&mut self, mut large: Large) -> Result<(), Failure> {
        let object = ObjectId::new(&large.so_far.object)?;
        let key = large.so_far.key.clone();
        let mut pages = 0;
        loop {
            let Some(page) = self.source.members(&key, large.kind, Some(&large.next)).await? else { break };
            let (next, mut sums, mut waiting) = (page.next.clone(), vec![large.so_far], Waiting::default());
            self.take(page, &object, &mut sums, &mut waiting).await?;
            self.flush(&mut sums, &mut waiting).await?;
            large.so_far = sums.remove(0);
            let Some(next) = next else { break };
            large.next = next;
            pages += 1;
            if pages % PAGES_A_CHECKPOINT == 0 {
                self.at.large.pop();
                self.at.large.push(large.clone());
                self.state.reach(&self.at)?;
            }
        }
        self.at.large.pop();
        let id = self.plan.sets.id_in(key.as_bytes()).map(String::from_utf8_lossy);
        let counter = id.and_then(|id| self.plan.counter_of(&id));
        match self.source.counts(&key, large.kind, counter.as_deref()).await? {
            Some(counts) => self.close(vec![(large.so_far, counts)]).await?,
            None => self.skip(&key, "it was replaced while it was read".into())?,
        }
        self.state.reach(&self.at)
    }

    /// Takes a page of members of the last of the sums. What cannot be a subject is refused at once.
    async fn take(
        &mut self,
        page: Page,
        object: &ObjectId,
        sums: &mut [Subtotal],
        waiting: &mut Waiting,
    ) -> Result<(), Failure> {
        let last = sums.len() - 1;
        for member in page.members {
            self.at.totals.members += 1;
            sums[last].read += 1;
            match self.plan.subject_of(&member) {
                Ok(subject) => {
                    waiting.edges.push((object.clone(), subject));
                    waiting.sums.push(last);
                }
                Err(reason) => self.refuse(&mut sums[last], shown(&member), "bad_request", reason)?,
            }
            if waiting.edges.len() >= BATCH_EDGES {
                self.flush(sums, waiting).await?;
            }
        }
        (self.told)(self.at.totals.members);
        Ok(())
    }

    /// Sends what waits.
    async fn flush(&mut self, sums: &mut [Subtotal], waiting: &mut Waiting) -> Result<(), Failure> {
        let Waiting { edges, sums: places } = std::mem::take(waiting);
        if self.plan.dry_run {
            return self.rehearse(sums, &edges, &places).await;
        }
        let outcomes = self.edges.relate(&edges).await?;
        if let Some((_, edge)) = outcomes.iter().zip(&edges).rfind(|(outcome, _)| outcome.is_ok()) {
            self.at.witnesses.note(edge);
        }
        for ((outcome, place), (_, subject)) in outcomes.into_iter().zip(places).zip(&edges) {
            let sum = &mut sums[place];
            match outcome {
                Ok(edge) => {
                    sum.count = Some(edge.count);
                    *(if edge.changed { &mut sum.added } else { &mut sum.present }) += 1;
                    *(if edge.changed { &mut self.at.totals.added } else { &mut self.at.totals.present }) += 1;
                }
                Err(no) => self.refuse(sum, self.plan.subject.with(subject.as_str()), &no.code, no.reason)?,
            }
        }
        Ok(())
    }

    /// Asks what would become of these edges.
    async fn rehearse(
        &mut self,
        sums: &mut [Subtotal],
        edges: &[(ObjectId, SubjectId)],
        places: &[usize],
    ) -> Result<(), Failure> {
        let outcomes = self.rehearsed.relate(self.edges, edges).await?;
        for ((outcome, place), (_, subject)) in outcomes.into_iter().zip(places).zip(edges) {
            match outcome {
                Err(no) if no.code != RATE_LIMITED => {
                    self.refuse(&mut sums[*place], self.plan.subject.with(subject.as_str()), &no.code, no.reason)?;
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Compares the numbers of objects whose members are all in.
    pub(super) async fn close(&mut self, mut whole: Vec<(Subtotal, Counts)>) -> Result<(), Failure> {
        let unknown: Vec<usize> = (0..whole.len()).filter(|at| whole[*at].0.count.is_none()).collect();
        if !unknown.is_empty() {
            let objects: Result<Vec<_>, _> = unknown.iter().map(|at| ObjectId::new(&whole[*at].0.object)).collect();
            for (at, count) in unknown.into_iter().zip(self.edges.counts(&objects?).await?) {
                whole[at].0.count = count;
            }
        }
        for (sum, counts) in whole {
            let totals = &mut self.at.totals;
            totals.counters += u64::from(counts.counter != Counter::Absent);
            totals.edges += sum.count.and_then(|count| u64::try_from(count).ok()).unwrap_or_default();
            if let Some(found) = Disagreement::of(&sum, &counts, self.plan.dry_run) {
                totals.disagreed += 1;
                self.state.found(Finding::Disagreement(found))?;
            }
        }
        Ok(())
    }

    fn refuse(&mut self, sum: &mut Subtotal, member: String, code: &str, reason: String) -> Result<(), Failure> {
        sum.refused += 1;
        self.at.totals.refused += 1;
        let (key, code) = (sum.key.clone(), code.to_owned());
        self.state.found(Finding::Refusal(Refused { key, member: Some(member), members: 1, code, reason }))
    }

    /// Refuses all members of a key that is no object.
    async fn refuse_key(&mut self, key: &[u8], reason: String) -> Result<(), Failure> {
        let members = self.source.size(key).await?;
        self.at.totals.members += members;
        self.at.totals.refused += members;
        let (key, code) = (shown(key), "bad_request".to_owned());
        self.state.found(Finding::Refusal(Refused { key, member: None, members, code, reason }))
    }

    fn skip(&mut self, key: &str, reason: String) -> Result<(), Failure> {
        self.at.totals.skipped += 1;
        self.state.found(Finding::Skip(Skipped { key: key.to_owned(), reason }))
    }
}
