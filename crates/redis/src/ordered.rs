//! Orders against the scores in them: both are read part by part, and each score is compared with its place by a script, so that
//! servers may write meanwhile.

use redis::{Cmd, Value};
use tally_core::rows::{BoardKey, Key, ScoreKey};
use tally_engine::{Finding, StoreError};

use crate::Redis;
use crate::answer::{items, number, some_text};
use crate::audit::{Tell, pairs};
use crate::orders::{element, member_of, order_score, score_of, score_text};
use crate::words::Ask;

/// Scores that are compared in one script.
const SCORES_AT_ONCE: usize = 1_000;

/// A score as it is in the hash, and where it stands: what the script is asked.
type Placed = [String; 4];

impl Redis {
    /// Compares the order of a board with its scores. Says whether they agree.
    pub(crate) async fn compare_order(&self, board: &BoardKey, tell: Tell<'_>) -> Result<bool, StoreError> {
        let (wrong, first) = self.go_over_order(board, "look").await?;
        if let Some([member, score, ..]) = first {
            let found = format!(
                "the order of a board does not agree with its scores: {board:?}: {wrong} of them, such as {member} with {score}"
            );
            tell(Finding::Order { found, board: board.clone() });
        }
        Ok(wrong == 0)
    }

    /// Makes the order of a board that of its scores. False where it is already.
    pub(crate) async fn mend_order(&self, board: &BoardKey) -> Result<bool, StoreError> {
        Ok(self.go_over_order(board, "mend").await?.0 > 0)
    }

    /// Goes over both. Says how many did not agree, and which was the first.
    async fn go_over_order(&self, board: &BoardKey, how: &str) -> Result<(usize, Option<Placed>), StoreError> {
        let any = Key::Score(ScoreKey { board: board.clone(), member: self.keys.nobody.clone() });
        let (hash, order) = (self.keys.place(&any).home(), self.keys.order(board));
        self.settle_slot(&hash).await?;
        let (mut wrong, mut first) = (0, None);
        for (key, command) in [(&hash, "HSCAN"), (&order, "ZSCAN")] {
            let mut cursor = "0".to_owned();
            loop {
                let page;
                (cursor, page) = self.scan_pairs(key, command, &cursor).await?;
                let placed: Result<Vec<Placed>, StoreError> = page
                    .iter()
                    .map(|(name, value)| if command == "HSCAN" { scored(name, value) } else { standing(name, value) })
                    .collect();
                for placed in placed?.chunks(SCORES_AT_ONCE) {
                    let off = self.compare_places(&hash, &order, how, placed).await?;
                    wrong += off.len();
                    first = first.or_else(|| off.first().and_then(|at| placed.get(*at).cloned()));
                }
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok((wrong, first))
    }

    async fn compare_places(
        &self,
        hash: &str,
        order: &str,
        how: &str,
        placed: &[Placed],
    ) -> Result<Vec<usize>, StoreError> {
        let words: Vec<&str> = std::iter::once(how).chain(placed.iter().flatten().map(String::as_str)).collect();
        let ask = Ask::new([hash.to_owned(), order.to_owned()], &words);
        let answer = match how {
            "mend" => self.link.run_safely(&self.scripts.ordered_mend, &ask).await?,
            _ => self.link.run(&self.scripts.ordered, &ask).await?,
        };
        items(answer)?.into_iter().map(|at| number(Some(at)).map(|at| at as usize)).collect()
    }

    /// Some of a hash or a sorted set, and where to go on.
    pub(crate) async fn scan_pairs(
        &self,
        key: &str,
        how: &str,
        cursor: &str,
    ) -> Result<(String, Vec<(String, String)>), StoreError> {
        let mut command = Cmd::new();
        command.arg(how).arg(key).arg(cursor).arg("COUNT").arg(SCORES_AT_ONCE);
        let mut answer = items(self.link.send(&command).await?)?.into_iter();
        let cursor = some_text(answer.next())?;
        Ok((cursor, pairs(answer.next().unwrap_or(Value::Nil))?))
    }
}

/// A score of the hash.
fn scored(member: &str, text: &str) -> Result<Placed, StoreError> {
    let score = score_of(text)?;
    let name = tally_core::SubjectId::new(member).map_err(|_| crate::rows::unreadable(member))?;
    Ok([member.to_owned(), text.to_owned(), element(score.reached, &name), order_score(score.score)])
}

/// A place in the order.
fn standing(place: &str, score: &str) -> Result<Placed, StoreError> {
    let (member, is) = member_of(place, score)?;
    Ok([member.to_string(), score_text(is), place.to_owned(), order_score(is.score)])
}
