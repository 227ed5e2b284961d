//! Stores that are wrong on purpose: the suite has to find each of them out.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tally_core::rows::{Changes, Key, Row};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::{View, Wants};
use tally_engine::memory::Memory;
use tally_engine::{
    Audited, Clock, CommitError, Committed, Engine, Finding, Loaded, Mark, Nature, Page, Range, Seen, StoreError,
    SystemClock,
};

use crate::EngineFactory;
use crate::stand::Stand;

/// What a store does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    /// Nothing.
    None,
    /// A commit is taken whatever has moved.
    ChecksNothing,
    /// Rows that were only looked at may move.
    ChecksWhatItWrites,
    /// Rows that were not there may be made meanwhile.
    ForgetsAbsences,
    /// Totals that were decided on may move.
    ForgetsTotals,
    /// Totals are put to what they should be, and what others added meanwhile is lost.
    PutsTotals,
    /// It does not say what time it is, so that each server goes by its own clock.
    HasNoClock,
    /// Rows and totals of a load are of different moments, and it says so.
    SaysThatItLoadsInParts,
    /// The same, and it keeps silent.
    LoadsInParts,
    /// A commit tells the totals as they are a little later.
    TellsTotalsLate,
    /// And so it does with ranks.
    TellsRanksLate,
    /// Ranks that are written down may move.
    ForgetsRanks,
    /// Each server shows rows as it has seen them, until a conflict tells it better.
    KeepsACache,
}

/// The oracle, with a clock of its own that is later each time that somebody looks.
struct Shared {
    memory: Memory,
    looks: AtomicU64,
}

/// One of several engines on it, with a flaw.
struct Broken {
    shared: Arc<Shared>,
    flaw: Flaw,
    cache: Mutex<HashMap<Key, Option<Row>>>,
}

impl Broken {
    /// What this store checks of what a decision stands on.
    fn checked(&self, seen: &View, changes: &Changes) -> View {
        let is_written = |key: &Key| changes.rows.iter().any(|(written, _)| written == key);
        let mut checked = View::default();
        for (key, row) in seen.seen() {
            let skipped = match self.flaw {
                Flaw::ChecksNothing => true,
                Flaw::ChecksWhatItWrites => !is_written(key),
                Flaw::ForgetsAbsences => row.is_none(),
                _ => false,
            };
            if !skipped {
                checked.fill_row(key.clone(), row.clone());
            }
        }
        if !matches!(self.flaw, Flaw::ChecksNothing | Flaw::ForgetsTotals) {
            for (key, value) in seen.seen_totals() {
                checked.fill_total(key.clone(), value);
                checked.total_decided(key).expect("it was filled in");
            }
        }
        if !matches!(self.flaw, Flaw::ChecksNothing | Flaw::ForgetsRanks) {
            for (standing, before) in seen.seen_ranks() {
                checked.fill_rank(standing.clone(), before);
                checked.hold_rank(standing);
            }
        }
        for standing in seen.told_ranks() {
            checked.fill_rank(standing.clone(), 0);
            checked.tell_rank(standing);
        }
        checked
    }
}

async fn others_come_in_between() {
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
}

impl Engine for Broken {
    async fn prepare(&self) -> Result<Stamp, StoreError> {
        self.shared.memory.prepare().await
    }

    async fn load(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        let mut loaded = self.shared.memory.load(wants).await?;
        if matches!(self.flaw, Flaw::LoadsInParts | Flaw::SaysThatItLoadsInParts) {
            others_come_in_between().await;
            loaded.totals = self.shared.memory.load(&Wants::totals(wants.totals.clone())).await?.totals;
            loaded.also.clear();
            loaded.at_once = self.flaw == Flaw::LoadsInParts;
            loaded.of_one_moment = loaded.at_once;
        }
        if self.flaw != Flaw::HasNoClock {
            loaded.now = Some(Stamp::at(Timestamp(self.shared.looks.fetch_add(1, Ordering::SeqCst))));
        }
        if self.flaw == Flaw::KeepsACache {
            let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            for (key, row) in wants.rows.iter().zip(&mut loaded.rows) {
                *row = cache.entry(key.clone()).or_insert_with(|| row.clone()).clone();
            }
        }
        Ok(loaded)
    }

    fn nature(&self) -> Nature {
        Nature { is_shared: true, ..self.shared.memory.nature() }
    }

    async fn commit(&self, seen: Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        let checked = self.checked(seen.view, changes);
        let committed = self.shared.memory.commit(Seen { mark: seen.mark, view: &checked }, changes).await;
        if self.flaw == Flaw::PutsTotals && committed.is_ok() {
            for (key, _) in &changes.adds {
                self.shared.memory.tamper(key.clone(), seen.view.final_total(key).expect("it was loaded"));
            }
        }
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).clear();
        if self.flaw == Flaw::TellsTotalsLate
            && let Ok(committed) = &committed
        {
            others_come_in_between().await;
            let keys = changes.adds.iter().map(|(key, _)| key.clone()).collect();
            let totals = self.shared.memory.load(&Wants::totals(keys)).await?.totals;
            return Ok(Committed { totals: Some(totals), ..committed.clone() });
        }
        if self.flaw == Flaw::TellsRanksLate
            && let Ok(committed) = &committed
        {
            others_come_in_between().await;
            let wants = Wants { ranks: seen.view.told_ranks().to_vec(), ..Wants::default() };
            let ranks = self.shared.memory.load(&wants).await?.ranks;
            return Ok(Committed { ranks: Some(ranks), ..committed.clone() });
        }
        committed
    }

    async fn settle(&self, mark: Mark) -> Result<(), StoreError> {
        self.shared.memory.settle(mark).await
    }

    async fn scan(&self, range: &Range, limit: usize) -> Result<Page, StoreError> {
        self.shared.memory.scan(range, limit).await
    }

    async fn audit(&self, tell: &mut (dyn FnMut(Finding) + Send)) -> Result<Audited, StoreError> {
        self.shared.memory.audit(tell).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.shared.memory.ping().await
    }
}

impl EngineFactory for Flaw {
    type Engine = Broken;
    type Place = Arc<Shared>;

    fn place(&self) -> Arc<Shared> {
        Arc::new(Shared { memory: Memory::default(), looks: AtomicU64::new(SystemClock.now().0) })
    }

    async fn open(&self, place: &Arc<Shared>) -> Broken {
        Broken { shared: place.clone(), flaw: *self, cache: Mutex::default() }
    }

    fn servers(&self) -> bool {
        true
    }
}

/// Whether a case lets this store pass.
fn passes(flaw: Flaw, case: &str) -> bool {
    let cases = super::cases::<Flaw>();
    let (_, run) = cases.iter().find(|(name, _)| *name == case).expect("there is such a case");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime starts");
    catch_unwind(AssertUnwindSafe(|| runtime.block_on(run(Stand::new(Arc::new(flaw)))))).is_ok()
}

/// What has to do with chance is found sooner or later: most of it at once, some of it late where the machine is busy and hardly
/// anything comes in between.
fn is_found(flaw: Flaw, case: &str) {
    assert!((0..500).any(|_| !passes(flaw, case)), "{case} lets a store pass that has this flaw: {flaw:?}");
}

const LIKES: &str = "likes_and_unlikes_of_three_servers_add_up";
const LIMIT: &str = "a_limit_holds_across_servers";
const ONCE: &str = "one_answer_for_one_idempotency_key_on_any_server";
const DELETED: &str = "an_object_deleted_on_one_server_takes_no_more_likes_on_another";
const SUSPENDED: &str = "a_subject_suspended_on_one_server_is_suspended_on_all";
const HISTORIES: &str = "histories_of_three_servers_are_linearizable";
const JOBS: &str = "jobs_carried_by_two_servers_at_once_do_no_harm";
const ALONE: &str = "a_subject_that_is_alone_is_counted_once_or_not_at_all";
const NOBODY_COULD: &str = "a_limit_that_nobody_could_exceed_is_not_exceeded";
const TWICE: &str = "a_counter_tells_no_value_twice";
const PASSING: &str = "two_who_pass_each_other_are_told_of_one_order";
const CLOCKS: &str = "no_servers_clock_gets_into_the_store";
const ORDER: &str = "a_later_like_is_listed_first_whatever_the_clocks_say";

/// What is about leases and news, which servers on this store have none of: each of its engines is alone.
const TOGETHER: [&str; 5] = [
    "what_is_due_is_done_once_by_three_servers",
    "what_a_dead_server_had_is_taken_over",
    "what_is_due_goes_by_the_time_of_the_store",
    "a_server_that_lost_its_lease_acts_late_and_changes_nothing",
    "a_topic_is_told_to_those_who_watch_it",
];

fn passes_every_case(flaw: Flaw) {
    let cases = super::cases::<Flaw>();
    assert!(TOGETHER.iter().all(|known| cases.iter().any(|(case, _)| case == known)));
    for (case, _) in cases.iter().filter(|(case, _)| !TOGETHER.contains(case)) {
        assert!(passes(flaw, case), "{case}");
    }
}

#[test]
fn a_store_that_is_right_passes_with_three_engines_on_it() {
    passes_every_case(Flaw::None);
}

#[test]
fn a_store_that_loads_in_parts_and_says_so_passes() {
    passes_every_case(Flaw::SaysThatItLoadsInParts);
}

#[test]
fn a_store_that_loads_in_parts_is_found() {
    for case in [ALONE, NOBODY_COULD] {
        is_found(Flaw::LoadsInParts, case);
    }
}

#[test]
fn a_store_that_tells_totals_late_is_found() {
    for case in [ALONE, TWICE] {
        is_found(Flaw::TellsTotalsLate, case);
    }
}

#[test]
fn a_store_that_tells_ranks_late_is_found() {
    is_found(Flaw::TellsRanksLate, PASSING);
}

#[test]
fn a_store_that_does_not_check_ranks_is_found() {
    is_found(Flaw::ForgetsRanks, PASSING);
}

#[test]
fn a_store_that_checks_nothing_is_found() {
    for case in [LIKES, LIMIT, ONCE, DELETED, SUSPENDED, HISTORIES] {
        is_found(Flaw::ChecksNothing, case);
    }
}

#[test]
fn a_store_that_checks_only_what_it_writes_is_found() {
    for case in [DELETED, SUSPENDED] {
        is_found(Flaw::ChecksWhatItWrites, case);
    }
}

#[test]
fn a_store_that_does_not_check_absent_rows_is_found() {
    for case in [LIKES, ONCE, SUSPENDED, HISTORIES] {
        is_found(Flaw::ForgetsAbsences, case);
    }
}

#[test]
fn a_store_that_does_not_check_totals_is_found() {
    is_found(Flaw::ForgetsTotals, LIMIT);
}

#[test]
fn a_store_that_puts_totals_is_found() {
    is_found(Flaw::PutsTotals, LIKES);
}

#[test]
fn a_server_that_keeps_a_cache_is_found() {
    for case in [DELETED, SUSPENDED, HISTORIES] {
        is_found(Flaw::KeepsACache, case);
    }
}

#[test]
fn a_store_without_a_clock_is_found() {
    for case in [ORDER, JOBS, CLOCKS] {
        is_found(Flaw::HasNoClock, case);
    }
}
