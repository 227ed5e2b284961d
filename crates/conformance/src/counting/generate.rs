//! Random commands of counting, with few names so that everything meets everything.

use std::sync::Arc;

use serde_json::json;
use tally_core::catalog::{
    Algorithm, BoardDef, CounterDef, LimitDef, Per, RateLimit, ReadPolicy, SheetDef, Ties, UniqueDef,
};
use tally_core::command::{
    Add, Attend, Batch, Call, ChangeScore, DeleteObject, ExpireLimits, Forget, Observe, Once, PutObject, ScoreChange,
    Sweep, Take, Toggle,
};
use tally_core::meta::Meta;
use tally_core::rows::{JobId, LimitKey};
use tally_core::schedule::Schedule;
use tally_core::time::{Stamp, Timestamp};
use tally_core::{Catalog, Command, Condition, Day, KeyId, RelationDef};

use crate::driver::Step;
use crate::random::Random;
use crate::sample::{call, meta, name, object, replay_key, subject};

const SUBJECTS: [&str; 6] = ["ann", "bob", "7", "70000", "007", "1099511627777"];
const KEYS: [&str; 3] = ["post:1", "post:2", "home"];
const BOARDS: [&str; 4] = ["points", "shared", "dense", "weekly"];
const LIMITS: [&str; 3] = ["log", "window", "bucket"];
const BATCH_MAX: usize = 5;

pub(crate) fn key(text: &str) -> KeyId {
    KeyId::new(text).expect("keys in cases are valid")
}

fn limit(of: &str, rate: &str, algorithm: Algorithm) -> LimitDef {
    LimitDef::parse(of, rate, Some(algorithm)).expect("rates in cases are valid")
}

/// One of each thing that can be configured.
pub(crate) fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    catalog.idempotency_ttl_ms = 3_000;
    let counting = &mut catalog;
    let open = Condition::compile("object.status == 'open'").expect("conditions in cases are valid");
    counting.declare_counter(name("read"), CounterDef { requires: Some(open), ..CounterDef::new(name("read")) });
    counting.declare_counter(name("timed"), CounterDef { last_at: true, ..CounterDef::new(name("timed")) });
    let few = |of: &str, per| Some(RateLimit { limit: Arc::new(limit(of, "3/2s", Algorithm::SlidingLog)), per });
    let slow = CounterDef { rate_limit: few("counters.slow", Per::Object), ..CounterDef::new(name("slow")) };
    counting.declare_counter(name("slow"), slow);
    counting.declare_unique(name("reach"), UniqueDef::new(name("reach")));
    counting.declare_sheet(
        name("gym"),
        SheetDef { rate_limit: few("attendance.gym", Per::All), ..SheetDef::new(name("gym")) },
    );
    for (text, ties) in [("shared", Ties::Shared), ("dense", Ties::Dense)] {
        counting.declare_board(name(text), BoardDef { ties, ..BoardDef::new(name(text)) });
    }
    let season = Some(Schedule::new("* * * * *").expect("schedules in cases are valid"));
    counting.declare_board(name("weekly"), BoardDef { season, best_of: true, ..BoardDef::new(name("weekly")) });
    for (text, algorithm) in
        [("log", Algorithm::SlidingLog), ("window", Algorithm::SlidingWindow), ("bucket", Algorithm::TokenBucket)]
    {
        counting.declare_limit(name(text), limit(text, "5/3s", algorithm));
    }
    let mut like = RelationDef::new(name("like"), ReadPolicy::Public);
    like.rate_limit = few("relations.like", Per::Subject);
    catalog.declare(like);
    catalog
}

/// The steps of a seed.
pub(crate) fn steps(seed: u64, length: usize) -> Vec<Step> {
    let mut generator = Generator { random: Random(seed), jobs: Vec::new() };
    let mut now = Timestamp(1_000_000);
    let mut last = Stamp::default();
    let mut steps = Vec::with_capacity(length);
    for number in 0..length as u64 {
        match generator.random.below(20) {
            0..=4 => now = now.plus_ms(generator.random.next() % 50),
            5..=7 => now = now.plus_ms(generator.random.next() % 4_000),
            8 => now = Timestamp(now.0 - generator.random.next() % 100),
            9 => now = now.plus_ms(generator.random.next() % 90_000),
            _ => {}
        }
        let id = (number + 1) * 1_000;
        let call = generator.call();
        let stamp = last.next(Stamp::at(now));
        last = Stamp(stamp.0 + call.command.weight() as u64 - 1);
        steps.push(Step { stamp, id, call });
    }
    steps
}

struct Generator {
    random: Random,
    jobs: Vec<JobId>,
}

impl Generator {
    fn pick(&mut self, words: &[&'static str]) -> &'static str {
        words[self.random.below(words.len())]
    }

    fn call(&mut self) -> Call {
        let command = if self.random.percent(12) {
            let many = 1 + self.random.below(BATCH_MAX);
            let commands = (0..many).map(|_| self.command()).collect();
            Command::from(Batch { atomic: self.random.percent(50), commands })
        } else {
            self.command()
        };
        let once = self.random.percent(8).then(|| {
            let key = replay_key("app", self.pick(&["k1", "k2"]));
            Once { key, fields: Arc::new(vec![("op".to_owned(), self.random.next() % 2)]) }
        });
        Call { once, ..call(command) }
    }

    fn command(&mut self) -> Command {
        let who = *self.random.pick(&SUBJECTS);
        let what = *self.random.pick(&KEYS);
        match self.random.below(100) {
            0..=21 => Command::from(Add {
                counter: name(self.pick(&["views", "read", "timed", "slow"])),
                key: key(what),
                by: self.random.next() as i64 % 7 - 3,
            }),
            22..=36 => {
                let many = 1 + self.random.below(20);
                let members = (0..many).map(|_| format!("m{}", self.random.below(400))).collect();
                Command::from(Observe { unique: name(self.pick(&["dau", "reach"])), key: key(what), members })
            }
            37..=54 => Command::from(Attend {
                sheet: name(self.pick(&["daily", "gym"])),
                day: Some(Day(20_000 + self.random.below(5) as u32)),
                subject: subject(who),
                present: self.random.percent(65),
            }),
            55..=76 => {
                let board = *self.random.pick(&BOARDS);
                let amount = self.random.next() as i64 % 9 - 4;
                let change = match self.random.below(10) {
                    0..=4 if board != "weekly" => ScoreChange::By(amount),
                    0..=8 => ScoreChange::To(amount),
                    _ => ScoreChange::Leave,
                };
                Command::from(ChangeScore { board: name(board), member: subject(who), change })
            }
            77..=86 => Command::from(Take {
                limit: name(self.pick(&LIMITS)),
                key: key(what),
                cost: 1 + self.random.next() % 3,
            }),
            87..=90 => {
                let (relation, object, subject) = (name("like"), object("post:1"), subject(who));
                Command::from(Toggle { relation, object, subject, kind: None, meta: None })
            }
            91..=92 => {
                let attributes = if self.random.percent(50) { meta(&json!({"n": 1})) } else { Meta::default() };
                let status = self.random.percent(60).then(|| "open".to_owned());
                Command::from(PutObject { object: object("post:1"), status, attributes })
            }
            93 => {
                let command = Command::from(Forget { subject: subject(who) });
                self.jobs.extend(command.job());
                command
            }
            94 => {
                let command = Command::from(DeleteObject { object: object("post:1") });
                self.jobs.extend(command.job());
                command
            }
            95..=97 => {
                let job = if self.jobs.is_empty() { JobId(1) } else { *self.random.pick(&self.jobs) };
                Command::from(Sweep { job, before: Stamp(u64::MAX), edges: Vec::new() })
            }
            _ => Command::from(ExpireLimits { limits: limits() }),
        }
    }
}

/// What may be known of limits.
fn limits() -> Vec<LimitKey> {
    let of = tally_core::limit::key_of;
    let declared = LIMITS.iter().flat_map(|limit| KEYS.iter().map(|key| of(limit, key)));
    let mut all: Vec<LimitKey> = declared.collect();
    all.extend(KEYS.iter().map(|key| of("counters.slow", key)));
    all.extend(SUBJECTS.iter().map(|who| of("relations.like", who)));
    all.push(of("attendance.gym", ""));
    all
}
