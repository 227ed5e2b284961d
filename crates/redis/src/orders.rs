//! The orders of boards: sorted sets whose own order is the board's.

use tally_core::SubjectId;
use tally_core::rows::{Among, BoardKey, Key, Row, Score, ScoreKey, Standing};
use tally_core::time::Stamp;
use tally_engine::StoreError;

use crate::keys::Keys;
use crate::rows::unreadable;

impl Keys {
    /// Who stands where, beside the hash of the scores. All seasons of a board have one slot: whoever scores looks at the list
    /// of them.
    pub(crate) fn order(&self, board: &BoardKey) -> String {
        // Any member leads to the hash.
        let any = Key::Score(ScoreKey { board: board.clone(), member: self.nobody.clone() });
        format!("{}:order", self.place(&any).home())
    }
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
