//! A batch from a client: every command is read or refused, and whatever they do, the totals equal the
//! edges.
#![no_main]

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use tally_core::command::{Batch, Call, ChangeScore, Command};
use tally_core::reply::Reply;
use tally_core::{Catalog, Key, Name, ReadPolicy, Refusal, RelationDef, Row, Stamp, Stop, TotalKey, View, board, decide};
use libfuzzer_sys::fuzz_target;
use tally_core::meta::{MetaShape, MetaType};

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
    let name = |text: &str| Name::new(text).expect("a plain name");
    let mut catalog = Catalog::default();
    let mut reaction = RelationDef::new(name("reaction"), ReadPolicy::Public);
    reaction.one_of = vec![name("love"), name("wow")];
    catalog.declare(reaction);
    let mut favorite = RelationDef::new(name("favorite"), ReadPolicy::Own);
    favorite.limit_per_subject = Some(2);
    catalog.declare(favorite);
    let mut bookmark = RelationDef::new(name("bookmark"), ReadPolicy::Own);
    bookmark.mutable_meta = true;
    let text = MetaType::parse("string(5)").expect("a type");
    bookmark.meta = Some(MetaShape([("memo".to_owned(), text)].into()));
    catalog.declare(bookmark);
    catalog
});

#[derive(Default)]
struct World {
    rows: HashMap<Key, Row>,
    totals: BTreeMap<TotalKey, i64>,
    stamp: u64,
}

impl World {
    fn apply(&mut self, call: &Call) {
        self.stamp += 1_000;
        let mut view = View::default();
        let decided = loop {
            let start = view.savepoint();
            match decide(call, Stamp(self.stamp), Stamp(self.stamp), self.stamp, &CATALOG, &mut view) {
                Ok(decided) if !view.misses() => break decided,
                Err(Stop::Refused(refusal)) => panic!("{refusal:?}"),
                // What was decided on less than there is counts for nothing.
                Ok(_) | Err(Stop::Miss) => {
                    view.rollback(start);
                    let wants = view.take_missing();
                    assert!(!wants.is_empty(), "a rule missed nothing");
                    for key in wants.rows {
                        let row = self.rows.get(&key).cloned();
                        view.fill_row(key, row);
                    }
                    for key in wants.totals {
                        let total = self.totals.get(&key).copied().unwrap_or_default();
                        view.fill_total(key, total);
                    }
                }
            }
        };
        if let Ok(Reply::Batch(replies)) = &decided.reply {
            assert!(!replies.iter().any(|reply| matches!(reply, Err(Refusal::Broken(_)))), "{replies:?}");
        }
        let changes = view.changes(Stamp(self.stamp));
        for (key, change) in changes.rows {
            match change.after {
                Some(row) => drop(self.rows.insert(key, row)),
                None => drop(self.rows.remove(&key)),
            }
        }
        for (key, by) in changes.adds {
            *self.totals.entry(key).or_default() += by;
        }
    }

    fn adds_up(&self) {
        let mut counted: BTreeMap<TotalKey, i64> = BTreeMap::new();
        for (key, row) in &self.rows {
            if let (Key::Edge(key), Row::Edge(edge)) = (key, row) {
                for total in key.totals(edge) {
                    *counted.entry(total).or_default() += 1;
                }
            }
        }
        let stored: BTreeMap<_, _> = self.totals.iter().filter(|(_, total)| **total != 0).collect();
        assert_eq!(stored, counted.iter().collect());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(sent) = serde_json::from_slice::<Vec<&serde_json::value::RawValue>>(bytes) else { return };
    let read = sent.iter().filter_map(|raw| serde_json::from_str::<Command>(raw.get()).ok());
    // This world knows no ranks.
    let commands: Vec<Command> = read.filter(|command| !matches!(command, Command::Board(board::Command::ChangeScore(ChangeScore { .. })))).take(64).collect();
    let mut world = World::default();
    for atomic in [false, true, false] {
        world.apply(&Call::system(Command::from(Batch { atomic, commands: commands.clone() })));
        world.adds_up();
    }
});
