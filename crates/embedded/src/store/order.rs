//! The keys of an overlay in order, sorted when somebody asks.
//!
//! Writes outnumber scans, and keeping a tree in order costs each of them a search through memory that is
//! not in the cache. So there is no order before the first scan. From then on new keys are collected, and
//! sorted into a run in the background or for the next scan; runs of like size are merged, which leaves a
//! handful of them.

use std::{
    ops::Bound,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use byteview::ByteView;

use super::{overlay::Range, sort::sort};

type Run = Arc<Vec<ByteView>>;

#[derive(Debug, Default)]
pub(super) struct Order {
    /// Whether new keys are collected: since the first scan, or from the beginning where scans are usual.
    collecting: AtomicBool,
    scanned: AtomicBool,
    fresh: Mutex<Vec<ByteView>>,
    /// Sorted runs, larger before smaller. No key is in two of them.
    runs: Mutex<Vec<Run>>,
}

impl Order {
    /// The order of the overlay that comes after this one.
    pub(super) fn next(&self) -> Self {
        Self { collecting: AtomicBool::new(self.scanned.load(Ordering::Relaxed)), ..Self::default() }
    }

    /// Where to put keys that were not there before, if they are collected.
    pub(super) fn fresh(&self) -> Option<MutexGuard<'_, Vec<ByteView>>> {
        self.collecting.load(Ordering::Acquire).then(|| self.lock_fresh())
    }

    /// Sorts what has been collected. Others who need the order wait for it; those who add keys do not.
    pub(super) fn settle(&self) {
        self.settle_runs(&mut self.lock_runs());
    }

    /// The keys of a range, in order or in reverse. `all` gives every key there is; while this is called,
    /// none are added.
    pub(super) fn range(&self, range: Range<'_>, reverse: bool, all: impl FnOnce() -> Vec<ByteView>) -> Keys {
        self.scanned.store(true, Ordering::Relaxed);
        let mut runs = self.lock_runs();
        if !self.collecting.swap(true, Ordering::AcqRel) {
            runs.push(Arc::new(sort(all())));
        }
        self.settle_runs(&mut runs);
        let cursors = runs.iter().map(|run| Cursor::new(run.clone(), range)).collect();
        Keys { cursors, reverse }
    }

    fn settle_runs(&self, runs: &mut Vec<Run>) {
        let fresh = std::mem::take(&mut *self.lock_fresh());
        if fresh.is_empty() {
            return;
        }
        runs.push(Arc::new(sort(fresh)));
        while let [.., larger, smaller] = &runs[..]
            && larger.len() < 2 * smaller.len()
        {
            if let (Some(smaller), Some(larger)) = (runs.pop(), runs.pop()) {
                runs.push(Arc::new(merge(larger, smaller)));
            }
        }
    }

    fn lock_fresh(&self) -> MutexGuard<'_, Vec<ByteView>> {
        self.fresh.lock().expect("no holder of this lock panics")
    }

    fn lock_runs(&self) -> MutexGuard<'_, Vec<Run>> {
        self.runs.lock().expect("no holder of this lock panics")
    }
}

/// Merges two runs that have no key in common.
fn merge(one: Run, other: Run) -> Vec<ByteView> {
    let mut merged = Vec::with_capacity(one.len() + other.len());
    let mut one = Arc::unwrap_or_clone(one).into_iter().peekable();
    let mut other = Arc::unwrap_or_clone(other).into_iter().peekable();
    while let (Some(left), Some(right)) = (one.peek(), other.peek()) {
        let next = if left < right { one.next() } else { other.next() };
        merged.extend(next);
    }
    merged.extend(one);
    merged.extend(other);
    merged
}

/// See [`Order::range`].
pub(super) struct Keys {
    cursors: Vec<Cursor>,
    reverse: bool,
}

struct Cursor {
    run: Run,
    from: usize,
    to: usize,
}

impl Cursor {
    fn new(run: Run, (low, high): Range<'_>) -> Self {
        let from = match low {
            Bound::Included(low) => run.partition_point(|key| **key < *low),
            Bound::Excluded(low) => run.partition_point(|key| **key <= *low),
            Bound::Unbounded => 0,
        };
        let to = match high {
            Bound::Included(high) => run.partition_point(|key| **key <= *high),
            Bound::Excluded(high) => run.partition_point(|key| **key < *high),
            Bound::Unbounded => run.len(),
        };
        Self { run, from, to }
    }

    fn peek(&self, reverse: bool) -> Option<&ByteView> {
        (self.from < self.to).then(|| &self.run[if reverse { self.to - 1 } else { self.from }])
    }
}

impl Iterator for Keys {
    type Item = ByteView;

    fn next(&mut self) -> Option<ByteView> {
        let reverse = self.reverse;
        let live = self.cursors.iter_mut().filter(|cursor| cursor.from < cursor.to);
        let cursor = live.reduce(|one, other| {
            let sooner = if reverse { other.peek(true) > one.peek(true) } else { other.peek(false) < one.peek(false) };
            if sooner { other } else { one }
        })?;
        let key = cursor.peek(reverse).cloned();
        if reverse {
            cursor.to -= 1;
        } else {
            cursor.from += 1;
        }
        key
    }
}
