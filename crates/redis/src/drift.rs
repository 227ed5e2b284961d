//! The recount of numbers: those by kind, and what was added to a length by hand. Each is compared with its edges as of one
//! moment, so that servers may write meanwhile.

use std::collections::{BTreeMap, HashMap};

use redis::{Cmd, Value};
use tally_core::rows::{Side, TotalKey};
use tally_core::{Name, ObjectId, SubjectId};
use tally_engine::{Finding, StoreError};

use crate::Redis;
use crate::answer::{items, number, some_text};
use crate::audit::{Named, Tell, pairs};
use crate::rows::unreadable;
use crate::words::Ask;

/// Edges that are counted in one script: some milliseconds of Redis' time.
const AT_ONCE_MAX: i64 = 5_000;
/// How often a longer list is counted part by part, as long as somebody changes it meanwhile.
const TRIES: usize = 8;

type Numbers = BTreeMap<String, i64>;

impl Redis {
    /// What was added to totals past their edges.
    pub(crate) async fn drifted(&self, key: &str, named: &Named, tell: Tell<'_>) -> Result<(), StoreError> {
        let mut command = Cmd::new();
        command.arg("HKEYS").arg(key);
        for relation in crate::answer::texts(self.link.send(&command).await?)? {
            let list = self.keys.list(named.side, &named.id, &relation);
            let mut keys = vec![key.to_owned(), list.shown];
            if named.side == Side::Subject {
                keys.push(list.hidden);
            }
            let mut answer = items(self.link.run(&self.scripts.off, &Ask::new(keys, &[&relation])).await?)?.into_iter();
            let (counted, off) = (number(answer.next())?, number(answer.next())?);
            if off == 0 {
                continue;
            }
            self.end_usual().await?;
            let relation = Name::new(&relation).map_err(|_| unreadable(&relation))?;
            let total = match named.side {
                Side::Object => {
                    let object = ObjectId::new(&named.id).map_err(|_| unreadable(&named.id))?;
                    TotalKey::Object { object, relation }
                }
                Side::Subject => {
                    let subject = SubjectId::new(&named.id).map_err(|_| unreadable(&named.id))?;
                    TotalKey::Subject { subject, relation }
                }
            };
            tell(Finding::Drift { total, stored: counted.saturating_add(off), counted });
        }
        Ok(())
    }

    /// Somebody has written a correction past Tally, so it has to be looked for from now on.
    async fn end_usual(&self) -> Result<(), StoreError> {
        if self.is_usual() {
            let mut command = Cmd::new();
            command.arg("SET").arg(self.keys.system("unusual")).arg(1);
            self.link.send(&command).await?;
            self.set_unusual();
        }
        Ok(())
    }

    /// How many edges there are of each kind, by what is attached to them.
    pub(crate) async fn kinds(&self, object: &str, relation: &str, tell: Tell<'_>) -> Result<(), StoreError> {
        let list = self.keys.list(Side::Object, object, relation);
        let keys = [self.keys.kinds(object, relation), list.data.clone(), list.shown];
        let mut command = Cmd::new();
        command.arg("HLEN").arg(&list.data);
        let mut found = None;
        if number(Some(self.link.send(&command).await?))? > AT_ONCE_MAX {
            for _ in 0..TRIES {
                found = self.count_parts(&keys).await?;
                if found.is_some() {
                    break;
                }
            }
            if found.is_none() {
                tracing::warn!(object, relation, "a long list changes all the time, and is counted in one go");
            }
        }
        let (counted, stored) = match found {
            Some(found) => found,
            None => {
                let ask = Ask::new(keys, &["all"]);
                let mut answer = items(self.link.run(&self.scripts.kinds, &ask).await?)?.into_iter();
                (numbers(answer.next())?, numbers(answer.next())?)
            }
        };
        tell_kinds(object, relation, &stored, &counted, tell)
    }

    /// Counts a long list part by part. Nothing if a number has moved meanwhile.
    async fn count_parts(&self, keys: &[String; 3]) -> Result<Option<(Numbers, Numbers)>, StoreError> {
        let mark = crate::numbered::Numbered::begin(&self.numbers, self.server);
        // A part may give an edge that another one gave.
        let mut kinds: HashMap<String, String> = HashMap::new();
        let mut cursor = "0".to_owned();
        loop {
            let ask = Ask::new(keys.clone(), &["some", &mark.name, &cursor]);
            let mut answer = items(self.link.run(&self.scripts.kinds_parts, &ask).await?)?.into_iter();
            cursor = some_text(answer.next())?;
            if number(answer.next())? == 0 {
                return Ok(None);
            }
            kinds.extend(pairs(answer.next().unwrap_or(Value::Nil))?);
            if cursor == "0" {
                let stored = numbers(answer.next())?;
                let mut counted = Numbers::new();
                kinds.into_values().for_each(|kind| *counted.entry(kind).or_default() += 1);
                return Ok(Some((counted, stored)));
            }
        }
    }
}

fn tell_kinds(
    object: &str,
    relation: &str,
    stored: &Numbers,
    counted: &Numbers,
    tell: Tell<'_>,
) -> Result<(), StoreError> {
    let kinds: std::collections::BTreeSet<&String> = stored.keys().chain(counted.keys()).collect();
    for kind in kinds {
        let of = |numbers: &Numbers| numbers.get(kind).copied().unwrap_or(0);
        let (stored, counted) = (of(stored), of(counted));
        if stored != counted {
            let object = ObjectId::new(object).map_err(|_| unreadable(object))?;
            let relation = Name::new(relation).map_err(|_| unreadable(relation))?;
            let kind = Name::new(kind).map_err(|_| unreadable(kind))?;
            tell(Finding::Drift { total: TotalKey::Kind { object, relation, kind }, stored, counted });
        }
    }
    Ok(())
}

fn numbers(value: Option<Value>) -> Result<Numbers, StoreError> {
    pairs(value.unwrap_or(Value::Nil))?
        .into_iter()
        .map(|(name, value)| value.parse().map(|value| (name, value)).map_err(|_| unreadable(&value)))
        .collect()
}
