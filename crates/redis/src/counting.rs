//! Where counting is kept: the keys of counters, sheets, boards and limits, see `keys.rs`, and how they are listed.

use tally_core::rows::{Among, BoardKey, ChunkKey, CountKey, Key, LimitKey, Row, Score, ScoreKey, Standing, TotalKey};
use tally_core::time::{Stamp, Timestamp};
use tally_core::{KeyId, Name, SubjectId};
use tally_engine::StoreError;

use crate::keys::Keys;
use crate::plan::Place;
use crate::rows::unreadable;
use crate::slots;

/// The keys of a board in one season.
pub(crate) struct BoardKeys {
    /// Who stands where: a sorted set whose own order is the board's.
    pub(crate) order: String,
    /// Each member's score, which is the row.
    pub(crate) scores: String,
}

/// A number in a hash.
pub(crate) struct Number {
    pub(crate) hash: String,
    pub(crate) field: String,
    /// How the hash is listed in its slot; numbers that are no rows are not.
    pub(crate) entry: Option<String>,
}

impl Keys {
    pub(crate) fn counters(&self, key: &str) -> String {
        self.tagged("c", key)
    }

    fn unique(&self, key: &CountKey) -> String {
        format!("{}:{}", self.tagged("u", key.key.as_str()), key.name)
    }

    pub(crate) fn limit(&self, key: &LimitKey) -> String {
        format!("{}:{}", self.tagged("l", &key.key), key.name)
    }

    /// When limits of a slot, or all of them, are to be looked at.
    pub(crate) fn limits_due(&self, part: u16) -> String {
        format!("{}:d:{{{}}}", self.prefix, slots::tag(part))
    }

    fn sheet(&self, sheet: &Name, what: &str) -> String {
        format!("{}:{what}", self.tagged("a", sheet.as_str()))
    }

    /// All seasons of a board have one slot: whoever scores looks at the list of them.
    pub(crate) fn board(&self, board: &BoardKey) -> BoardKeys {
        let season = if board.season == Timestamp(0) { "all".into() } else { board.season.to_string() };
        let dense = if board.levels { ":dense" } else { "" };
        let order = format!("{}:{season}{dense}", self.tagged("b", board.board.as_str()));
        BoardKeys { scores: format!("{order}:scores"), order }
    }

    /// Where a row of counting is; nothing for any other.
    pub(crate) fn counting_place(&self, key: &Key) -> Option<Place> {
        Some(match key {
            Key::Counter(key) => Place::Field(self.counters(key.key.as_str()), key.name.to_string()),
            Key::Touched(key) => Place::Field(format!("{}:at", self.counters(key.key.as_str())), key.name.to_string()),
            Key::Unique(key) => Place::Key(self.unique(key)),
            Key::Limit(key) => Place::Key(self.limit(key)),
            Key::Sheet(sheet) => Place::Key(self.tagged("a", sheet.as_str())),
            Key::Day(sheet, day) => Place::Field(self.sheet(sheet, "days"), day.to_string()),
            Key::Chunk(key) => Place::Field(self.sheet(&key.sheet, &key.day.to_string()), key.chunk.to_string()),
            Key::Attendee(sheet, subject) => Place::Field(self.sheet(sheet, "who"), subject.to_string()),
            Key::Board(board) => Place::Key(self.tagged("b", board.as_str())),
            Key::Score(key) => Place::Field(self.board(&key.board).scores, key.member.to_string()),
            Key::Edge(_)
            | Key::Object(_)
            | Key::Subject(_)
            | Key::Replay(_)
            | Key::Job(_)
            | Key::ApiKey(_)
            | Key::Names => {
                return None;
            }
        })
    }

    /// Where a total is kept as a number that rows can be decided on; nothing for one that counts edges.
    pub(crate) fn number(&self, total: &TotalKey) -> Option<Number> {
        Some(match total {
            TotalKey::Counter(key) => Number {
                hash: self.counters(key.key.as_str()),
                field: key.name.to_string(),
                entry: counting_entry(&Key::Counter(key.clone())),
            },
            TotalKey::Present { sheet, day } => {
                Number { hash: self.sheet(sheet, "present"), field: day.to_string(), entry: None }
            }
            TotalKey::Object { .. } | TotalKey::Kind { .. } | TotalKey::Subject { .. } => return None,
        })
    }
}

/// How a row of counting is listed in its slot. Rows in one hash share an entry. Only what comes last may hold anything.
pub(crate) fn counting_entry(key: &Key) -> Option<String> {
    Some(match key {
        Key::Counter(key) => format!("c{}", key.key),
        Key::Touched(key) => format!("t{}", key.key),
        Key::Unique(key) => format!("u{}\0{}", key.name, key.key),
        Key::Limit(key) => format!("l{}", limit_member(key)),
        Key::Sheet(sheet) => format!("a{sheet}"),
        Key::Day(sheet, _) => format!("d{sheet}"),
        Key::Chunk(key) => format!("k{}\0{}", key.sheet, key.day),
        Key::Attendee(sheet, _) => format!("w{sheet}"),
        Key::Board(board) => format!("b{board}"),
        Key::Score(ScoreKey { board, .. }) => {
            format!("m{}\0{:016x}\0{}", board.board, board.season.0, u8::from(board.levels))
        }
        Key::Edge(_)
        | Key::Object(_)
        | Key::Subject(_)
        | Key::Replay(_)
        | Key::Job(_)
        | Key::ApiKey(_)
        | Key::Names => return None,
    })
}

/// A place on a board, as scripts are asked for it.
pub(crate) fn place_words(standing: &Standing) -> [String; 3] {
    let (among, element) = match &standing.among {
        Among::First => ("f", String::new()),
        Among::Last => ("l", String::new()),
        Among::At { reached, member } => ("a", element(*reached, member)),
    };
    [among.into(), order_score(standing.score), element]
}

/// Makes a row's key of a field.
type KeyOf = Box<dyn Fn(&str) -> Option<Key> + Send + Sync>;

/// What an entry of a slot stands for.
pub(crate) enum Listed {
    /// A row with a key of its own.
    Row(Key),
    /// A hash of rows.
    Hash(String, KeyOf),
}

/// Reads an entry back.
pub(crate) fn listed(keys: &Keys, entry: &str) -> Result<Listed, StoreError> {
    read_entry(keys, entry).ok_or_else(|| unreadable(entry))
}

fn read_entry(keys: &Keys, entry: &str) -> Option<Listed> {
    let (kind, rest) = entry.split_at_checked(1)?;
    let name = |text: &str| Name::new(text).ok();
    let hash = |key: Key, of: KeyOf| match keys.counting_place(&key)? {
        Place::Field(hash, _) => Some(Listed::Hash(hash, of)),
        Place::Key(_) => None,
    };
    // Any field leads to the hash.
    match kind {
        "c" | "t" => {
            let id = KeyId::new(rest).ok()?;
            let of = if kind == "c" { Key::Counter } else { Key::Touched };
            let any = of(CountKey { name: name("a")?, key: id.clone() });
            hash(any, Box::new(move |field| Some(of(CountKey { name: Name::new(field).ok()?, key: id.clone() }))))
        }
        "u" => {
            let (unique, id) = rest.split_once('\0')?;
            Some(Listed::Row(Key::Unique(CountKey { name: name(unique)?, key: KeyId::new(id).ok()? })))
        }
        "l" => limit_of(rest).map(Key::Limit).map(Listed::Row),
        "a" => Some(Listed::Row(Key::Sheet(name(rest)?))),
        "b" => Some(Listed::Row(Key::Board(name(rest)?))),
        "d" => {
            let sheet = name(rest)?;
            let any = Key::Day(sheet.clone(), tally_core::Day(0));
            hash(any, Box::new(move |field| Some(Key::Day(sheet.clone(), field.parse().ok()?))))
        }
        "k" => {
            let (sheet, day) = rest.split_once('\0')?;
            let (sheet, day) = (name(sheet)?, day.parse().ok()?);
            let of = move |chunk| Key::Chunk(ChunkKey { sheet: sheet.clone(), day, chunk });
            hash(of(0), Box::new(move |field| field.parse().ok().map(&of)))
        }
        "w" => {
            let sheet = name(rest)?;
            let any = Key::Attendee(sheet.clone(), SubjectId::new("a").ok()?);
            hash(any, Box::new(move |field| Some(Key::Attendee(sheet.clone(), SubjectId::new(field).ok()?))))
        }
        "m" => {
            let mut words = rest.split('\0');
            let board = name(words.next()?)?;
            let season = Timestamp(u64::from_str_radix(words.next()?, 16).ok()?);
            let board = BoardKey { board, season, levels: words.next()? == "1" };
            let scores = keys.board(&board).scores;
            let of = move |field: &str| {
                Some(Key::Score(ScoreKey { board: board.clone(), member: SubjectId::new(field).ok()? }))
            };
            Some(Listed::Hash(scores, Box::new(of)))
        }
        _ => None,
    }
}

/// How a limit stands in the list of those that are due: ties are then in the order of keys. Names have no zero byte.
pub(crate) fn limit_member(key: &LimitKey) -> String {
    format!("{}\0{}", key.name, key.key)
}

pub(crate) fn limit_of(member: &str) -> Option<LimitKey> {
    let (name, key) = member.split_once('\0')?;
    Some(LimitKey { name: name.into(), key: key.into() })
}

/// A member's place in the order of a board: its element, behind the digits that break ties.
pub(crate) fn element(reached: Stamp, member: &SubjectId) -> String {
    format!("{:016x}{member}", reached.0)
}

/// The score of an element: the highest stands first.
pub(crate) fn order_score(score: i64) -> String {
    (-score).to_string()
}

/// And back again.
pub(crate) fn member_of(element: &str, order_score: &str) -> Result<(SubjectId, Score), StoreError> {
    let wrong = || unreadable(element);
    let (reached, member) = element.split_at_checked(16).ok_or_else(wrong)?;
    let reached = Stamp(u64::from_str_radix(reached, 16).map_err(|_| wrong())?);
    // Exact, since no score is larger than a floating-point number can tell.
    let score = -order_score.parse::<f64>().map_err(|_| wrong())? as i64;
    Ok((SubjectId::new(member).map_err(|_| wrong())?, Score { score, reached }))
}

/// A score as a person reads it.
pub(crate) fn score_text(score: Score) -> String {
    format!("{} {}", score.score, score.reached.0)
}

pub(crate) fn score_of(text: &str) -> Result<Score, StoreError> {
    let numbers = text.split_once(' ').and_then(|(score, reached)| Some((score.parse().ok()?, reached.parse().ok()?)));
    let (score, reached) = numbers.ok_or_else(|| unreadable(text))?;
    Ok(Score { score, reached: Stamp(reached) })
}

/// The score in a row.
pub(crate) fn score_in(row: Option<&Row>) -> Option<Score> {
    if let Some(Row::Score(score)) = row { Some(*score) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::slot_of;

    #[test]
    fn keys_are_as_the_plan_says_and_everything_of_a_thing_has_one_slot() {
        let keys = Keys { prefix: "tally".into(), slots: true };
        let name = |text: &str| Name::new(text).unwrap();
        let views = CountKey { name: name("views"), key: KeyId::new("post:42").unwrap() };
        let board = BoardKey { board: name("weekly"), season: Timestamp(1_700_000_000_000), levels: true };
        let ever = BoardKey { season: Timestamp(0), levels: false, ..board.clone() };
        assert_eq!(keys.counters("post:42"), "tally:c:{post:42}");
        assert_eq!(keys.unique(&views), "tally:u:{post:42}:views");
        assert_eq!(keys.limit(&LimitKey { name: "posting".into(), key: String::new() }), "tally:l:{%}:posting");
        assert_eq!(keys.sheet(&name("daily"), "days"), "tally:a:{daily}:days");
        assert_eq!(keys.board(&board).order, "tally:b:{weekly}:2023-11-14T22:13:20.000Z:dense");
        assert_eq!(keys.board(&ever).scores, "tally:b:{weekly}:all:scores");
        let slot = slot_of("tally:b:{weekly}");
        for key in [keys.board(&board).order, keys.board(&ever).order, keys.board(&ever).scores] {
            assert_eq!(slot_of(&key), slot, "{key}");
        }
    }

    #[test]
    fn elements_are_in_the_order_of_their_board_and_come_back() {
        let member = |text: &str| SubjectId::new(text).unwrap();
        let mut all: Vec<String> = Vec::new();
        for reached in [0, 9, 10, 255, 256, u64::MAX] {
            for who in ["!", "a", "a!", "b", "é"] {
                let element = element(Stamp(reached), &member(who));
                let score = Score { score: -(1 << 53), reached: Stamp(reached) };
                assert_eq!(member_of(&element, &order_score(score.score)).unwrap(), (member(who), score));
                all.push(element);
            }
        }
        assert!(all.is_sorted());
    }
}
