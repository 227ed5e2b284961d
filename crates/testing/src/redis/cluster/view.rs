//! What the nodes say of their cluster, and whether they agree.

use super::{Node, Role, SLOTS};
use crate::redis::field;
use anyhow::{Context, Result, bail, ensure};
use std::ops::RangeInclusive;

/// A line of `CLUSTER NODES`: what one node says of another, or of itself.
#[derive(Debug)]
pub(super) struct Member {
    id: String,
    flags: Vec<String>,
    /// The id of the master that it follows.
    pub(super) master: Option<String>,
    pub(super) epoch: u64,
    pub(super) slots: Vec<RangeInclusive<u16>>,
    /// Slots that are on their way to it.
    pub(super) importing: Vec<u16>,
}

impl Member {
    fn parse(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [id, _address, flags, master, _ping, _pong, epoch, _link, slots @ ..] = &words[..] else {
            bail!("not a line about a node: {line}");
        };
        let mut member = Self {
            id: (*id).into(),
            flags: flags.split(',').map(String::from).collect(),
            master: Some(*master).filter(|id| *id != "-").map(String::from),
            epoch: epoch.parse()?,
            slots: Vec::new(),
            importing: Vec::new(),
        };
        for slot in slots {
            // `[93-<-id]` comes, `[93->-id]` goes.
            if let Some(moving) = slot.strip_prefix('[') {
                member.importing.extend(moving.split_once("-<-").map(|(slot, _)| slot.parse::<u16>()).transpose()?);
                continue;
            }
            let (first, last) = slot.split_once('-').unwrap_or((slot, slot));
            member.slots.push(first.parse()?..=last.parse()?);
        }
        Ok(member)
    }

    pub(super) fn is(&self, flag: &str) -> bool {
        self.flags.iter().any(|it| it == flag)
    }

    pub(super) fn role(&self) -> Role {
        if self.is("master") { Role::Master } else { Role::Replica }
    }

    pub(super) fn has(&self, slot: u16) -> bool {
        self.slots.iter().any(|range| range.contains(&slot))
    }
}

/// Everything that one living node says.
pub(super) struct View<'a> {
    pub(super) node: &'a Node,
    /// Its number in the cluster.
    pub(super) at: usize,
    members: Vec<Member>,
    is_ok: bool,
    replication: String,
}

impl<'a> View<'a> {
    pub(super) fn of(at: usize, node: &'a Node) -> Result<Self> {
        let mut connection = node.connect()?;
        let members = connection.ask(&["CLUSTER", "NODES"])?.text();
        let about = connection.ask(&["CLUSTER", "INFO"])?.text();
        let replication = connection.ask(&["INFO", "replication"])?.text();
        let members = members.lines().map(Member::parse).collect::<Result<_>>()?;
        Ok(Self { node, at, members, is_ok: field(&about, "cluster_state") == Some("ok"), replication })
    }

    /// What it says of itself.
    pub(super) fn itself(&self) -> Result<&Member> {
        self.members.iter().find(|member| member.is("myself")).context("a node does not know itself")
    }

    fn of_other(&self, other: &Node) -> Result<&Member> {
        let known = self.members.iter().find(|member| member.id == other.id);
        known.with_context(|| format!("node {} does not know {}", self.at, other.address()))
    }

    /// Who serves each slot in its eyes.
    fn owners(&self) -> Vec<Option<&str>> {
        let mut owners = vec![None; usize::from(SLOTS)];
        for member in &self.members {
            for range in &member.slots {
                range.clone().for_each(|slot| owners[usize::from(slot)] = Some(member.id.as_str()));
            }
        }
        owners
    }
}

/// Whether all of these nodes agree who belongs to whom, and that one of them serves each slot, though not
/// `without`.
pub(super) fn check_served(views: &[View<'_>], without: Option<usize>) -> Result<()> {
    let Some(first) = views.first() else { bail!("no node is alive") };
    let owners = first.owners();
    let may_serve = |id: &str| views.iter().any(|view| view.node.id == id && Some(view.at) != without);
    let lost = owners.iter().position(|owner| !owner.is_some_and(may_serve));
    if let Some(slot) = lost {
        bail!("in the eyes of node {} slot {slot} is served by {:?}", first.at, owners[slot]);
    }
    for view in views {
        let at = view.at;
        ensure!(view.is_ok, "node {at} says that the cluster is not well");
        ensure!(view.owners() == owners, "nodes {} and {at} do not agree on who serves a slot", first.at);
        for other in views {
            let (seen, itself) = (view.of_other(other.node)?, other.itself()?);
            let doubt = ["fail", "fail?", "handshake", "noaddr"].into_iter().find(|flag| seen.is(flag));
            ensure!(doubt.is_none(), "node {at} says `{doubt:?}` of node {}", other.at);
            let is_agreed = seen.role() == itself.role() && seen.master == itself.master;
            ensure!(is_agreed, "node {at} does not know the role of node {}", other.at);
        }
    }
    Ok(())
}

/// Whether every replica has what its master has, if both are among these.
pub(super) fn check_in_sync(views: &[View<'_>]) -> Result<()> {
    for replica in views {
        let Some(master_id) = &replica.itself()?.master else { continue };
        let Some(master) = views.iter().find(|view| view.node.id == *master_id) else { continue };
        let pair = format!("node {}, a replica of node {}", replica.at, master.at);
        let is_up = field(&replica.replication, "master_link_status") == Some("up");
        ensure!(is_up, "{pair}, has no link to it");
        let online = format!("port={},state=online,", replica.node.port());
        ensure!(master.replication.contains(&online), "{pair}, is not online in its eyes");
        let offset = |view: &View<'_>, name| field(&view.replication, name).and_then(|it| it.parse::<u64>().ok());
        let (has, wanted) = (offset(replica, "slave_repl_offset"), offset(master, "master_repl_offset"));
        ensure!(has.is_some() && has >= wanted, "{pair}, has {has:?} of {wanted:?} bytes");
    }
    Ok(())
}
