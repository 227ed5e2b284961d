//! Every name that a case can have used, so that a whole store can be read through the engine's
//! own calls and compared.

use std::collections::{BTreeMap, BTreeSet};

use tally_core::rows::{EdgeKey, JobId, Key, ListKey, ReplayKey, Row, Side, TotalKey};
use tally_core::view::Wants;
use tally_core::{Name, ObjectId, SubjectId};
use tally_engine::Engine;

use crate::sample;

/// The names in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Universe {
    pub(crate) subjects: Vec<SubjectId>,
    pub(crate) objects: Vec<ObjectId>,
    pub(crate) relations: Vec<Name>,
    pub(crate) kinds: Vec<Name>,
    pub(crate) replays: Vec<ReplayKey>,
    pub(crate) jobs: Vec<JobId>,
    pub(crate) api_keys: Vec<String>,
    /// Rows and totals of counting.
    pub(crate) counted: (Vec<Key>, Vec<TotalKey>),
}

/// Everything that a store holds of a universe: rows that are there, totals that are not zero.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Dump {
    pub(crate) rows: BTreeMap<Key, Row>,
    pub(crate) totals: BTreeMap<TotalKey, i64>,
}

/// So many rows are loaded at once.
const LOAD_ROWS: usize = 1_000;

impl Universe {
    pub(crate) fn new(subjects: &[&str], objects: &[&str], relations: &[&str]) -> Self {
        Self {
            subjects: subjects.iter().map(|text| sample::subject(text)).collect(),
            objects: objects.iter().map(|text| sample::object(text)).collect(),
            relations: relations.iter().map(|text| sample::name(text)).collect(),
            kinds: ["like", "love", "wow"].map(sample::name).to_vec(),
            ..Self::default()
        }
    }

    pub(crate) fn edges(&self) -> impl Iterator<Item = EdgeKey> + '_ {
        self.objects.iter().flat_map(move |object| {
            self.relations.iter().flat_map(move |relation| {
                self.subjects.iter().map(move |subject| EdgeKey {
                    object: object.clone(),
                    relation: relation.clone(),
                    subject: subject.clone(),
                })
            })
        })
    }

    fn rows(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.edges().map(Key::Edge).collect();
        keys.extend(self.objects.iter().cloned().map(Key::Object));
        keys.extend(self.subjects.iter().cloned().map(Key::Subject));
        keys.extend(self.replays.iter().cloned().map(Key::Replay));
        keys.extend(self.jobs.iter().copied().map(Key::Job));
        keys.extend(self.api_keys.iter().cloned().map(Key::ApiKey));
        keys.extend(self.counted.0.iter().cloned());
        keys
    }

    fn totals(&self) -> Vec<TotalKey> {
        let mut totals = BTreeSet::new();
        for EdgeKey { object, relation, subject } in self.edges() {
            for kind in self.kinds.iter().cloned() {
                totals.insert(TotalKey::Kind { object: object.clone(), relation: relation.clone(), kind });
            }
            totals.insert(TotalKey::Object { object, relation: relation.clone() });
            totals.insert(TotalKey::Subject { subject, relation });
        }
        totals.extend(self.counted.1.iter().cloned());
        totals.into_iter().collect()
    }

    /// Every list: of both sides, of one relation and of all, visible and hidden.
    pub(crate) fn lists(&self) -> Vec<ListKey> {
        let objects = self.objects.iter().map(|id| (Side::Object, id.as_str()));
        let subjects = self.subjects.iter().map(|id| (Side::Subject, id.as_str()));
        let relations: Vec<Option<Name>> = self.relations.iter().cloned().map(Some).chain([None]).collect();
        let mut lists = Vec::new();
        for (side, id) in objects.chain(subjects) {
            for relation in &relations {
                for hidden in [false, true] {
                    lists.push(ListKey { side, id: id.to_owned(), relation: relation.clone(), hidden });
                }
            }
        }
        lists
    }

    /// Reads everything.
    pub(crate) async fn dump<E: Engine>(&self, engine: &E) -> Dump {
        let mut dump = Dump::default();
        for keys in self.rows().chunks(LOAD_ROWS) {
            let wants = Wants::rows(keys.to_vec());
            let loaded = engine.load(&wants).await.expect("a load works");
            let found = wants.rows.into_iter().zip(loaded.rows);
            dump.rows.extend(found.filter_map(|(key, row)| Some((key, row?))));
        }
        for keys in self.totals().chunks(LOAD_ROWS) {
            let wants = Wants::totals(keys.to_vec());
            let loaded = engine.load(&wants).await.expect("a load works");
            dump.totals.extend(wants.totals.into_iter().zip(loaded.totals).filter(|(_, value)| *value != 0));
        }
        dump
    }
}
