//! Every row and total asked for: one script, or one for every slot.

use std::collections::BTreeMap;

use futures_util::future::{try_join, try_join_all};
use redis::Value;
use tally_core::rows::{Key, Row, Side, Standing, TotalKey, TotalOf};
use tally_core::time::Stamp;
use tally_core::view::Wants;
use tally_core::{Name, ObjectId};
use tally_engine::{Loaded, StoreError};

use crate::answer::{items, number, some_text, text};
use crate::orders::point_words;
use crate::part::Word::{Key as K, NoKey, Text as T};
use crate::part::{KeyTable, Word, push};
use crate::places::{NumberAt, Place};
use crate::words::{Ask, MEMBERS_MAX, Words};
use crate::{Redis, rows};

/// Where an answer goes.
#[derive(Clone, Copy)]
enum To {
    Row(usize),
    Total(usize),
    Rank(usize),
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

/// What one slot answered; on one node with the time.
struct Answer {
    now: Option<Stamp>,
    found: Vec<(To, Found)>,
}

enum Found {
    Row(Option<Row>),
    /// An edge, and how many there are with it.
    Counted(Row, i64),
    Total(i64),
    Rank(u64),
}

impl Redis {
    pub(crate) async fn read(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        if self.is_usual() {
            let question = self.usual_question(wants);
            match self.ask(0, &question, wants, "usual").await? {
                Some(answer) => return Ok(loaded(wants, [answer])),
                None => self.set_unusual(),
            }
        }
        let mut questions = self.questions(wants);
        if !self.keys.slots {
            // Nothing is asked for but the time.
            questions.entry(0).or_default();
            let answer = self.ask(0, &questions[&0], wants, "alone").await?;
            return Ok(loaded(wants, answer));
        }
        let asking = questions.iter().map(|(slot, question)| self.ask(*slot, question, wants, "slots"));
        let (now, answers) = try_join(self.time(), try_join_all(asking)).await?;
        let mut loaded = loaded(wants, answers.into_iter().flatten());
        loaded.now = Some(now);
        // Slots are asked one by one; and where answers wait for replicas, so must those that change nothing.
        loaded.of_one_moment = questions.len() < 2;
        loaded.at_once = loaded.of_one_moment && !self.link.options().waits();
        Ok(loaded)
    }

    /// What is asked where nobody was ever suspended and nothing is hidden: edges of one list together.
    fn usual_question(&self, wants: &Wants) -> Question {
        let mut question = Question::default();
        let mut lists: foldhash::HashMap<(&ObjectId, &Name), Vec<(usize, &str)>> = Default::default();
        for (number, key) in wants.rows.iter().enumerate() {
            if let Key::Edge(edge) = key {
                let members = lists.entry((&edge.object, &edge.relation)).or_default();
                members.push((number, edge.subject.as_str()));
            } else if !matches!(key, Key::Subject(_)) {
                match self.keys.place(key) {
                    Place::Key(key) => question.ask(To::Row(number), "s", &[K(&key)]),
                    Place::Field(key, field) => question.ask(To::Row(number), "h", &[K(&key), T(&field)]),
                }
            }
        }
        let (singles, lists): (Vec<_>, Vec<_>) = lists.into_iter().partition(|(_, members)| members.len() == 1);
        if !singles.is_empty() {
            question.words.push("m");
            question.words.number(question.table.words().len() + 1);
            question.words.number(singles.len());
        }
        for ((object, relation), members) in singles {
            let shown = self.keys.shown_pieces(Side::Object, object.as_str(), relation.as_str());
            question.table.append(&shown);
            question.table.append(&[&shown.concat(), ":data"]);
            question.to.push(To::Row(members[0].0));
            question.words.push(members[0].1);
        }
        for ((object, relation), members) in lists {
            let list = self.keys.list(Side::Object, object.as_str(), relation.as_str());
            let (shown, data) = (question.table.place(&list.shown), question.table.append(&[&list.data]));
            for members in members.chunks(MEMBERS_MAX) {
                question.words.push("l");
                question.words.number(shown);
                question.words.number(data);
                question.words.number(members.len());
                for (number, member) in members {
                    question.to.push(To::Row(*number));
                    question.words.push(member);
                }
            }
        }
        for (number, total) in wants.totals.iter().enumerate() {
            self.ask_total(&mut question, To::Total(number), total, true);
        }
        for (number, standing) in wants.ranks.iter().enumerate() {
            ask_rank(&mut question, To::Rank(number), standing, &self.keys.order(&standing.order));
        }
        question
    }

    fn ask_total(&self, question: &mut Question, to: To, total: &TotalKey, usual: bool) {
        match total.of() {
            TotalOf::Number(number) => {
                let NumberAt { hash, field, .. } = self.keys.number(&number);
                question.ask(to, "h", &[K(&hash), T(&field)]);
            }
            TotalOf::Object(object, relation) if usual => {
                let shown = self.keys.shown(Side::Object, object.as_str(), relation.as_str());
                question.ask(to, "c", &[K(&shown)]);
            }
            TotalOf::Subject(subject, relation) if usual => {
                let shown = self.keys.shown(Side::Subject, subject.as_str(), relation.as_str());
                question.ask(to, "c", &[K(&shown)]);
            }
            TotalOf::Object(object, relation) => {
                let list = self.keys.list(Side::Object, object.as_str(), relation.as_str());
                question.ask(to, "t", &[K(&list.shown), NoKey, K(&list.off), T(relation.as_str())]);
            }
            TotalOf::Subject(subject, relation) => {
                let list = self.keys.list(Side::Subject, subject.as_str(), relation.as_str());
                question.ask(to, "t", &[K(&list.shown), K(&list.hidden), K(&list.off), T(relation.as_str())]);
            }
            TotalOf::Kind(object, relation, kind) => {
                let kinds = self.keys.kinds(object.as_str(), relation.as_str());
                question.ask(to, "h", &[K(&kinds), T(kind.as_str())]);
            }
        }
    }

    fn questions(&self, wants: &Wants) -> BTreeMap<u16, Question> {
        let mut questions: BTreeMap<u16, Question> = BTreeMap::new();
        for (number, key) in wants.rows.iter().enumerate() {
            let to = To::Row(number);
            if let Key::Edge(edge) = key {
                let list = self.keys.list(Side::Object, edge.object.as_str(), edge.relation.as_str());
                let (field, member) = (T(edge.relation.as_str()), T(edge.subject.as_str()));
                let words = [K(&list.shown), K(&list.hidden), K(&list.data), K(&list.off), field, member];
                questions.entry(self.keys.part(&list.shown)).or_default().ask(to, "e", &words);
                continue;
            }
            match self.keys.place(key) {
                Place::Key(key) => questions.entry(self.keys.part(&key)).or_default().ask(to, "s", &[K(&key)]),
                Place::Field(key, field) => {
                    questions.entry(self.keys.part(&key)).or_default().ask(to, "h", &[K(&key), T(&field)]);
                }
            }
        }
        for (number, total) in wants.totals.iter().enumerate() {
            let home = match total.of() {
                TotalOf::Object(object, _) | TotalOf::Kind(object, ..) => self.keys.home(Side::Object, object.as_str()),
                TotalOf::Subject(subject, _) => self.keys.home(Side::Subject, subject.as_str()),
                TotalOf::Number(number) => self.keys.number(&number).hash,
            };
            let question = questions.entry(self.keys.part(&home)).or_default();
            self.ask_total(question, To::Total(number), total, false);
        }
        for (number, standing) in wants.ranks.iter().enumerate() {
            let order = self.keys.order(&standing.order);
            let question = questions.entry(self.keys.part(&order)).or_default();
            ask_rank(question, To::Rank(number), standing, &order);
        }
        questions
    }

    /// Asks one slot, again as long as there was something to finish in it. Nothing where something unusual was
    /// done in the store, and not asked for.
    async fn ask(
        &self,
        slot: u16,
        question: &Question,
        wants: &Wants,
        mode: &str,
    ) -> Result<Option<Answer>, StoreError> {
        let open = self.keys.open(slot);
        let system = |name| if self.keys.slots { self.keys.open(slot) } else { self.keys.system(name) };
        let mut ask = Ask::new([open, system("unusual"), system("time"), system("stamp")], &[mode]);
        ask.keys.append(question.table.words());
        ask.words.append(&question.words);
        loop {
            let mut values = items(self.link.run(&self.scripts.load, &ask).await?)?.into_iter();
            if values.len() == 1 {
                return Ok(None);
            }
            let (time, pressing) = (number(values.next())?, number(values.next())?);
            if self.is_stale(slot, values.next()).await? {
                continue;
            }
            let mut found = Vec::with_capacity(question.to.len());
            for to in &question.to {
                found.push((*to, read(*to, &mut values, wants)?));
            }
            let now = if self.keys.slots { None } else { Some(self.told_time(time, pressing).await?) };
            return Ok(Some(Answer { now, found }));
        }
    }
}

/// Everything in its place.
fn loaded(wants: &Wants, answers: impl IntoIterator<Item = Answer>) -> Loaded {
    let (rows, totals) = (vec![None; wants.rows.len()], vec![0; wants.totals.len()]);
    let mut loaded = Loaded { rows, totals, ranks: vec![0; wants.ranks.len()], ..Loaded::default() };
    for answer in answers {
        loaded.now = answer.now;
        for found in answer.found {
            match found {
                (To::Row(place), Found::Row(row)) => loaded.rows[place] = row,
                (To::Row(place), Found::Counted(row, count)) => {
                    if let Key::Edge(edge) = &wants.rows[place] {
                        let (object, relation) = (edge.object.clone(), edge.relation.clone());
                        loaded.also.push((TotalKey::Object { object, relation }, count));
                    }
                    loaded.rows[place] = Some(row);
                }
                (To::Total(place), Found::Total(total)) => loaded.totals[place] = total,
                (To::Rank(place), Found::Rank(before)) => loaded.ranks[place] = before,
                _ => {}
            }
        }
    }
    loaded
}

fn read(to: To, values: &mut impl Iterator<Item = Value>, wants: &Wants) -> Result<Found, StoreError> {
    match to {
        To::Total(number) => {
            let is_length = matches!(wants.totals[number], TotalKey::Object { .. } | TotalKey::Subject { .. });
            total(values, is_length).map(Found::Total)
        }
        To::Rank(_) => Ok(Found::Rank(number(values.next())? as u64)),
        To::Row(number) => {
            let Some(found) = text(values.next().unwrap_or(Value::Nil))? else { return Ok(Found::Row(None)) };
            let key = &wants.rows[number];
            if !matches!(key, Key::Edge(_)) {
                return Ok(Found::Row(Some(rows::row(key, &found)?)));
            }
            let (hidden, rest) = found.strip_prefix('h').map_or((false, found.as_str()), |rest| (true, rest));
            let (score, rest) = rest.split_once(' ').ok_or_else(|| rows::unreadable(&found))?;
            let (count, data) = rest.split_once(' ').ok_or_else(|| rows::unreadable(&found))?;
            let row = Row::Edge(rows::edge(hidden, score, data)?);
            Ok(match count.parse() {
                Ok(count) => Found::Counted(row, count),
                Err(_) => Found::Row(Some(row)),
            })
        }
    }
}

fn ask_rank(question: &mut Question, to: To, standing: &Standing, order: &str) {
    let [among, score, element] = point_words(standing);
    question.ask(to, "r", &[K(order), T(&among), T(&score), T(&element)]);
}

fn total(values: &mut impl Iterator<Item = Value>, is_length: bool) -> Result<i64, StoreError> {
    if !is_length {
        let found = text(values.next().unwrap_or(Value::Nil))?;
        return found.map_or(Ok(0), |text| text.parse().map_err(|_| rows::unreadable(&text)));
    }
    let (length, off) = (number(values.next())?, some_text(values.next())?);
    let off: i64 = off.parse().map_err(|_| rows::unreadable(&off))?;
    Ok(length.saturating_add(off))
}
