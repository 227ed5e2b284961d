//! The recount: every list against the list on the other side, every number against its edges.
//!
//! A length needs no counting here, so what can drift is only what was added by hand, and the numbers by kind.
//! Servers write meanwhile, so what looks wrong is looked at again before it is told.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use futures_util::future::join_all;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{Cmd, Value};
use tally_core::hash::fingerprint;
use tally_core::rows::{EdgeKey, Side, TotalKey};
use tally_core::{Name, ObjectId, SubjectId};
use tally_engine::{Audited, Finding, StoreError};

use crate::Redis;
use crate::answer::{items, number, some_text, text, texts};
use crate::rows::{edge, unreadable};

/// Entries of a list that are looked at together.
const ENTRIES_AT_ONCE: usize = 2_000;
/// Lists that are looked at side by side: most are short, and cost the way to Redis and back.
const KEYS_AT_ONCE: usize = 64;
/// How often something that looks wrong is looked at again.
const LOOKS: usize = 6;
/// And after how long.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

type Tell<'a> = &'a mut (dyn FnMut(Finding) + Send);

/// A key of an object or a subject, taken apart.
struct Named {
    side: Side,
    id: String,
    relation: Option<String>,
    what: What,
}

enum What {
    List { hidden: bool },
    Data,
    Kinds,
    Off,
}

impl Redis {
    pub(crate) async fn recount(&self, tell: Tell<'_>) -> Result<Audited, StoreError> {
        self.resolve_all().await?;
        let mut audited = Audited::default();
        // A scan may give a key twice.
        let mut seen: HashSet<u64> = HashSet::new();
        for node in self.masters().await? {
            let mut cursor = "0".to_owned();
            loop {
                let (next, mut keys) = self.scan_keys(node.as_ref(), &cursor).await?;
                keys.retain(|key| seen.insert(fingerprint(&[key.as_bytes()])));
                for keys in keys.chunks(KEYS_AT_ONCE) {
                    for counted in join_all(keys.iter().map(|key| self.recount_key(key))).await {
                        let (of_key, findings) = counted?;
                        audited.edges += of_key.edges;
                        audited.totals += of_key.totals;
                        findings.into_iter().for_each(&mut *tell);
                    }
                }
                tell(Finding::Progress(audited.edges));
                cursor = next;
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok(audited)
    }

    async fn recount_key(&self, key: &str) -> Result<(Audited, Vec<Finding>), StoreError> {
        let (mut audited, mut findings) = (Audited::default(), Vec::new());
        if let Some(named) = self.take_apart(key) {
            self.recount_one(key, &named, &mut audited, &mut |finding| findings.push(finding)).await?;
        }
        Ok((audited, findings))
    }

    /// Where data is: each master of a Cluster, or the one node there is.
    pub(crate) async fn masters(&self) -> Result<Vec<Option<(String, u16)>>, StoreError> {
        if !self.keys.slots {
            return Ok(vec![None]);
        }
        let mut command = Cmd::new();
        command.arg("CLUSTER").arg("SLOTS");
        let mut masters: Vec<(String, u16)> = Vec::new();
        for range in items(self.link.send(&command).await?)? {
            let master = items(items(range)?.into_iter().nth(2).unwrap_or(Value::Nil))?;
            let mut master = master.into_iter();
            let node = (some_text(master.next())?, number(master.next())? as u16);
            if !masters.contains(&node) {
                masters.push(node);
            }
        }
        Ok(masters.into_iter().map(Some).collect())
    }

    /// A command on one of [`Redis::masters`].
    pub(crate) async fn send_to(&self, node: Option<&(String, u16)>, command: Cmd) -> Result<Value, StoreError> {
        Ok(match node {
            None => self.link.send(&command).await?,
            Some((host, port)) => {
                let to = SingleNodeRoutingInfo::ByAddress { host: host.clone(), port: *port };
                self.link.send_to(command, RoutingInfo::SingleNode(to)).await?
            }
        })
    }

    async fn scan_keys(&self, node: Option<&(String, u16)>, cursor: &str) -> Result<(String, Vec<String>), StoreError> {
        let mut command = Cmd::new();
        command.arg("SCAN").arg(cursor).arg("MATCH").arg(format!("{}:[os]:{{*", self.keys.prefix));
        command.arg("COUNT").arg(1_000);
        let mut answer = items(self.send_to(node, command).await?)?.into_iter();
        let next = some_text(answer.next())?;
        Ok((next, texts(answer.next().unwrap_or(Value::Nil))?))
    }

    fn take_apart(&self, key: &str) -> Option<Named> {
        let (side, id) = [Side::Object, Side::Subject]
            .into_iter()
            .find_map(|side| self.keys.id_of(side, key).map(|id| (side, id.to_owned())))?;
        let mut words = key.rsplit_once('}')?.1.split(':').skip(1);
        let relation = words.next()?;
        if relation == ".off" {
            return Some(Named { side, id, relation: None, what: What::Off });
        }
        let what = match words.next() {
            None => What::List { hidden: false },
            Some("hidden") => What::List { hidden: true },
            Some("data") => What::Data,
            Some("kinds") => What::Kinds,
            Some(_) => return None,
        };
        Some(Named { side, id, relation: Some(relation.to_owned()), what })
    }

    async fn recount_one(
        &self,
        key: &str,
        named: &Named,
        audited: &mut Audited,
        tell: Tell<'_>,
    ) -> Result<(), StoreError> {
        let relation = named.relation.as_deref().unwrap_or_default();
        match named.what {
            What::List { hidden } => {
                audited.totals += u64::from(!hidden);
                let entries = self.compare(key, named, relation, hidden, tell).await?;
                if named.side == Side::Object {
                    audited.edges += entries;
                }
                Ok(())
            }
            What::Off => self.drifted(key, named, tell).await,
            What::Kinds => self.kinds(&named.id, relation, tell).await,
            What::Data => {
                let kinds = self.keys.kinds(&named.id, relation);
                let mut command = Cmd::new();
                command.arg("EXISTS").arg(&kinds);
                if number(Some(self.link.send(&command).await?))? == 0 {
                    self.kinds(&named.id, relation, tell).await?;
                }
                Ok(())
            }
        }
    }

    /// One list against the other side of each of its entries.
    async fn compare(
        &self,
        key: &str,
        named: &Named,
        relation: &str,
        hidden: bool,
        tell: Tell<'_>,
    ) -> Result<u64, StoreError> {
        let across = if named.side == Side::Object { Side::Subject } else { Side::Object };
        let mut entries = 0;
        loop {
            let mut command = Cmd::new();
            command.arg("ZRANGE").arg(key).arg(entries).arg(entries + ENTRIES_AT_ONCE - 1).arg("WITHSCORES");
            let page = pairs(self.link.send(&command).await?)?;
            let ask = |(member, _): &(String, String)| {
                let list = self.keys.list(across, member, relation);
                let mut command = Cmd::new();
                command.arg("ZSCORE").arg(if hidden { list.hidden } else { list.shown }).arg(&named.id);
                command
            };
            let scores = self.link.send_many(page.iter().map(ask).collect()).await?;
            for ((member, score), other) in page.iter().zip(scores) {
                if text(other)?.as_ref() != Some(score) && !self.agree(named, member, relation, hidden).await? {
                    let found = format!("{relation} of {}: {member} is in {key} alone", named.id);
                    tell(Finding::Stray { found, edge: edge_of(named, member, relation) });
                }
            }
            entries += page.len();
            if page.len() < ENTRIES_AT_ONCE {
                return Ok(entries as u64);
            }
        }
    }

    /// Looks again at both sides of what seemed to stand on one alone.
    async fn agree(&self, named: &Named, member: &str, relation: &str, hidden: bool) -> Result<bool, StoreError> {
        let (object, subject) = match named.side {
            Side::Object => (named.id.as_str(), member),
            Side::Subject => (member, named.id.as_str()),
        };
        for _ in 0..LOOKS {
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
            let mut scores = Vec::new();
            for (side, id, other) in [(Side::Object, object, subject), (Side::Subject, subject, object)] {
                let list = self.keys.list(side, id, relation);
                let here = if hidden { list.hidden } else { list.shown };
                if self.keys.slots {
                    self.resolve(self.keys.part(&here)).await?;
                }
                let mut command = Cmd::new();
                command.arg("ZSCORE").arg(here).arg(other);
                scores.push(text(self.link.send(&command).await?)?);
            }
            if scores[0] == scores[1] {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What was added to totals past their edges.
    async fn drifted(&self, key: &str, named: &Named, tell: Tell<'_>) -> Result<(), StoreError> {
        let mut command = Cmd::new();
        command.arg("HGETALL").arg(key);
        for (relation, off) in pairs(self.link.send(&command).await?)? {
            let list = self.keys.list(named.side, &named.id, &relation);
            let mut keys = vec![list.shown];
            if named.side == Side::Subject {
                keys.push(list.hidden);
            }
            let mut counted = 0;
            for key in keys {
                let mut command = Cmd::new();
                command.arg("ZCARD").arg(key);
                counted += number(Some(self.link.send(&command).await?))?;
            }
            self.end_usual().await?;
            let relation = Name::new(&relation).map_err(|_| unreadable(&relation))?;
            let off: i64 = off.parse().map_err(|_| unreadable(&off))?;
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
    async fn kinds(&self, object: &str, relation: &str, tell: Tell<'_>) -> Result<(), StoreError> {
        let (list, kinds_key) = (self.keys.list(Side::Object, object, relation), self.keys.kinds(object, relation));
        let all = |key: &str| {
            let mut command = Cmd::new();
            command.arg("HGETALL").arg(key);
            command
        };
        for look in 0..LOOKS {
            let stored = numbers(pairs(self.link.send(&all(&kinds_key)).await?)?)?;
            let mut counted: BTreeMap<String, i64> = BTreeMap::new();
            let data = pairs(self.link.send(&all(&list.data)).await?)?;
            for data in data.chunks(ENTRIES_AT_ONCE) {
                let ask = |(member, _): &(String, String)| {
                    let mut command = Cmd::new();
                    command.arg("ZSCORE").arg(&list.shown).arg(member);
                    command
                };
                let shown = self.link.send_many(data.iter().map(ask).collect()).await?;
                for ((_, data), score) in data.iter().zip(shown) {
                    if let Some(score) = text(score)?
                        && let Some(kind) = edge(false, &score, data)?.kind
                    {
                        *counted.entry(kind.as_str().to_owned()).or_default() += 1;
                    }
                }
            }
            if stored == counted {
                return Ok(());
            }
            let unchanged = numbers(pairs(self.link.send(&all(&kinds_key)).await?)?)? == stored;
            if unchanged && look > 0 {
                return tell_kinds(object, relation, &stored, &counted, tell);
            }
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
        }
        Ok(())
    }
}

fn tell_kinds(
    object: &str,
    relation: &str,
    stored: &BTreeMap<String, i64>,
    counted: &BTreeMap<String, i64>,
    tell: Tell<'_>,
) -> Result<(), StoreError> {
    let kinds: std::collections::BTreeSet<&String> = stored.keys().chain(counted.keys()).collect();
    for kind in kinds {
        let of = |numbers: &BTreeMap<String, i64>| numbers.get(kind).copied().unwrap_or(0);
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

/// The edge that an entry of a list stands for.
fn edge_of(named: &Named, member: &str, relation: &str) -> Option<EdgeKey> {
    let (object, subject) = match named.side {
        Side::Object => (named.id.as_str(), member),
        Side::Subject => (member, named.id.as_str()),
    };
    let (object, subject) = (ObjectId::new(object).ok()?, SubjectId::new(subject).ok()?);
    Some(EdgeKey { object, relation: Name::new(relation).ok()?, subject })
}

/// A list that alternates between names and values.
pub(crate) fn pairs(value: Value) -> Result<Vec<(String, String)>, StoreError> {
    let values = match value {
        Value::Map(pairs) => pairs.into_iter().flat_map(|(name, value)| [name, value]).collect(),
        other => items(other)?,
    };
    let mut values = values.into_iter();
    let mut pairs = Vec::new();
    while let Some(name) = values.next() {
        pairs.push((some_text(Some(name))?, some_text(values.next())?));
    }
    Ok(pairs)
}

fn numbers(pairs: Vec<(String, String)>) -> Result<BTreeMap<String, i64>, StoreError> {
    pairs
        .into_iter()
        .map(|(name, value)| value.parse().map(|value| (name, value)).map_err(|_| unreadable(&value)))
        .collect()
}
