//! Every row and total asked for: one script, or one for every slot.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use redis::Value;
use tally_core::rows::{Key, Row, Side, TotalKey};
use tally_core::time::Stamp;
use tally_core::view::Wants;
use tally_engine::{Loaded, Mark, StoreError};

use crate::Redis;
use crate::answer::{items, number, some_text, text};
use crate::connection::{Ask, Words};
use crate::part::Word::{Key as K, NoKey, Text as T};
use crate::part::{KeyTable, Word, push};
use crate::plan::{Place, place};
use crate::rows;

/// Where an answer goes.
#[derive(Clone, Copy)]
enum To {
    Row(usize),
    Total(usize),
}

/// What is asked of one slot.
#[derive(Default)]
struct Question {
    table: KeyTable,
    words: Words,
    to: Vec<To>,
}

impl Question {
    fn ask(&mut self, to: To, op: &str, words: &[Word<'_>]) {
        self.to.push(to);
        self.words.push(op);
        push(&mut self.table, &mut self.words, words);
    }
}

/// What one slot answered.
struct Answer {
    now: Stamp,
    found: Vec<(To, Found)>,
}

enum Found {
    Row(Option<Row>),
    Total(i64),
}

impl Redis {
    pub(crate) async fn read(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        let questions = self.questions(wants);
        let asking = questions.iter().map(|(slot, question)| self.ask(*slot, question, wants));
        let mut loaded = Loaded {
            rows: vec![None; wants.rows.len()],
            totals: vec![0; wants.totals.len()],
            mark: Mark::default(),
            now: None,
        };
        for answer in try_join_all(asking).await? {
            // Nodes have clocks of their own; the one that is ahead counts.
            loaded.now = loaded.now.max(Some(answer.now));
            for found in answer.found {
                match found {
                    (To::Row(place), Found::Row(row)) => loaded.rows[place] = row,
                    (To::Total(place), Found::Total(total)) => loaded.totals[place] = total,
                    _ => {}
                }
            }
        }
        Ok(loaded)
    }

    fn questions(&self, wants: &Wants) -> BTreeMap<u16, Question> {
        let mut questions: BTreeMap<u16, Question> = BTreeMap::new();
        for (number, key) in wants.rows.iter().enumerate() {
            let to = To::Row(number);
            if let Key::Edge(edge) = key {
                let list = self.keys.list(Side::Object, edge.object.as_str(), edge.relation.as_str());
                let words = [K(&list.shown), K(&list.hidden), K(&list.data), T(edge.subject.as_str())];
                questions.entry(self.keys.part(&list.shown)).or_default().ask(to, "e", &words);
                continue;
            }
            match place(&self.keys, key) {
                Place::Key(key) => questions.entry(self.keys.part(&key)).or_default().ask(to, "s", &[K(&key)]),
                Place::Field(key, field) => {
                    questions.entry(self.keys.part(&key)).or_default().ask(to, "h", &[K(&key), T(&field)]);
                }
            }
        }
        for (number, total) in wants.totals.iter().enumerate() {
            let to = To::Total(number);
            match total {
                TotalKey::Object { object, relation } => {
                    let list = self.keys.list(Side::Object, object.as_str(), relation.as_str());
                    let words = [K(&list.shown), NoKey, K(&list.off), T(relation.as_str())];
                    questions.entry(self.keys.part(&list.shown)).or_default().ask(to, "t", &words);
                }
                TotalKey::Subject { subject, relation } => {
                    let list = self.keys.list(Side::Subject, subject.as_str(), relation.as_str());
                    let words = [K(&list.shown), K(&list.hidden), K(&list.off), T(relation.as_str())];
                    questions.entry(self.keys.part(&list.shown)).or_default().ask(to, "t", &words);
                }
                TotalKey::Kind { object, relation, kind } => {
                    let kinds = self.keys.kinds(object.as_str(), relation.as_str());
                    let words = [K(&kinds), T(kind.as_str())];
                    questions.entry(self.keys.part(&kinds)).or_default().ask(to, "h", &words);
                }
            }
        }
        questions
    }

    /// Asks one slot, again as long as there was something to finish in it.
    async fn ask(&self, slot: u16, question: &Question, wants: &Wants) -> Result<Answer, StoreError> {
        let keys = std::iter::once(self.keys.open(slot)).chain(question.table.keys());
        let mut ask = Ask::new(keys, &[if self.keys.slots { "1" } else { "0" }]);
        ask.words.append(&question.words);
        loop {
            let mut values = items(self.link.run(&self.scripts.load, &ask).await?)?.into_iter();
            let (seconds, micros) = (number(values.next())?, number(values.next())?);
            let open = number(values.next())? == 1;
            if open && self.resolve(slot).await? {
                continue;
            }
            let mut found = Vec::with_capacity(question.to.len());
            for to in &question.to {
                found.push((*to, read(*to, &mut values, wants)?));
            }
            return Ok(Answer { now: Stamp((seconds * 1_000_000 + micros) as u64), found });
        }
    }
}

fn read(to: To, values: &mut impl Iterator<Item = Value>, wants: &Wants) -> Result<Found, StoreError> {
    match to {
        To::Total(number) => total(values, matches!(wants.totals[number], TotalKey::Kind { .. })).map(Found::Total),
        To::Row(number) => {
            let Some(found) = text(values.next().unwrap_or(Value::Nil))? else { return Ok(Found::Row(None)) };
            let key = &wants.rows[number];
            if !matches!(key, Key::Edge(_)) {
                return Ok(Found::Row(Some(rows::row(key, &found)?)));
            }
            let (hidden, rest) = found.strip_prefix('h').map_or((false, found.as_str()), |rest| (true, rest));
            let (score, data) = rest.split_once(' ').ok_or_else(|| rows::unreadable(&found))?;
            Ok(Found::Row(Some(Row::Edge(rows::edge(hidden, score, data)?))))
        }
    }
}

fn total(values: &mut impl Iterator<Item = Value>, kind: bool) -> Result<i64, StoreError> {
    if kind {
        let found = text(values.next().unwrap_or(Value::Nil))?;
        return found.map_or(Ok(0), |text| text.parse().map_err(|_| rows::unreadable(&text)));
    }
    let (length, off) = (number(values.next())?, some_text(values.next())?);
    let off: i64 = off.parse().map_err(|_| rows::unreadable(&off))?;
    Ok(length.saturating_add(off))
}
