//! Opaque positions in a list. A position is the last row seen, so rows that come and go
//! elsewhere never make a page skip or repeat.

use crate::error::Refusal;
use crate::hash::fingerprint;
use crate::id::SubjectId;
use crate::rows::{BoardKey, ListKey, Score};
use crate::time::Stamp;

/// The last row of a page: its stamp, and the id that breaks ties.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cursor {
    /// When the last row was made.
    pub stamp: Stamp,
    /// The far end of the last row: a subject in an object's list, an object in a subject's.
    pub other: String,
}

const CHECK_BYTES: usize = 8;

impl Cursor {
    /// Writes the cursor down for a client, bound to its list.
    pub fn encode(&self, list: &ListKey) -> String {
        let stamp = self.stamp.0.to_be_bytes();
        let check = check(list, &stamp, self.other.as_bytes());
        let bytes = [&check[..], &stamp[..], self.other.as_bytes()].concat();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads back a cursor of this very list.
    pub fn decode(text: &str, list: &ListKey) -> Result<Self, Refusal> {
        let bytes = unhex(text).ok_or(Refusal::BadCursor)?;
        if bytes.len() < CHECK_BYTES + 8 {
            return Err(Refusal::BadCursor);
        }
        let (claimed, rest) = bytes.split_at(CHECK_BYTES);
        let (stamp, other) = rest.split_at(8);
        if claimed != check(list, stamp, other) {
            return Err(Refusal::BadCursor);
        }
        let stamp = stamp.try_into().map_err(|_| Refusal::BadCursor)?;
        let other = String::from_utf8(other.to_vec()).map_err(|_| Refusal::BadCursor)?;
        // The check keeps mistakes out, not whoever counts it anew; and there are ids that no store takes.
        if other.chars().any(char::is_control) {
            return Err(Refusal::BadCursor);
        }
        Ok(Self { stamp: Stamp(u64::from_be_bytes(stamp)), other })
    }
}

/// The last member of a page of a board.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BoardCursor {
    /// The member.
    pub member: SubjectId,
    /// Its score then.
    pub score: Score,
}

impl BoardCursor {
    /// Writes the cursor down for a client, bound to its board.
    pub fn encode(&self, board: &BoardKey) -> String {
        let (score, reached) = (self.score.score.to_be_bytes(), self.score.reached.0.to_be_bytes());
        let place = [&score[..], &reached[..], self.member.as_str().as_bytes()].concat();
        let bytes = [&board_check(board, &place)[..], &place].concat();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads back a cursor of this very board.
    pub fn decode(text: &str, board: &BoardKey) -> Result<Self, Refusal> {
        let bytes = unhex(text).ok_or(Refusal::BadCursor)?;
        let (claimed, place) = bytes.split_at_checked(CHECK_BYTES).ok_or(Refusal::BadCursor)?;
        if claimed != board_check(board, place) {
            return Err(Refusal::BadCursor);
        }
        let (score, rest) = place.split_first_chunk().ok_or(Refusal::BadCursor)?;
        let (reached, member) = rest.split_first_chunk().ok_or(Refusal::BadCursor)?;
        let member = std::str::from_utf8(member).map_err(|_| Refusal::BadCursor)?;
        let member = SubjectId::new(member).map_err(|_| Refusal::BadCursor)?;
        let score = Score { score: i64::from_be_bytes(*score), reached: Stamp(u64::from_be_bytes(*reached)) };
        Ok(Self { member, score })
    }
}

fn board_check(board: &BoardKey, place: &[u8]) -> [u8; CHECK_BYTES] {
    fingerprint(&[b"board", board.board.as_str().as_bytes(), &board.season.0.to_be_bytes(), place]).to_be_bytes()
}

fn check(list: &ListKey, stamp: &[u8], other: &[u8]) -> [u8; CHECK_BYTES] {
    let relation = list.relation.as_ref().map_or("", |name| name.as_str());
    fingerprint(&[&[list.side as u8], relation.as_bytes(), list.id.as_bytes(), stamp, other]).to_be_bytes()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || digits.len() > 2 * 1024 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    digits.chunks(2).map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Name;
    use crate::rows::Side;

    fn list(side: Side, id: &str) -> ListKey {
        ListKey { side, relation: Some(Name::new("like").unwrap()), id: id.into(), hidden: false }
    }

    #[test]
    fn a_cursor_belongs_to_one_list() {
        let posts = list(Side::Object, "post:1");
        let cursor = Cursor { stamp: Stamp(77), other: "al/ice_👍".into() };
        let text = cursor.encode(&posts);
        assert_eq!(Cursor::decode(&text, &posts), Ok(cursor));
        for other in [list(Side::Object, "post:2"), list(Side::Subject, "post:1")] {
            assert_eq!(Cursor::decode(&text, &other), Err(Refusal::BadCursor));
        }
        let made_up = Cursor { stamp: Stamp(77), other: "a\0b".into() }.encode(&posts);
        assert_eq!(Cursor::decode(&made_up, &posts), Err(Refusal::BadCursor), "no store takes that");
    }

    #[test]
    fn a_boards_cursor_belongs_to_one_season_of_it() {
        use crate::time::Timestamp;
        let board = |season| BoardKey { board: Name::new("weekly").unwrap(), season: Timestamp(season), levels: false };
        let score = Score { score: -3, reached: Stamp(9) };
        let cursor = BoardCursor { member: SubjectId::new("ann").unwrap(), score };
        let text = cursor.encode(&board(7));
        assert_eq!(BoardCursor::decode(&text, &board(7)), Ok(cursor));
        for broken in ["", "00", &text[2..], &text[..text.len() - 2]] {
            assert_eq!(BoardCursor::decode(broken, &board(7)), Err(Refusal::BadCursor), "{broken}");
        }
        assert_eq!(BoardCursor::decode(&text, &board(8)), Err(Refusal::BadCursor));
    }

    #[test]
    fn a_broken_cursor_is_refused() {
        let posts = list(Side::Object, "post:1");
        let text = Cursor { stamp: Stamp(77), other: "alice".into() }.encode(&posts);
        for broken in ["", "zz", "00", &text[2..], &text[..text.len() - 2], &format!("{text}61"), "é"] {
            assert_eq!(Cursor::decode(broken, &posts), Err(Refusal::BadCursor), "{broken}");
        }
    }
}
