//! Moving a slot from one master to another while it is in use, a step at a time.

use super::{Cluster, Node, Role};
use anyhow::{Context, Result, bail};

/// How many keys go at once when nobody holds them up.
const KEYS_AT_ONCE: usize = 100;

impl Cluster {
    /// Moves a slot with everything in it.
    pub fn move_slot(&self, slot: u16, to: usize) -> Result<()> {
        self.begin_move(slot, to)?;
        while self.move_keys(slot, KEYS_AT_ONCE)? > 0 {}
        self.end_move(slot)
    }

    /// Says on both sides that the slot moves. From now on its master sends whoever asks for a key that it does
    /// not have to the other (`ASK`).
    pub fn begin_move(&self, slot: u16, to: usize) -> Result<()> {
        let (from, to) = (self.node(self.master_of_slot(slot)?), self.node(to));
        if from.id == to.id {
            bail!("slot {slot} is there already");
        }
        // In this order: nobody is sent to a node that does not expect it.
        set_slot(to, slot, &["IMPORTING", &from.id])?;
        set_slot(from, slot, &["MIGRATING", &to.id])
    }

    /// Moves some of the slot's keys. Gives how many; none means that there are no more.
    pub fn move_keys(&self, slot: u16, at_most: usize) -> Result<usize> {
        let (from, to) = self.sides(slot)?;
        let mut source = from.connect()?;
        let keys = source.ask(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), &at_most.to_string()])?.texts();
        if keys.is_empty() {
            return Ok(0);
        }
        let (host, port) = (to.address().ip().to_string(), to.port().to_string());
        let mut words = vec!["MIGRATE", &host, &port, "", "0", "10000", "REPLACE"];
        if let Some(password) = &to.options.password {
            words.extend(["AUTH", password]);
        }
        words.push("KEYS");
        let words: Vec<&[u8]> = words.into_iter().map(str::as_bytes).chain(keys.iter().map(Vec::as_slice)).collect();
        source.ask(&words)?;
        Ok(keys.len())
    }

    /// Makes the other node the slot's master and tells all masters. Refused while keys are left behind.
    pub fn end_move(&self, slot: u16) -> Result<()> {
        let (from, to) = self.sides(slot)?;
        let left = from.ask(&["CLUSTER", "COUNTKEYSINSLOT", &slot.to_string()])?;
        if left != "0" {
            bail!("slot {slot} still has {left} keys to move");
        }
        // The new master first: if the old one let go before, nobody would have the slot for a moment.
        set_slot(to, slot, &["NODE", &to.id])?;
        set_slot(from, slot, &["NODE", &to.id])?;
        for node in self.nodes().iter().filter(|node| node.is_alive() && node.id != to.id && node.id != from.id) {
            if node.role()? == Role::Master {
                set_slot(node, slot, &["NODE", &to.id])?;
            }
        }
        Ok(())
    }

    /// Who has a slot that moves, and who gets it.
    fn sides(&self, slot: u16) -> Result<(&Node, &Node)> {
        let views = self.views()?;
        let is_target = |member: &super::view::Member| member.importing.contains(&slot);
        let target = views.iter().find(|view| view.itself().is_ok_and(is_target));
        let target = target.with_context(|| format!("slot {slot} does not move"))?;
        Ok((self.node(self.master_of_slot(slot)?), target.node))
    }
}

fn set_slot(node: &Node, slot: u16, how: &[&str]) -> Result<()> {
    let slot = slot.to_string();
    let words = [&["CLUSTER", "SETSLOT", &slot], how].concat();
    node.ask(&words).map(drop)
}
