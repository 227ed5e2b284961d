//! The recount of a list: each of its entries against the other side.
//!
//! Servers write meanwhile. So what looks wrong is looked at again: the object's side, the subject's, and both once more.
//! An edge that is made again has another stamp. So one that is there with the same stamp before and after the look
//! at the other side was there all the time, and both sides were so at one moment, unless something is on its way. Anything
//! else has just been written, on both sides.

use std::collections::HashSet;
use std::time::Duration;

use redis::Cmd;
use tally_core::hash::fingerprint;
use tally_core::rows::{EdgeKey, Side};
use tally_core::{Name, ObjectId, SubjectId};
use tally_engine::{Finding, StoreError};

use crate::Redis;
use crate::answer::{items, number, some_text, text};
use crate::audit::{Named, Tell, pairs};
use crate::words::Ask;

/// Entries of a list that are looked at together.
const ENTRIES_AT_ONCE: usize = 1_000;
/// How often something is looked at again that another commit is changing.
const LOOKS: usize = 250;
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Where one end of an edge stands.
#[derive(PartialEq)]
struct Stands {
    shown: Option<f64>,
    hidden: Option<f64>,
}

impl Stands {
    fn is_there(&self) -> bool {
        self.shown.is_some() || self.hidden.is_some()
    }

    /// Shown or hidden, not both.
    fn is_one(&self) -> bool {
        self.shown.is_none() || self.hidden.is_none()
    }
}

impl Redis {
    /// Looks at every entry of a list once. Says how many there are.
    pub(crate) async fn compare(
        &self,
        key: &str,
        named: &Named,
        relation: &str,
        hidden: bool,
        tell: Tell<'_>,
    ) -> Result<u64, StoreError> {
        // What is there all the time is given once or more.
        let mut seen: HashSet<u64> = HashSet::new();
        let mut cursor = "0".to_owned();
        loop {
            let mut command = Cmd::new();
            command.arg("ZSCAN").arg(key).arg(&cursor).arg("COUNT").arg(ENTRIES_AT_ONCE);
            let mut answer = items(self.link.send(&command).await?)?.into_iter();
            cursor = some_text(answer.next())?;
            let mut page = pairs(answer.next().unwrap_or(redis::Value::Nil))?;
            page.retain(|(member, _)| seen.insert(fingerprint(&[member.as_bytes()])));
            self.compare_page(key, named, relation, hidden, &page, tell).await?;
            if cursor == "0" {
                return Ok(seen.len() as u64);
            }
        }
    }

    async fn compare_page(
        &self,
        key: &str,
        named: &Named,
        relation: &str,
        hidden: bool,
        page: &[(String, String)],
        tell: Tell<'_>,
    ) -> Result<(), StoreError> {
        let across = if named.side == Side::Object { Side::Subject } else { Side::Object };
        let of = |side, id: &str, hidden: bool, member: &str| {
            let list = self.keys.list(side, id, relation);
            let mut command = Cmd::new();
            command.arg("ZSCORE").arg(if hidden { list.hidden } else { list.shown }).arg(member);
            command
        };
        let others = page.iter().map(|(member, _)| of(across, member, hidden, &named.id)).collect();
        let others = self.link.send_many(others).await?;
        // An edge is shown or hidden; whoever is in the one list is looked for in the other.
        let twins =
            page.iter().filter(|_| hidden).map(|(member, _)| of(named.side, &named.id, false, member)).collect();
        let mut twins = self.link.send_many(twins).await?.into_iter();
        for ((member, score), other) in page.iter().zip(others) {
            let twin = twins.next().map(text).transpose()?.flatten();
            if (score_of(&text(other)?.unwrap_or_default()) == score_of(score) && twin.is_none())
                || self.agree(named, member, relation).await?
            {
                continue;
            }
            let found = match twin {
                Some(_) => format!("{relation} of {}: {member} is both shown and hidden", named.id),
                None => format!("{relation} of {}: {member} is in {key} alone", named.id),
            };
            tell(Finding::Stray { found, edge: edge_of(named, member, relation) });
        }
        Ok(())
    }

    /// Whether both sides of an edge are the same, as of one moment.
    async fn agree(&self, named: &Named, member: &str, relation: &str) -> Result<bool, StoreError> {
        let (object, subject) = match named.side {
            Side::Object => (named.id.as_str(), member),
            Side::Subject => (member, named.id.as_str()),
        };
        for _ in 0..LOOKS {
            let first = self.stands(Side::Object, object, subject, relation).await?;
            let across = self.stands(Side::Subject, subject, object, relation).await?;
            let second = self.stands(Side::Object, object, subject, relation).await?;
            let again = self.stands(Side::Subject, subject, object, relation).await?;
            if let (Some(first), Some(across), Some(second), Some(again)) = (first, across, second, again) {
                let stood = first == second && first.is_there() || across == again && across.is_there();
                return Ok(!stood || (across == second && second.is_one()));
            }
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
        }
        // Somebody writes there all the time, so both sides are being written.
        Ok(true)
    }

    /// Where one end of an edge stands; nothing while something is on its way there.
    async fn stands(&self, side: Side, id: &str, other: &str, relation: &str) -> Result<Option<Stands>, StoreError> {
        let list = self.keys.list(side, id, relation);
        let slot = self.keys.part(&list.shown);
        let slots = if self.keys.slots { "1" } else { "0" };
        let ask = Ask::new([self.keys.open(slot), list.shown, list.hidden], &[other, slots]);
        let mut answer = items(self.link.run(&self.scripts.stands, &ask).await?)?.into_iter();
        if number(answer.next())? > 0 {
            self.resolve(slot).await?;
            return Ok(None);
        }
        let (shown, hidden) = (some_text(answer.next())?, some_text(answer.next())?);
        Ok(Some(Stands { shown: score_of(&shown), hidden: score_of(&hidden) }))
    }
}

/// A score as a number: commands write large ones differently.
fn score_of(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// The edge that an entry of a list stands for.
fn edge_of(named: &Named, member: &str, relation: &str) -> Option<EdgeKey> {
    let (object, subject) = match named.side {
        Side::Object => (named.id.as_str(), member),
        Side::Subject => (member, named.id.as_str()),
    };
    let (object, subject) = (ObjectId::new(object).ok()?, SubjectId::new(subject).ok()?);
    Some(EdgeKey { object, relation: Name::new(relation).ok()?, subject })
}
