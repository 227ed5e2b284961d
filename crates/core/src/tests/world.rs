//! A store of two maps, and the loop that every engine's runner has: decide, load what was missed, again.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use crate::catalog::{Catalog, ReadPolicy, RelationDef, Ties};
use crate::command::{Auth, Call, Command, Decided, Once};
use crate::condition::Condition;
use crate::day::Day;
use crate::decide::decide;
use crate::id::Name;
use crate::meta::{MetaShape, MetaType};
use crate::reply::{Done, Reply, Told};
use crate::rows::{Changes, Edge, EdgeKey, JobId, Key, RoomCount, Row, SequenceKey, TotalKey};
use crate::time::{Stamp, Timestamp};
use crate::view::{Stop, View, Wants};

/// Everything there is, and what comes with a command from outside.
pub(crate) struct World {
    pub(crate) rows: BTreeMap<Key, Row>,
    pub(crate) totals: BTreeMap<TotalKey, i64>,
    pub(crate) catalog: Catalog,
    pub(crate) auth: Auth,
    pub(crate) now_ms: u64,
    pub(crate) jobs: Vec<JobId>,
    /// Set once a script has broken a total on purpose.
    pub(crate) drifted: bool,
    /// How often the last decision had to load.
    pub(crate) loads: usize,
    stamp: Stamp,
    id: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            rows: BTreeMap::new(),
            totals: BTreeMap::new(),
            catalog: catalog(),
            auth: Arc::new(json!({"kind": "system"})),
            now_ms: 1_000,
            jobs: Vec::new(),
            drifted: false,
            loads: 0,
            stamp: Stamp::default(),
            id: 0,
        }
    }

    /// Decides one command, and takes its changes in.
    pub(crate) fn apply(&mut self, command: Command, once: Option<Once>) -> Decided {
        let remembers = once.is_some();
        let call = Call { auth: self.auth.clone(), command, once };
        let stamp = self.stamp.next(Stamp::at(Timestamp(self.now_ms)));
        self.stamp = Stamp(stamp.0 + call.command.weight() as u64 - 1);
        // Far apart, so that a batch may use several.
        self.id += 1_000;
        let (mut decided, changes) = self.decide(&call, stamp);
        // What was forgotten may be taken away before its job comes to it.
        let is_forgetting = self.rows.values().any(|row| matches!(row, Row::Subject(row) if row.forgotten.is_some()));
        if !remembers && !is_forgetting && !is_change(&decided) {
            assert!(changes.is_empty(), "{:?} wrote {changes:?}", decided.reply);
        }
        let firsts = self.number(&changes);
        if let Ok(reply) = &mut decided.reply {
            let first = |sequence: &SequenceKey| firsts.get(sequence).copied().unwrap_or(0);
            reply.correct(&mut Told { off: &|_| 0, first: &first, ranks: &mut std::iter::empty() });
        }
        let given: Vec<u64> = changes.numbers.iter().map(|(sequence, _)| firsts[sequence]).collect();
        self.take(changes.given(&given).unwrap().unwrap_or(changes));
        self.recount();
        decided
    }

    fn decide(&mut self, call: &Call, stamp: Stamp) -> (Decided, Changes) {
        let mut view = View::default();
        self.loads = 0;
        loop {
            let start = view.savepoint();
            match decide(call, stamp, stamp, self.id, &self.catalog, &mut view) {
                Ok(_) if view.misses() => {
                    view.rollback(start);
                    self.fill(&mut view);
                }
                Ok(decided) => return (decided, view.changes(stamp)),
                Err(Stop::Refused(refusal)) => panic!("a refusal is an answer, and this one came as a stop: {refusal}"),
                Err(Stop::Miss) => self.fill(&mut view),
            }
        }
    }

    fn fill(&mut self, view: &mut View) {
        let Wants { rows, totals, ranks } = view.take_missing();
        assert!(rows.len() + totals.len() + ranks.len() > 0, "a miss names what it missed");
        assert!(view.changes(self.stamp).is_empty(), "a miss leaves the view as it was");
        self.loads += 1;
        for key in rows {
            let row = self.rows.get(&key).cloned();
            view.fill_row(key, row);
        }
        for key in totals {
            let total = self.total(&key);
            view.fill_total(key, total);
        }
        for standing in ranks {
            let before = self.rows.iter().filter_map(|(key, row)| row.stands(key));
            let before = before.filter(|(order, place)| *order == standing.order && standing.is_behind(place));
            let before = before.count() as u64;
            view.fill_rank(standing, before);
        }
    }

    /// Gives the numbers that are taken: the first of each sequence.
    fn number(&mut self, changes: &Changes) -> BTreeMap<SequenceKey, u64> {
        let mut firsts = BTreeMap::new();
        for (sequence, count) in &changes.numbers {
            let last = SequenceKey::last(self.rows.get(&sequence.key()));
            let (first, row) = SequenceKey::take(last, *count).unwrap();
            self.rows.insert(sequence.key(), row);
            firsts.insert(sequence.clone(), first);
        }
        firsts
    }

    fn take(&mut self, changes: Changes) {
        for (key, change) in changes.rows {
            assert_eq!(self.rows.get(&key), change.before.as_ref(), "`before` is what was there: {key:?}");
            match change.after {
                Some(row) => self.rows.insert(key, row),
                None => self.rows.remove(&key),
            };
        }
        for (key, by) in changes.adds {
            *self.totals.entry(key).or_default() += by;
        }
    }

    /// Every total is what its edges add up to.
    fn recount(&self) {
        if self.drifted {
            return;
        }
        let mut counted: BTreeMap<TotalKey, i64> = BTreeMap::new();
        for (key, edge) in self.edges() {
            for total in key.totals(edge) {
                *counted.entry(total).or_default() += 1;
            }
        }
        for (key, row) in &self.rows {
            if let (Key::Attendee((sheet, _)), Row::Attendee(attendee)) = (key, row) {
                for day in attendee.days.bitmap().iter().chain(attendee.forgotten.bitmap()) {
                    let total = TotalKey::Present { sheet: sheet.clone(), day: Day(day) };
                    *counted.entry(total).or_default() += 1;
                }
            }
        }
        for (key, row) in &self.rows {
            if let (Key::Ticket(_), Row::Ticket(_)) = (key, row) {
                row.counts(key, |total, by| *counted.entry(total).or_default() += by);
            }
        }
        self.check_levels();
        let is_counted = |key: &TotalKey| match key {
            TotalKey::Counter(_) => false,
            TotalKey::Room { count, .. } => matches!(count, RoomCount::Inside | RoomCount::Ready),
            TotalKey::Object { .. } | TotalKey::Kind { .. } | TotalKey::Subject { .. } | TotalKey::Present { .. } => {
                true
            }
        };
        let stored: BTreeMap<_, _> = self
            .totals
            .iter()
            .filter(|(key, value)| **value != 0 && is_counted(key))
            .map(|(key, value)| (key.clone(), *value))
            .collect();
        assert_eq!(stored, counted, "totals on the left, edges on the right");
    }

    /// The levels of a board are the scores that its members have.
    fn check_levels(&self) {
        let (mut counted, mut stored) = (BTreeMap::new(), BTreeMap::new());
        for (key, row) in &self.rows {
            let (Key::Score(key), Row::Score(score)) = (key, row) else { continue };
            let dense = self.catalog.board(&key.board.board).is_ok_and(|def| def.ties == Ties::Dense);
            let level = (key.board.board.clone(), key.board.season, score.score);
            if key.board.levels {
                stored.insert(level, score.reached.0);
            } else if dense {
                *counted.entry(level).or_insert(0_u64) += 1;
            }
        }
        assert_eq!(stored, counted, "levels on the left, members on the right");
    }

    pub(crate) fn edges(&self) -> impl Iterator<Item = (&EdgeKey, &Edge)> {
        self.rows.iter().filter_map(|(key, row)| match (key, row) {
            (Key::Edge(key), Row::Edge(edge)) => Some((key, edge)),
            _ => None,
        })
    }

    pub(crate) fn total(&self, key: &TotalKey) -> i64 {
        self.totals.get(key).copied().unwrap_or(0)
    }
}

/// Whether an answer admits to having changed something.
fn is_change(decided: &Decided) -> bool {
    fn changed(reply: &Reply) -> bool {
        match reply {
            Reply::Relation(edge) => edge.changed,
            Reply::Object(object) => object.changed == Some(true),
            Reply::Done(Done { changed }) => *changed,
            Reply::Batch(replies) => replies.iter().flatten().any(changed),
            Reply::Counter(count) => count.changed,
            Reply::Unique(unique) => unique.changed,
            Reply::Attendance(attend) => attend.changed,
            Reply::Board(score) => score.changed,
            Reply::Limit(_) | Reply::Job(_) => true,
            Reply::Room(room) => room.changed,
            // A heartbeat may write what nobody is told.
            Reply::Ticket(_) | Reply::Admit(_) => true,
        }
    }
    decided.reply.as_ref().is_ok_and(changed)
}

/// One relation for each thing that can be configured.
fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    catalog.idempotency_ttl_ms = 60_000;
    let mut declare = |name: &str, configure: fn(&mut RelationDef)| {
        let mut relation = RelationDef::new(Name::new(name).unwrap(), ReadPolicy::Public);
        configure(&mut relation);
        catalog.declare(relation);
    };
    declare("bookmark", |relation| relation.requires_object = true);
    declare("favorite", |relation| relation.limit_per_subject = Some(1));
    declare("pin", |relation| relation.limit_per_subject = Some(2));
    declare("reaction", |relation| relation.one_of = names(&["like", "love", "wow"]));
    declare("only", |relation| {
        relation.one_of = names(&["yes", "no"]);
        relation.limit_per_subject = Some(1);
    });
    declare("memo", |relation| relation.meta = Some(shape()));
    declare("note", |relation| relation.mutable_meta = true);
    declare("follow", |relation| relation.allow_self = false);
    declare("vote", |relation| {
        relation.when.relate = condition("object.status == 'open' && meta.weight < 3");
        relation.when.unrelate = condition("meta.weight == 1");
    });
    declare("claim", |relation| {
        relation.requires_object = true;
        relation.when.relate = condition("object.attributes.free && auth.subject == subject");
        relation.when.unrelate = condition("now < timestamp('1970-01-01T00:00:05Z')");
    });
    catalog
}

fn names(texts: &[&str]) -> Vec<Name> {
    texts.iter().map(|text| Name::new(text).unwrap()).collect()
}

fn shape() -> MetaShape {
    let fields = [("text", "string(5)!"), ("loud", "bool")];
    MetaShape(fields.into_iter().map(|(name, kind)| (name.to_owned(), MetaType::parse(kind).unwrap())).collect())
}

fn condition(text: &str) -> Option<Condition> {
    Some(Condition::compile(text).unwrap())
}
