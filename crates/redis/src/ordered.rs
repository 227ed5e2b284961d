//! Orders against the rows in them: both are read part by part, and each row is compared with its place by a script, so that
//! servers may write meanwhile.

use redis::{Cmd, Value};
use tally_core::rows::{OrderKey, Place};
use tally_engine::{Finding, StoreError};

use crate::Redis;
use crate::answer::{items, number, some_text, text};
use crate::audit::{Tell, pairs};
use crate::orders::{element, order_score, place_of};
use crate::rows;
use crate::words::Ask;

/// Rows that are compared in one script.
const ROWS_AT_ONCE: usize = 1_000;
/// How often rows are looked at that are written again and again.
const LOOKS: usize = 32;

/// What is to be compared: a row as it was read last, or a place in the order.
#[derive(Clone)]
enum Met {
    Row(String, Option<String>),
    Place(Place),
}

impl Met {
    fn id(&self) -> &str {
        match self {
            Self::Row(id, _) => id,
            Self::Place(place) => &place.id,
        }
    }
}

/// An order, and where it is kept.
struct Kept<'a> {
    order: &'a OrderKey,
    hash: String,
    set: String,
}

impl Redis {
    /// Compares an order with its rows. Says whether they agree.
    pub(crate) async fn compare_order(&self, order: &OrderKey, tell: Tell<'_>) -> Result<bool, StoreError> {
        let (wrong, first) = self.go_over_order(order, "look").await?;
        if let Some(id) = first {
            let found =
                format!("an order does not agree with its rows: {order:?}: {wrong} of them, such as that of {id}");
            tell(Finding::Order { found, order: order.clone() });
        }
        Ok(wrong == 0)
    }

    /// Makes an order that of its rows. False where it is already.
    pub(crate) async fn mend_order(&self, order: &OrderKey) -> Result<bool, StoreError> {
        Ok(self.go_over_order(order, "mend").await?.0 > 0)
    }

    /// Goes over both. Says how many did not agree, and which was the first.
    async fn go_over_order(&self, order: &OrderKey, how: &str) -> Result<(usize, Option<String>), StoreError> {
        let kept = Kept { order, hash: self.keys.hash_of(order), set: self.keys.order(order) };
        self.settle_slot(&kept.hash).await?;
        let (mut wrong, mut first) = (0, None);
        for (key, command) in [(&kept.hash, "HSCAN"), (&kept.set, "ZSCAN")] {
            let mut cursor = "0".to_owned();
            loop {
                let page;
                (cursor, page) = self.scan_pairs(key, command, &cursor).await?;
                let met: Result<Vec<Met>, StoreError> = page
                    .into_iter()
                    .map(|(name, value)| match command {
                        "HSCAN" => Ok(Met::Row(name, Some(value))),
                        _ => place_of(&name, &value).map(Met::Place),
                    })
                    .collect();
                for met in met?.chunks(ROWS_AT_ONCE) {
                    let off = self.compare_met(&kept, how, met).await?;
                    wrong += off.len();
                    first = first.or_else(|| off.into_iter().next());
                }
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok((wrong, first))
    }

    /// Whose place is not what it should be. What was written meanwhile is read and looked at again.
    async fn compare_met(&self, kept: &Kept<'_>, how: &str, met: &[Met]) -> Result<Vec<String>, StoreError> {
        let (mut met, mut wrong) = (met.to_vec(), Vec::new());
        for look in 0..LOOKS {
            if met.is_empty() {
                break;
            }
            // What a scan of the rows gave is as good as read.
            let read = match met.first() {
                Some(Met::Row(..)) if look == 0 => None,
                _ => Some(self.texts_of(&kept.hash, &met).await?),
            };
            let mut words = vec![how.to_owned()];
            let mut asked = Vec::new();
            for (at, met) in met.iter().enumerate() {
                let text = match (&read, met) {
                    (Some(read), _) => read.get(at).cloned().flatten(),
                    (None, Met::Row(_, text)) => text.clone(),
                    (None, Met::Place(_)) => None,
                };
                if let Some(asks) = asks(kept.order, met, text)? {
                    words.extend(asks);
                    asked.push(met.clone());
                }
            }
            if asked.is_empty() {
                break;
            }
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let ask = Ask::new([kept.hash.clone(), kept.set.clone()], &words);
            let answer = match how {
                "mend" => self.link.run_safely(&self.scripts.ordered_mend, &ask).await?,
                _ => self.link.run(&self.scripts.ordered, &ask).await?,
            };
            let mut answer = items(answer)?.into_iter().map(|list| numbered(list, &asked));
            let off = answer.next().transpose()?.unwrap_or_default();
            wrong.extend(off.iter().map(|met| met.id().to_owned()));
            met = answer.next().transpose()?.unwrap_or_default();
        }
        Ok(wrong)
    }

    /// The rows with these ids, as they are now.
    async fn texts_of(&self, hash: &str, met: &[Met]) -> Result<Vec<Option<String>>, StoreError> {
        let mut command = Cmd::new();
        command.arg("HMGET").arg(hash);
        met.iter().for_each(|met| _ = command.arg(met.id()));
        items(self.link.send(&command).await?)?.into_iter().map(text).collect()
    }

    /// Some of a hash or a sorted set, and where to go on.
    pub(crate) async fn scan_pairs(
        &self,
        key: &str,
        how: &str,
        cursor: &str,
    ) -> Result<(String, Vec<(String, String)>), StoreError> {
        let mut command = Cmd::new();
        command.arg(how).arg(key).arg(cursor).arg("COUNT").arg(ROWS_AT_ONCE);
        let mut answer = items(self.link.send(&command).await?)?.into_iter();
        let cursor = some_text(answer.next())?;
        Ok((cursor, pairs(answer.next().unwrap_or(Value::Nil))?))
    }
}

/// What the script is asked: nothing about a row that does not stand, since its places are met by themselves.
fn asks(order: &OrderKey, met: &Met, text: Option<String>) -> Result<Option<[String; 5]>, StoreError> {
    let stands = match (&text, order.key(met.id())) {
        (Some(text), Some(key)) => rows::row(&key, text)?.stands(&key).map(|(_, place)| place),
        (Some(_), None) => return Err(rows::unreadable(met.id())),
        (None, _) => None,
    };
    let (place, should) = match met {
        Met::Row(..) => match stands {
            Some(place) => (place, true),
            None => return Ok(None),
        },
        Met::Place(place) => (place.clone(), stands.as_ref() == Some(place)),
    };
    let (element, score) = (element(&place), order_score(place.score));
    let should = if should { "1" } else { "0" };
    Ok(Some([met.id().to_owned(), text.unwrap_or_default(), element, score, should.to_owned()]))
}

/// Those with the numbers in a list.
fn numbered(list: Value, asked: &[Met]) -> Result<Vec<Met>, StoreError> {
    let numbers = items(list)?.into_iter().map(|at| number(Some(at)));
    let found = numbers.map(|at| Ok(usize::try_from(at?).ok().and_then(|at| asked.get(at)).cloned()));
    Ok(found.collect::<Result<Vec<Option<Met>>, StoreError>>()?.into_iter().flatten().collect())
}
