//! Random histories. Everything about one is decided before it runs, so that steps can be taken
//! out of it and the rest still means the same.

use std::sync::Arc;

use serde_json::json;
use tally_core::catalog::ReadPolicy;
use tally_core::command::{
    Batch, Call, DeleteObject, ExpireReplays, Forget, Once, PutApiKey, PutObject, Relate, Repair, Restore,
    RevokeApiKey, Suspend, Sweep, Toggle, Unrelate,
};
use tally_core::meta::Meta;
use tally_core::rows::{ApiKey, EdgeKey, JobId, ReplayKey, Role, TotalKey};
use tally_core::time::{Stamp, Timestamp};
use tally_core::{Catalog, Command, Name, RelationDef};

use super::random::Random;
use crate::driver::Step;
use crate::sample::{call, meta, name, replay_key};
use crate::universe::Universe;

/// Commands, what is declared while they run, and every name that they use.
pub(super) struct History {
    pub(super) catalog: Catalog,
    pub(super) universe: Universe,
    pub(super) steps: Vec<Step>,
}

struct Generator {
    random: Random,
    universe: Universe,
    /// Ids of steps that begin a job.
    begun: Vec<JobId>,
    /// Whether totals may be put wrong on purpose.
    repairs: bool,
}

/// Few names, so that everything meets everything.
fn universe() -> Universe {
    Universe {
        replays: ["k1", "k2", "k3"].map(|key| replay_key("app", key)).to_vec(),
        api_keys: ["a1", "a2"].map(str::to_owned).to_vec(),
        ..Universe::new(&["ann", "bob", "cid", "dan"], &["post:1", "post:2", "user:ann"], &["r0", "r1", "r2", "r3"])
    }
}

/// The history of a seed.
pub(super) fn history(seed: u64, length: usize) -> History {
    let mut random = Random(seed);
    let catalog = catalog(&mut random);
    let repairs = random.percent(25);
    let mut generator = Generator { random, universe: universe(), begun: Vec::new(), repairs };
    let mut steps = Vec::with_capacity(length);
    let mut now = Timestamp(1_000_000);
    let mut last = Stamp::default();
    for number in 0..length as u64 {
        // Mostly the same millisecond, sometimes later, sometimes past every expiry, sometimes back.
        match generator.random.below(20) {
            0..=4 => now = now.plus_ms(generator.random.next() % 50),
            5 => now = now.plus_ms(generator.random.next() % 8_000),
            6 => now = Timestamp(now.0 - generator.random.next() % 100),
            _ => {}
        }
        let id = (number + 1) * 1_000;
        let call = generator.call();
        let stamp = last.next(Stamp::at(now));
        last = Stamp(stamp.0 + call.command.weight() as u64 - 1);
        steps.push(Step { stamp, id, call });
    }
    let mut universe = generator.universe;
    universe.jobs = generator.begun;
    History { catalog, universe, steps }
}

const BATCH_MAX: usize = 6;

/// Four relations, each with a random configuration.
fn catalog(random: &mut Random) -> Catalog {
    let mut catalog = Catalog::default();
    catalog.idempotency_ttl_ms = 3_000;
    for text in ["r0", "r1", "r2", "r3"] {
        let mut relation = RelationDef::new(name(text), ReadPolicy::Public);
        relation.requires_object = random.percent(20);
        relation.limit_per_subject = random.percent(40).then(|| 1 + random.below(2) as u32);
        relation.mutable_meta = random.percent(40);
        relation.allow_self = !random.percent(30);
        if random.percent(40) {
            relation.one_of = ["like", "love", "wow"].map(name).to_vec();
        }
        catalog.declare(relation);
    }
    catalog
}

impl Generator {
    fn call(&mut self) -> Call {
        let command = match self.random.below(100) {
            0..=9 => {
                let many = 1 + self.random.below(BATCH_MAX);
                let commands = (0..many).map(|_| self.command()).collect();
                Command::from(Batch { atomic: self.random.percent(50), commands })
            }
            _ => self.command(),
        };
        let once = self.random.percent(8).then(|| self.once());
        Call { once, ..call(command) }
    }

    fn command(&mut self) -> Command {
        match self.random.below(100) {
            0..=39 => self.relate(),
            40..=59 => self.unrelate(),
            60..=67 => self.toggle(),
            68..=73 => self.put(),
            74..=76 => self.beginning(|random, universe| {
                Command::from(DeleteObject { object: random.pick(&universe.objects).clone() })
            }),
            77..=79 => self.beginning(|random, universe| {
                Command::from(Forget { subject: random.pick(&universe.subjects).clone() })
            }),
            80..=82 => self.beginning(|random, universe| {
                Command::from(Suspend { subject: random.pick(&universe.subjects).clone() })
            }),
            83..=86 => self.beginning(|random, universe| {
                Command::from(Restore { subject: random.pick(&universe.subjects).clone() })
            }),
            87..=94 => self.sweep(),
            95 => self.put_api_key(),
            96 => Command::from(RevokeApiKey { id: self.random.pick(&self.universe.api_keys).clone() }),
            97 if self.repairs => self.repair(),
            _ => Command::from(ExpireReplays { replays: self.universe.replays.clone() }),
        }
    }

    fn edge(&mut self) -> EdgeKey {
        EdgeKey {
            object: self.random.pick(&self.universe.objects).clone(),
            relation: self.random.pick(&self.universe.relations).clone(),
            subject: self.random.pick(&self.universe.subjects).clone(),
        }
    }

    fn kind(&mut self) -> Option<Name> {
        let chance = if self.random.percent(50) { 90 } else { 10 };
        self.random.percent(chance).then(|| self.random.pick(&self.universe.kinds).clone())
    }

    fn meta(&mut self) -> Option<Meta> {
        self.random
            .percent(25)
            .then(|| meta(&json!({"n": self.random.below(2), "f": 0.1 * self.random.below(3) as f64})))
    }

    fn relate(&mut self) -> Command {
        let EdgeKey { object, relation, subject } = self.edge();
        Command::from(Relate { relation, object, subject, kind: self.kind(), meta: self.meta() })
    }

    fn unrelate(&mut self) -> Command {
        let EdgeKey { object, relation, subject } = self.edge();
        Command::from(Unrelate { relation, object, subject })
    }

    fn toggle(&mut self) -> Command {
        let EdgeKey { object, relation, subject } = self.edge();
        Command::from(Toggle { relation, object, subject, kind: self.kind(), meta: self.meta() })
    }

    fn put(&mut self) -> Command {
        let owner = self.random.pick(&self.universe.subjects).as_str();
        let attributes = if self.random.percent(50) { meta(&json!({"owner": owner})) } else { Meta::default() };
        let status = self.random.percent(50).then(|| "open".to_owned());
        Command::from(PutObject { object: self.random.pick(&self.universe.objects).clone(), status, attributes })
    }

    fn beginning(&mut self, make: fn(&mut Random, &Universe) -> Command) -> Command {
        let command = make(&mut self.random, &self.universe);
        self.begun.extend(command.job().filter(|job| !self.begun.contains(job)));
        command
    }

    /// A step of a job that may be, over all edges, a few, or none: the end.
    fn sweep(&mut self) -> Command {
        let job = if self.begun.is_empty() { JobId(1) } else { *self.random.pick(&self.begun) };
        let edges = match self.random.below(3) {
            0 => self.universe.edges().collect(),
            1 => (0..5).map(|_| self.edge()).collect(),
            _ => Vec::new(),
        };
        Command::from(Sweep { job, before: Stamp(u64::MAX), edges })
    }

    fn put_api_key(&mut self) -> Command {
        let id = self.random.pick(&self.universe.api_keys).clone();
        let created_at = Timestamp(self.random.next() % 1_000);
        let key = ApiKey { hash: "hash".into(), role: Role::Service, name: id.clone(), created_at, revoked_at: None };
        Command::from(PutApiKey { id, key })
    }

    fn repair(&mut self) -> Command {
        let EdgeKey { object, relation, subject } = self.edge();
        let total = match self.random.below(3) {
            0 => TotalKey::Object { object, relation },
            1 => TotalKey::Kind { object, relation, kind: self.random.pick(&self.universe.kinds).clone() },
            _ => TotalKey::Subject { subject, relation },
        };
        Command::from(Repair { found_in: None, total, by: if self.random.percent(70) { 1 } else { -1 } })
    }

    fn once(&mut self) -> Once {
        let key: ReplayKey = self.random.pick(&self.universe.replays).clone();
        let fields = vec![("op".to_owned(), 1), ("body".to_owned(), self.random.next() % 2)];
        Once { key, fields: Arc::new(fields) }
    }
}
