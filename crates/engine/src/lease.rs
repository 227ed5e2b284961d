//! Work that one server at a time does for all.

use std::fmt;

use tally_core::rows::{DUE_PARTITIONS, Partitions};

/// A piece of it. Whoever holds it need not be the only one that does it: a server that stood still may not know yet that
/// another one has taken over. So a lease saves work and never keeps anything from harm; the rules do, which look again at
/// every row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lease {
    /// Carrying jobs.
    Jobs,
    /// Setting up a new store.
    Setup,
    /// What is due in a partition.
    Due(u8),
}

impl Lease {
    /// Those of some partitions.
    pub fn of(partitions: Partitions) -> impl Iterator<Item = Self> {
        partitions.iter().map(Self::Due)
    }

    /// The partition, if it is of one.
    pub fn partition(self) -> Option<u8> {
        match self {
            Self::Due(partition) => Some(partition),
            Self::Jobs | Self::Setup => None,
        }
    }

    /// As [`Lease`] is written in a store.
    pub fn read(text: &str) -> Option<Self> {
        match text {
            "jobs" => Some(Self::Jobs),
            "setup" => Some(Self::Setup),
            _ => {
                let partition = text.strip_prefix("due:")?.parse().ok()?;
                (partition < DUE_PARTITIONS).then_some(Self::Due(partition))
            }
        }
    }
}

/// The same in every store.
impl fmt::Display for Lease {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jobs => to.write_str("jobs"),
            Self::Setup => to.write_str("setup"),
            Self::Due(partition) => write!(to, "due:{partition}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_read_as_it_is_written() {
        for lease in [Lease::Jobs, Lease::Setup].into_iter().chain(Lease::of(Partitions::ALL)) {
            assert_eq!(Lease::read(&lease.to_string()), Some(lease));
        }
        for text in ["", "due:", "due:64", "due:-1", "jobs "] {
            assert_eq!(Lease::read(text), None, "{text:?}");
        }
    }
}
