//! The key plan. Everything of an object, and everything of a subject, has one tag and so one slot.
//!
//! | key | what | holds |
//! |---|---|---|
//! | `tally:o:{post:42}:like` | sorted set | who likes it, newest first; its length is the count |
//! | `tally:o:{post:42}:like:hidden` | sorted set | likes of suspended subjects |
//! | `tally:o:{post:42}:like:data` | hash | kind and meta of edges that have any |
//! | `tally:o:{post:42}:like:kinds` | hash | how many of each kind |
//! | `tally:s:{alice}:like`, `…:hidden` | sorted set | what alice likes, newest first |
//! | `tally:o:{…}:.off`, `tally:s:{…}:.off` | hash | by how much a total differs from its list; never, but by a repair |
//! | `tally:object:{post:42}`, `tally:subject:{alice}`, … | JSON | rows with a key of their own, see `places.rs` |
//! | `tally:counter:{post:42}`, `tally:score:{points}`, … | hash | rows of one kind that are kept together, by the last part of their keys |
//! | a total that counts no edges, by its table | hash | numbers that are no rows |
//! | `tally:ticket:{sale}:order`, `tally:score:{weekly}:…:order` | sorted set | ids of rows that stand in an order, behind what they reached |
//! | `tally:replay:{r7}` | hash | rows that are spread |
//! | `tally:job:{sys}`, `tally:api_key:{sys}`, … | hash | rows of which there are few |
//! | `tally:due:{1f}:replay:7` | sorted set | rows of a slot and a partition, by when they are due |
//! | `tally:sys:{sys}:…` | | names of relations, the newest stamp, the time, leases |
//! | `tally:i:{1f}` | sorted set | what there is in a slot, by name |
//! | `tally:w:{1f}` | hash | commits over several slots that are under way |
//! | `tally:t:{1f}:<server>`, `…-<number>` | sorted set, text | what a server committed last; what became of a commit |
//!
//! Scores of edges are microseconds since 1970, negative, so that the newest comes first; those of orders are negative so
//! that the highest does.

use tally_core::rows::{EdgeKey, Side};

use crate::slots::{self, slot_escape, slot_of};

/// Makes keys under a prefix.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) prefix: String,
    /// Whether a script is held to one slot.
    pub(crate) slots: bool,
}

/// The keys of one list of edges, with what belongs to it.
pub(crate) struct ListKeys {
    /// Those that everybody sees.
    pub(crate) shown: String,
    /// Those of suspended subjects.
    pub(crate) hidden: String,
    /// What is attached; on the object's side only.
    pub(crate) data: String,
    /// By how much a total differs from its list.
    pub(crate) off: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str, slots: bool) -> Self {
        Self { prefix: prefix.into(), slots }
    }

    /// The home of an id on one side, such as `tally:o:{post:42}`.
    pub(crate) fn home(&self, side: Side, id: &str) -> String {
        self.shown_pieces(side, id, "")[..5].concat()
    }

    /// The key of what everybody sees of a list, in pieces.
    pub(crate) fn shown_pieces<'a>(&'a self, side: Side, id: &'a str, relation: &'a str) -> [&'a str; 7] {
        let escape = slot_escape(id);
        let letter = if side == Side::Object { ":o:{" } else { ":s:{" };
        [&self.prefix, letter, escape, id, "}", ":", relation]
    }

    /// A key with a tag, such as `tally:c:{post:42}`. Those of one id have one slot, whatever their letter.
    pub(crate) fn tagged(&self, letter: &str, id: &str) -> String {
        [&self.prefix, ":", letter, ":{", slot_escape(id), id, "}"].concat()
    }

    /// The id whose home a key belongs to.
    pub(crate) fn id_of<'a>(&self, side: Side, key: &'a str) -> Option<&'a str> {
        let letter = if side == Side::Object { "o:{" } else { "s:{" };
        let rest = key.strip_prefix(&*self.prefix)?.strip_prefix(':')?.strip_prefix(letter)?;
        let (id, _) = rest.rsplit_once('}')?;
        Some(id.strip_prefix('%').unwrap_or(id))
    }

    pub(crate) fn list(&self, side: Side, id: &str, relation: &str) -> ListKeys {
        let home = self.home(side, id);
        let shown = [&home, ":", relation].concat();
        ListKeys {
            hidden: [&shown, ":hidden"].concat(),
            data: [&shown, ":data"].concat(),
            // No relation has a dot in its name.
            off: [&home, ":.off"].concat(),
            shown,
        }
    }

    /// What everybody sees of a list.
    pub(crate) fn shown(&self, side: Side, id: &str, relation: &str) -> String {
        self.shown_pieces(side, id, relation).concat()
    }

    pub(crate) fn kinds(&self, object: &str, relation: &str) -> String {
        format!("{}:{relation}:kinds", self.home(Side::Object, object))
    }

    /// One of the keys of the store as a whole.
    pub(crate) fn system(&self, name: &str) -> String {
        format!("{}:sys:{{sys}}:{name}", self.prefix)
    }

    /// What there is in a slot.
    pub(crate) fn index(&self, slot: u16) -> String {
        format!("{}:i:{{{}}}", self.prefix, slots::tag(slot))
    }

    /// What is under way in a slot.
    pub(crate) fn open(&self, part: u16) -> String {
        format!("{}:w:{{{}}}", self.prefix, slots::tag(part))
    }

    /// What became of a commit.
    pub(crate) fn record(&self, part: u16, transaction: &str) -> String {
        format!("{}:t:{{{}}}:{transaction}", self.prefix, slots::tag(part))
    }

    /// What a server did in a slot, by the numbers of its commits.
    pub(crate) fn ring(&self, part: u16, server: &str) -> String {
        format!("{}:t:{{{}}}:{server}", self.prefix, slots::tag(part))
    }

    /// What one script may touch together: a slot, or everything.
    pub(crate) fn part(&self, key: &str) -> u16 {
        if self.slots { slot_of(key) } else { 0 }
    }
}

/// The entry of an edge's list in the index of its slot, as `places.rs` has them for other rows.
pub(crate) fn edges_entry(key: &EdgeKey) -> String {
    format!("e{}\0{}", key.relation, key.object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_of_an_id_has_one_slot_and_ids_do_not_meet() {
        let keys = Keys::new("tally", true);
        let ids = ["a", "}", "%", "%}", "}a", "a}b", "a}:like", "{", "{}", "a{b}", "%%}", "👍"];
        let mut all = std::collections::BTreeSet::new();
        for id in ids {
            let list = keys.list(Side::Subject, id, "like");
            let slot = slot_of(&keys.home(Side::Subject, id));
            for key in [list.shown, list.hidden, list.data, list.off] {
                assert_eq!(slot_of(&key), slot, "{key}");
                // What is due by partition is looked for in slots that go by this.
                assert_eq!(tally_core::hash::slot(id), slot, "{key}");
                assert_eq!(keys.id_of(Side::Subject, &key), Some(id), "{key}");
                assert!(all.insert(key));
            }
        }
    }
}
