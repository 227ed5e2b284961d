//! The recount: every list against the list on the other side, every number against its edges.
//!
//! A length needs no counting here, so what can drift is only what was added by hand, and the numbers by kind.
//! Lists are compared in `compare.rs`, numbers in `drift.rs`.

use std::collections::HashSet;

use futures_util::future::join_all;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{Cmd, Value};
use tally_core::hash::fingerprint;
use tally_core::rows::Side;
use tally_engine::{Audited, Finding, StoreError};

use crate::Redis;
use crate::answer::{items, number, some_text, texts};

/// Lists that are looked at side by side: most are short, and cost the way to Redis and back.
const KEYS_AT_ONCE: usize = 64;

pub(crate) type Tell<'a> = &'a mut (dyn FnMut(Finding) + Send);

/// A key of an object or a subject, taken apart.
pub(crate) struct Named {
    pub(crate) side: Side,
    pub(crate) id: String,
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
                let (next, mut keys) = self.scan_keys(node.as_ref(), &cursor, "[os]").await?;
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
        audited.rows = audited.edges;
        self.rows_of_every_kind(&mut audited, tell).await?;
        tell(Finding::Progress(audited.rows));
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

    pub(crate) async fn scan_keys(
        &self,
        node: Option<&(String, u16)>,
        cursor: &str,
        what: &str,
    ) -> Result<(String, Vec<String>), StoreError> {
        let mut command = Cmd::new();
        command.arg("SCAN").arg(cursor).arg("MATCH").arg(format!("{}:{what}:{{*", self.keys.prefix));
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
