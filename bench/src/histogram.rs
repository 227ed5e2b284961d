//! Latencies in logarithmic buckets: 64 to each doubling, so a figure is right to 1.6 %.

use std::time::Duration;

const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;
const BUCKETS: usize = ((64 - SUB_BITS as usize) + 1) * SUB as usize;

/// Counts of durations, by nanoseconds.
#[derive(Clone)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0 }
    }

    /// Adds a duration that `times` operations took (a batch answers all of them at once).
    pub(crate) fn record(&mut self, duration: Duration, times: u64) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket_of(nanos)] += times;
        self.total += times;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The duration below which `share` (0 to 1) of the operations stayed, in microseconds.
    pub(crate) fn quantile_us(&self, share: f64) -> f64 {
        let wanted = (share * self.total as f64).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return middle_of(bucket) / 1000.0;
            }
        }
        0.0
    }
}

fn bucket_of(nanos: u64) -> usize {
    if nanos < SUB {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - SUB_BITS;
    (u64::from(shift + 1) * SUB + ((nanos >> shift) - SUB)) as usize
}

fn middle_of(bucket: usize) -> f64 {
    let bucket = bucket as u64;
    if bucket < SUB {
        return bucket as f64;
    }
    let shift = (bucket / SUB - 1) as i32;
    let low = (bucket % SUB + SUB) as f64 * 2_f64.powi(shift);
    low + 2_f64.powi(shift) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_two_percent() {
        let mut histogram = Histogram::new();
        for us in 1..=1000 {
            histogram.record(Duration::from_micros(us), 1);
        }
        for (share, expected) in [(0.5, 500.0), (0.99, 990.0), (0.999, 999.0)] {
            let found = histogram.quantile_us(share);
            assert!((found / expected - 1.0).abs() < 0.02, "{share}: {found}");
        }
    }

    #[test]
    fn every_duration_has_a_bucket_near_it() {
        for nanos in [0, 1, 63, 64, 65, 127, 128, 1_000_003, u64::MAX / 3, u64::MAX] {
            let middle = middle_of(bucket_of(nanos));
            assert!((middle - nanos as f64).abs() <= nanos as f64 * 0.02 + 0.5, "{nanos}: {middle}");
        }
    }
}
