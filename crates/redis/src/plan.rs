//! What a commit checks and changes, slot by slot.

use std::collections::{BTreeMap, BTreeSet};

use tally_core::Name;
use tally_core::rows::{Change, Changes, Edge, EdgeKey, Key, Row, Side, TotalKey, TotalOf};
use tally_engine::{Seen, StoreError};

use crate::keys::{Keys, edges_entry};
use crate::part::Word::{Key as K, NoKey, Text as T};
use crate::part::{Part, Word};
use crate::places::{NumberAt, Place, entry_of};
use crate::rows::{data, row_text, score};

/// By how much each total changes because of the edges that change.
pub(crate) type Explained = foldhash::HashMap<TotalKey, i64>;

/// A commit.
pub(crate) struct Plan<'a> {
    pub(crate) keys: &'a Keys,
    pub(crate) parts: BTreeMap<u16, Part>,
    /// Relations in which edges are made.
    pub(crate) relations: BTreeSet<Name>,
    /// Slots in which something is, or is under way.
    pub(crate) slots: BTreeSet<u16>,
    pub(crate) usual: Usual,
    /// Lists that have edges when this is done, by their fingerprints.
    pub(crate) made: Vec<u64>,
    /// By how much each total, each rank and each sequence changes that is told.
    pub(crate) by: Vec<i64>,
}

/// What a commit has to do with what is unusual: suspensions, hidden edges, corrections. As long as there was
/// never one in a store without slots, a like need not look for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Usual {
    /// It stands on there being none.
    Needed,
    /// Nothing.
    #[default]
    Whatever,
    /// It makes one.
    Ended,
}

impl Usual {
    /// As the script is told.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Needed => "usual",
            Self::Whatever => "",
            Self::Ended => "unusual",
        }
    }
}

impl<'a> Plan<'a> {
    pub(crate) fn new(keys: &'a Keys, seen: &Seen<'_>, changes: &Changes) -> Result<Self, StoreError> {
        let mut plan = Self::empty(keys);
        // What the lists themselves will say, so that only the rest is written down as a number.
        let mut explained = Explained::default();
        let changed: foldhash::HashSet<&Key> = changes.rows.iter().map(|(key, _)| key).collect();
        for (key, row) in seen.view.seen().filter(|(key, _)| !changed.contains(key)) {
            plan.check(key, row.as_ref(), false)?;
        }
        for (key, change) in &changes.rows {
            if !plan.put_numbered(key, change)? {
                plan.check(key, change.before.as_ref(), true)?;
                plan.change(key, change, &mut explained)?;
            }
        }
        for (total, value) in seen.view.seen_totals() {
            plan.check_total(total, value);
        }
        for (place, (total, by)) in changes.adds.iter().enumerate() {
            plan.add(total, by - explained.remove(total).unwrap_or(0));
            plan.tell(place, total, *by);
        }
        for (total, by) in explained.into_iter().filter(|(_, by)| *by != 0) {
            plan.add(&total, -by);
        }
        plan.put_ranks(seen.view, changes.adds.len());
        plan.take_numbers(changes, changes.adds.len() + seen.view.told_ranks().len());
        if keys.slots {
            plan.slots.extend(plan.parts.keys());
        }
        Ok(plan)
    }

    pub(crate) fn empty(keys: &'a Keys) -> Self {
        let (parts, relations, slots) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { keys, parts, relations, slots, usual: Usual::default(), made: Vec::new(), by: Vec::new() }
    }

    /// Puts the subject's side of an edge as the object's side is, which is the one that counts; one that is both shown
    /// and hidden there is shown.
    pub(crate) fn mend(keys: &'a Keys, key: &EdgeKey, edge: Option<&Edge>) -> Result<Self, StoreError> {
        let mut plan = Self::empty(keys);
        plan.check_edge(key, edge, true)?;
        if edge.is_some_and(|edge| !edge.hidden) {
            let list = keys.list(Side::Object, key.object.as_str(), key.relation.as_str());
            plan.part(&list.shown).change("x", &[K(&list.hidden), T(key.subject.as_str())]);
        }
        let list = keys.list(Side::Subject, key.subject.as_str(), key.relation.as_str());
        let part = plan.part(&list.shown);
        for (here, hidden) in [(&list.shown, false), (&list.hidden, true)] {
            match edge.filter(|edge| edge.hidden == hidden) {
                Some(edge) => {
                    part.change("z", &[K(here), T(key.object.as_str()), T(&score(edge.created))]);
                }
                None => part.change("x", &[K(here), T(key.object.as_str())]),
            }
        }
        if keys.slots {
            plan.slots.extend(plan.parts.keys());
        }
        Ok(plan)
    }

    pub(crate) fn part(&mut self, key: &str) -> &mut Part {
        self.parts.entry(self.keys.part(key)).or_default()
    }

    pub(crate) fn index_of(&mut self, home: &str) -> String {
        let slot = crate::slots::slot_of(home);
        self.slots.insert(slot);
        self.keys.index(slot)
    }

    pub(crate) fn check(&mut self, key: &Key, row: Option<&Row>, writes: bool) -> Result<(), StoreError> {
        if let Key::Edge(edge_key) = key {
            return self.check_edge(edge_key, row.and_then(Row::edge), writes);
        }
        let text = row.map(row_text).transpose()?;
        match (self.keys.place(key), text) {
            (Place::Key(key), None) => self.part(&key).check("n", writes, &[K(&key)]),
            (Place::Key(key), Some(text)) => self.part(&key).check("s", writes, &[K(&key), T(&text)]),
            (Place::Field(key, field), None) => self.part(&key).check("g", writes, &[K(&key), T(&field)]),
            (Place::Field(key, field), Some(text)) => {
                self.part(&key).check("h", writes, &[K(&key), T(&field), T(&text)]);
            }
        }
        Ok(())
    }

    fn check_edge(&mut self, key: &EdgeKey, edge: Option<&Edge>, writes: bool) -> Result<(), StoreError> {
        let list = self.keys.list(Side::Object, key.object.as_str(), key.relation.as_str());
        let member = key.subject.as_str();
        let Some(edge) = edge else {
            self.part(&list.shown).check("a", writes, &[K(&list.shown), K(&list.hidden), T(member)]);
            return Ok(());
        };
        let here = if edge.hidden { &list.hidden } else { &list.shown };
        let (score, data) = (score(edge.created), data(edge)?);
        let mut words = vec![K(&list.shown), K(here), K(&list.data), T(member), T(&score)];
        words.extend(data.as_deref().map(T));
        self.part(&list.shown).check(if data.is_some() { "E" } else { "e" }, writes, &words);
        Ok(())
    }

    pub(crate) fn check_total(&mut self, total: &TotalKey, value: i64) {
        let value_text = value.to_string();
        match total.of() {
            TotalOf::Number(number) => {
                let NumberAt { hash, field, .. } = self.keys.number(&number);
                self.part(&hash).check("T", false, &[K(&hash), T(&field), T(&value_text)]);
            }
            TotalOf::Object(object, relation) => {
                let list = self.keys.list(Side::Object, object.as_str(), relation.as_str());
                let words = [K(&list.shown), NoKey, K(&list.off), T(relation.as_str()), T(&value_text)];
                self.part(&list.shown).check("t", false, &words);
            }
            TotalOf::Subject(subject, relation) => {
                let list = self.keys.list(Side::Subject, subject.as_str(), relation.as_str());
                let words = [K(&list.shown), K(&list.hidden), K(&list.off), T(relation.as_str()), T(&value_text)];
                self.part(&list.shown).check("t", false, &words);
            }
            TotalOf::Kind(object, relation, kind) => {
                let kinds = self.keys.kinds(object.as_str(), relation.as_str());
                self.part(&kinds).check("T", false, &[K(&kinds), T(kind.as_str()), T(&value_text)]);
            }
        }
    }

    pub(crate) fn change(&mut self, key: &Key, change: &Change, explained: &mut Explained) -> Result<(), StoreError> {
        if let Key::Edge(key) = key {
            let as_edge = |row: &Option<Row>| row.as_ref().and_then(Row::edge).cloned();
            return self.change_edge(key, as_edge(&change.before), as_edge(&change.after), explained);
        }
        let text = change.after.as_ref().map(row_text).transpose()?;
        match (self.keys.place(key), text) {
            (Place::Key(home), text) => {
                if matches!(key, Key::Subject(_)) {
                    self.usual = Usual::Ended;
                }
                let (index, entry) = (self.index_of(&home), entry_of(key).unwrap_or_default());
                match text {
                    Some(text) => self.part(&home).change("S", &[K(&home), T(&text), K(&index), T(&entry)]),
                    None => self.part(&home).change("s", &[K(&home), K(&index), T(&entry)]),
                }
                self.change_due(&home, key, change)?;
            }
            (Place::Field(hash, field), text) => {
                match (entry_of(key), &text) {
                    (Some(_), text) => self.change_field(key, &hash, &field, text.as_deref()),
                    (None, Some(text)) => self.part(&hash).change("H", &[K(&hash), T(&field), T(text)]),
                    (None, None) => self.part(&hash).change("h", &[K(&hash), T(&field)]),
                }
                self.change_order(key, change);
                self.change_due(&hash, key, change)?;
            }
        }
        Ok(())
    }

    fn change_edge(
        &mut self,
        key: &EdgeKey,
        before: Option<Edge>,
        after: Option<Edge>,
        explained: &mut Explained,
    ) -> Result<(), StoreError> {
        for (edge, by) in [(&before, -1), (&after, 1)] {
            for total in edge.iter().flat_map(|edge| key.totals(edge)) {
                if !matches!(total, TotalKey::Kind { .. }) {
                    *explained.entry(total).or_insert(0) += by;
                }
            }
        }
        if after.as_ref().is_some_and(|edge| edge.hidden) {
            self.usual = Usual::Ended;
        }
        if after.is_some() {
            self.relations.insert(key.relation.clone());
        }
        let stands = |edge: &Edge| (edge.created, edge.hidden);
        if before.as_ref().map(stands) != after.as_ref().map(stands) {
            self.move_edge(key, before.as_ref(), after.as_ref());
        }
        let shown_kind = |edge: &Edge| if edge.hidden { None } else { edge.kind.clone() };
        if before.as_ref().and_then(shown_kind) != after.as_ref().and_then(shown_kind) {
            let kinds = self.keys.kinds(key.object.as_str(), key.relation.as_str());
            self.part(&kinds).change("M", &[K(&kinds)]);
        }
        let (was, will) = (before.as_ref().map(data), after.as_ref().map(data));
        let (was, will) = (was.transpose()?.flatten(), will.transpose()?.flatten());
        if was != will {
            let list = self.keys.list(Side::Object, key.object.as_str(), key.relation.as_str());
            let (part, member) = (self.part(&list.shown), key.subject.as_str());
            match will {
                Some(text) => part.change("H", &[K(&list.data), T(member), T(&text)]),
                None => part.change("h", &[K(&list.data), T(member)]),
            }
        }
        Ok(())
    }

    /// An edge's place in both lists. It comes into one before it leaves the other, so that an object
    /// that has edges is always listed.
    fn move_edge(&mut self, key: &EdgeKey, before: Option<&Edge>, after: Option<&Edge>) {
        let moved = before.filter(|was| after.is_none_or(|will| will.hidden != was.hidden));
        for side in [Side::Object, Side::Subject] {
            let list = self.keys.list(side, key.end(side), key.relation.as_str());
            let member = key.other(side);
            let of = |hidden: bool| if hidden { &list.hidden } else { &list.shown };
            let listed = side == Side::Object;
            let index = if listed { self.index_of(&list.shown) } else { String::new() };
            let entry = edges_entry(key);
            let part = self.part(&list.shown);
            if let Some(edge) = after {
                let score = score(edge.created);
                let mut words: Vec<Word<'_>> = vec![K(of(edge.hidden)), T(member), T(&score)];
                if listed {
                    words.extend([K(&index), T(&entry)]);
                }
                part.change(if listed { "Z" } else { "z" }, &words);
            }
            if let Some(edge) = moved {
                let mut words: Vec<Word<'_>> = vec![K(of(edge.hidden)), T(member)];
                if listed {
                    words.extend([K(of(!edge.hidden)), K(&index), T(&entry)]);
                }
                part.change(if listed { "X" } else { "x" }, &words);
            }
        }
    }

    /// Adds what no list accounts for.
    pub(crate) fn add(&mut self, total: &TotalKey, by: i64) {
        if by == 0 {
            return;
        }
        let (hash, field, relation) = match total.of() {
            TotalOf::Number(number) => return self.add_number(self.keys.number(&number), by),
            TotalOf::Object(object, relation) => {
                (self.keys.list(Side::Object, object.as_str(), relation.as_str()).off, relation, relation)
            }
            TotalOf::Subject(subject, relation) => {
                (self.keys.list(Side::Subject, subject.as_str(), relation.as_str()).off, relation, relation)
            }
            TotalOf::Kind(object, relation, kind) => {
                (self.keys.kinds(object.as_str(), relation.as_str()), kind, relation)
            }
        };
        if !matches!(total, TotalKey::Kind { .. }) {
            self.usual = Usual::Ended;
        }
        self.relations.insert(relation.clone());
        self.part(&hash).change("I", &[K(&hash), T(field.as_str()), T(&by.to_string())]);
    }

    /// Asks for a total as it is after the commit; its change is the next to be written down.
    pub(crate) fn tell(&mut self, place: usize, total: &TotalKey, by: i64) {
        self.by.push(by);
        match total.of() {
            TotalOf::Number(number) => {
                let NumberAt { hash, field, .. } = self.keys.number(&number);
                self.part(&hash).tell(place, "k", &[K(&hash), T(&field)]);
            }
            TotalOf::Object(object, relation) => {
                let list = self.keys.list(Side::Object, object.as_str(), relation.as_str());
                let words = [K(&list.shown), K(&list.off), T(relation.as_str())];
                self.part(&list.shown).tell(place, "K", &words);
            }
            TotalOf::Kind(object, relation, kind) => {
                let kinds = self.keys.kinds(object.as_str(), relation.as_str());
                self.part(&kinds).tell(place, "k", &[K(&kinds), T(kind.as_str())]);
            }
            // Shown to nobody but who asks; a limit loads it.
            TotalOf::Subject(subject, relation) if by == 0 => {
                let list = self.keys.list(Side::Subject, subject.as_str(), relation.as_str());
                let words = [K(&list.shown), K(&list.hidden), K(&list.off), T(relation.as_str())];
                self.part(&list.shown).tell(place, "S", &words);
            }
            TotalOf::Subject(..) => {}
        }
    }
}
