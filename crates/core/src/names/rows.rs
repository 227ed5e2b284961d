//! Where to look for what somebody did: every name that was ever declared.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::id::Name;
use crate::rows::{Kind, declare, documents, kind};

/// Every name that was ever declared: what is not declared any more may still hold what is to be forgotten.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Names {
    /// Every counter that was ever declared.
    #[serde(default)]
    pub counters: BTreeSet<Name>,
    /// Unique counts.
    #[serde(default)]
    pub uniques: BTreeSet<Name>,
    /// Every sheet that was ever declared.
    #[serde(default)]
    pub sheets: BTreeSet<Name>,
    /// Every board that was ever declared.
    #[serde(default)]
    pub boards: BTreeSet<Name>,
    /// Every room that there is.
    #[serde(default)]
    pub rooms: BTreeSet<Name>,
}

impl Names {
    /// These and those.
    pub fn and(mut self, others: Self) -> Self {
        let Self { counters, uniques, sheets, boards, rooms } = others;
        self.counters.extend(counters);
        self.uniques.extend(uniques);
        self.sheets.extend(sheets);
        self.boards.extend(boards);
        self.rooms.extend(rooms);
        self
    }
}

documents!(Names);

impl Kind for kind::Names {
    declare!(Names = b'N' "declared" in "key"
        ("id" Text) => ("names" Json)
        Changed Store);
}
