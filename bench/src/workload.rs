//! The data that every system gets: 1M subjects, 100k objects by Zipf 1.0, 10 % repeats.
//!
//! Made from a seed, so that each system sees the same edges in the same order. Fresh edges are
//! really fresh: each object walks through the subjects in its own order, so the share of repeats is
//! what was asked for, however long a row runs and however fast the system is.

/// How many subjects there are.
pub(crate) const SUBJECTS: u32 = 1_000_000;
/// How many objects there are.
pub(crate) const OBJECTS: u32 = 100_000;
/// One write in this many repeats an earlier one.
const REPEAT_EVERY: u64 = 10;
/// Steps through the subjects; a prime, so every subject is visited before one comes again.
const STRIDE: u64 = 611_953;
/// How many recent edges a repeat is chosen from.
const RECENT: usize = 8192;
/// The object of the "one hot post" rows, outside the others.
pub(crate) const HOT_OBJECT: u32 = OBJECTS;

/// One like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) object: u32,
    pub(crate) subject: u32,
}

/// Which edges a row asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// Objects by Zipf, one in ten a repeat.
    Zipf,
    /// All on one object, one in ten a repeat.
    Hot,
    /// Only edges that are there already.
    Repeated,
}

/// The source of edges.
pub(crate) struct Workload {
    random: Random,
    /// Running totals of 1/rank, to draw from by binary search.
    cumulative: Vec<f64>,
    taken: Vec<u32>,
    hot_taken: u32,
    recent: Vec<Edge>,
    recent_hot: Vec<Edge>,
}

impl Workload {
    pub(crate) fn new(seed: u64) -> Self {
        let mut sum = 0.0;
        let cumulative = (1..=OBJECTS)
            .map(|rank| {
                sum += 1.0 / f64::from(rank);
                sum
            })
            .collect();
        Self {
            random: Random(seed),
            cumulative,
            taken: vec![0; OBJECTS as usize],
            hot_taken: 0,
            recent: Vec::with_capacity(RECENT),
            recent_hot: Vec::with_capacity(RECENT),
        }
    }

    /// The next edge of a row.
    pub(crate) fn next(&mut self, shape: Shape) -> Edge {
        let repeat = shape == Shape::Repeated || self.random.below(REPEAT_EVERY) == 0;
        let pool = if shape == Shape::Hot { &self.recent_hot } else { &self.recent };
        if repeat && !pool.is_empty() {
            return pool[self.random.below(pool.len() as u64) as usize];
        }
        match shape {
            Shape::Hot => self.fresh_hot(),
            Shape::Zipf | Shape::Repeated => self.fresh(),
        }
    }

    /// An edge that was not there before.
    pub(crate) fn fresh(&mut self) -> Edge {
        let object = self.object();
        let step = u64::from(self.taken[object as usize]);
        self.taken[object as usize] += 1;
        let start = u64::from(object) * 7919;
        let subject = ((start + step * STRIDE) % u64::from(SUBJECTS)) as u32;
        let edge = Edge { object, subject };
        remember(&mut self.recent, edge, &mut self.random);
        edge
    }

    fn fresh_hot(&mut self) -> Edge {
        let edge = Edge { object: HOT_OBJECT, subject: self.hot_taken };
        self.hot_taken += 1;
        remember(&mut self.recent_hot, edge, &mut self.random);
        edge
    }

    /// An object by Zipf; 0 is the most popular.
    pub(crate) fn object(&mut self) -> u32 {
        let total = self.cumulative.last().copied().unwrap_or(1.0);
        let point = self.random.unit() * total;
        self.cumulative.partition_point(|sum| *sum < point).min(OBJECTS as usize - 1) as u32
    }

    /// A number below `bound`, each as likely.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.random.below(u64::from(bound)) as u32
    }
}

fn remember(recent: &mut Vec<Edge>, edge: Edge, random: &mut Random) {
    if recent.len() < RECENT {
        recent.push(edge);
    } else {
        recent[random.below(RECENT as u64) as usize] = edge;
    }
}

/// SplitMix64: small, fast, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn fresh_edges_never_come_twice() {
        let mut workload = Workload::new(1);
        let mut seen = HashSet::new();
        for _ in 0..300_000 {
            let edge = workload.fresh();
            assert!(edge.subject < SUBJECTS && edge.object < OBJECTS);
            assert!(seen.insert((edge.object, edge.subject)), "{edge:?}");
        }
    }

    #[test]
    fn one_in_ten_repeats_and_the_first_object_gets_its_share() {
        let mut workload = Workload::new(2);
        let mut seen = HashSet::new();
        let (mut repeats, mut first) = (0, 0);
        for _ in 0..100_000 {
            let edge = workload.next(Shape::Zipf);
            repeats += u32::from(!seen.insert((edge.object, edge.subject)));
            first += u32::from(edge.object == 0);
        }
        assert!((9_000..11_000).contains(&repeats), "{repeats}");
        // 1 / H(100000) = 8.3 %
        assert!((7_500..9_100).contains(&first), "{first}");
    }

    #[test]
    fn the_same_seed_gives_the_same_edges() {
        let edges = |seed| {
            let mut workload = Workload::new(seed);
            (0..100).map(|_| workload.next(Shape::Hot)).collect::<Vec<_>>()
        };
        assert_eq!(edges(3), edges(3));
    }
}
