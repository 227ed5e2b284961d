//! How servers share the partitions: each goes by how many they are and by its own place among them, so that nobody has to be
//! asked and all come to the same end.

use tally_core::rows::{DUE_PARTITIONS, Partitions};

/// A server's place among those that share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// How many servers come before it, in an order that all of them agree on.
    pub rank: usize,
    /// How many there are, with this one.
    pub servers: usize,
}

impl Default for Share {
    /// Alone.
    fn default() -> Self {
        Self { rank: 0, servers: 1 }
    }
}

impl Share {
    /// How many partitions are its own: as many as everybody else's, or one more.
    pub fn quota(self) -> usize {
        let (all, servers) = (usize::from(DUE_PARTITIONS), self.servers.max(1));
        all / servers + usize::from(self.rank < all % servers)
    }

    /// All partitions, those that it would rather have first. Servers begin at different places, so that they seldom want the
    /// same.
    fn by_preference(self) -> impl DoubleEndedIterator<Item = u8> {
        let all = usize::from(DUE_PARTITIONS);
        let begin = self.rank * all / self.servers.max(1);
        (0..all).map(move |place| ((begin + place) % all) as u8)
    }

    /// Of those that it holds, what it has too many of.
    pub fn too_many(self, held: Partitions) -> Partitions {
        let over = (held.len() as usize).saturating_sub(self.quota());
        self.by_preference().rev().filter(|partition| held.contains(*partition)).take(over).collect()
    }

    /// What it may take beside those that it holds, in the order in which to try, and how many of them.
    pub fn too_few(self, held: Partitions) -> (Vec<u8>, usize) {
        let under = self.quota().saturating_sub(held.len() as usize);
        (self.by_preference().filter(|partition| !held.contains(*partition)).collect(), under)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quotas_are_fair_and_make_up_the_whole() {
        for servers in 1..200 {
            let quotas: Vec<usize> = (0..servers).map(|rank| Share { rank, servers }.quota()).collect();
            assert_eq!(quotas.iter().sum::<usize>(), usize::from(DUE_PARTITIONS), "{servers}");
            assert!(quotas.iter().max().unwrap() - quotas.iter().min().unwrap() <= 1, "{servers}");
        }
        assert_eq!(Share::default().quota(), usize::from(DUE_PARTITIONS));
    }

    /// One beat of everybody, each of whom takes what is free.
    fn beat(held: &mut [Partitions]) {
        for rank in 0..held.len() {
            let share = Share { rank, servers: held.len() };
            held[rank] = held[rank].without(share.too_many(held[rank]));
            let taken = held.iter().fold(Partitions::NONE, |all, some| all.with(*some));
            let (wanted, count) = share.too_few(held[rank]);
            let free = wanted.into_iter().filter(|partition| !taken.contains(*partition)).take(count);
            held[rank] = held[rank].with(free.collect());
        }
    }

    #[test]
    fn whoever_comes_or_goes_all_is_shared_after_two_beats() {
        let mut held = Vec::new();
        for servers in [1, 2, 3, 7, 8, 3, 64, 70, 1] {
            // Those that go leave what they had, the first of them first; those that come have nothing.
            while held.len() > servers {
                held.remove(0);
            }
            held.resize(servers, Partitions::NONE);
            (0..2).for_each(|_| beat(&mut held));
            let all = held.iter().fold(Partitions::NONE, |all, some| all.with(*some));
            assert_eq!(all, Partitions::ALL, "{servers}");
            for (rank, some) in held.iter().enumerate() {
                assert_eq!(some.len() as usize, Share { rank, servers }.quota(), "{rank} of {servers}");
            }
        }
    }
}
