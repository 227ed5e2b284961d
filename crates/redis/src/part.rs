//! One slot's share of a commit or of a load: its keys, each once, and words that name them by place.

use crate::gaps::{Gap, Gapped};
use crate::numbered::Numbered;
use crate::words::{Ask, Words};

/// Keys in the order in which they were first named.
#[derive(Default)]
pub(crate) struct KeyTable {
    places: foldhash::HashMap<String, usize>,
    keys: Words,
}

impl KeyTable {
    /// The place of a key, counted from one.
    pub(crate) fn place(&mut self, key: &str) -> usize {
        if let Some(place) = self.places.get(key) {
            return *place;
        }
        self.keys.push(key);
        self.places.insert(key.to_owned(), self.keys.len());
        self.keys.len()
    }

    /// The place of a key that need not be found again, given in pieces.
    pub(crate) fn append(&mut self, pieces: &[&str]) -> usize {
        self.keys.push_all(pieces);
        self.keys.len()
    }

    /// All of them, as they are asked for.
    pub(crate) fn words(&self) -> &Words {
        &self.keys
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = String> + '_ {
        self.keys.iter().map(|key| String::from_utf8_lossy(key).into_owned())
    }
}

/// What a part of a commit checks, changes and tells.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) table: KeyTable,
    pub(crate) checks: Words,
    pub(crate) changes: Words,
    pub(crate) tells: Words,
    /// Numbers of sequences that belong into checks, changes and what is told.
    pub(crate) fills: Words,
    /// Of how many sequences it takes some.
    pub(crate) takes: usize,
    /// Which addition each number that is told belongs to.
    pub(crate) told: Vec<usize>,
    /// New edges that are made in bulk, each alone in its list or several together, and which additions their
    /// counts belong to.
    pub(crate) singles: Words,
    pub(crate) singles_first: usize,
    pub(crate) groups: Words,
    pub(crate) bulk_told: Vec<usize>,
}

/// A word of a check, a change or what is told.
pub(crate) enum Word<'a> {
    /// A key, by its place.
    Key(&'a str),
    /// No key.
    NoKey,
    /// Anything else.
    Text(&'a str),
    /// The same, where numbers are missing.
    Gapped(&'a Gapped),
}

impl Part {
    pub(crate) fn check(&mut self, op: &str, writes: bool, words: &[Word<'_>]) {
        self.checks.push(op);
        self.checks.push(if writes { "1" } else { "0" });
        self.fill("c", self.checks.len(), words);
        push(&mut self.table, &mut self.checks, words);
    }

    pub(crate) fn change(&mut self, op: &str, words: &[Word<'_>]) {
        self.changes.push(op);
        self.fill("w", self.changes.len(), words);
        push(&mut self.table, &mut self.changes, words);
    }

    /// Writes down which numbers belong into the next words of the checks, the changes or what is told: the last ones first, so that those before
    /// them keep their places.
    fn fill(&mut self, section: &str, next: usize, words: &[Word<'_>]) {
        for (offset, word) in words.iter().enumerate() {
            if let Word::Gapped(Gapped { gaps, sequence: (hash, field), .. }) = word {
                for Gap { at, place, form } in gaps.iter().rev() {
                    self.fills.number(self.table.place(hash));
                    self.fills.push(field);
                    self.fills.digits("", u64::from(*place));
                    self.fills.push(section);
                    self.fills.number(next + offset);
                    self.fills.number(*at);
                    self.fills.push(form);
                }
            }
        }
    }

    /// Asks for a number as it is after the changes.
    pub(crate) fn tell(&mut self, addition: usize, op: &str, words: &[Word<'_>]) {
        self.told.push(addition);
        self.tells.push(op);
        self.fill("t", self.tells.len(), words);
        push(&mut self.table, &mut self.tells, words);
    }

    /// Whether anything changes.
    pub(crate) fn writes(&self) -> bool {
        self.changes.len() + self.singles.len() + self.groups.len() > 0
    }

    /// What `commit.lua` is asked: the first keys and words, then this part's own.
    pub(crate) fn ask(&self, first: &[&str], words: [&str; 4], by: &Numbered, waits: bool) -> Ask {
        let mut ask = Ask::default();
        first.iter().for_each(|key| ask.keys.push(key));
        ask.keys.append(self.table.words());
        words.iter().for_each(|word| ask.words.push(word));
        ask.words.number(self.checks.len());
        ask.words.number(self.changes.len());
        ask.words.number(self.tells.len());
        ask.words.digits("", by.number);
        ask.words.digits("", by.low());
        ask.words.push(if waits { "1" } else { "0" });
        ask.words.number(self.fills.len());
        for words in [&self.fills, &self.checks, &self.changes, &self.tells] {
            ask.words.append(words);
        }
        ask.words.number(self.singles.len() / 3);
        ask.words.number(self.singles_first);
        ask.words.append(&self.singles);
        ask.words.append(&self.groups);
        ask
    }
}

/// Writes words down, keys by their places.
pub(crate) fn push(table: &mut KeyTable, to: &mut Words, words: &[Word<'_>]) {
    for word in words {
        match word {
            Word::Key(key) => to.number(table.place(key)),
            Word::NoKey => to.push("0"),
            Word::Text(text) => to.push(text),
            Word::Gapped(gapped) => to.push(&gapped.text),
        }
    }
}
