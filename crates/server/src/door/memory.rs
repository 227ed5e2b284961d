//! What unfinished requests hold, all of them together: heads that are not whole yet, and bodies until
//! their request is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes that may be held, and are.
#[derive(Debug)]
pub struct Memory {
    bytes_max: usize,
    bytes: AtomicUsize,
    /// How much of it is of heads, which come from callers that nobody knows yet.
    head_bytes: AtomicUsize,
}

impl Memory {
    /// Nothing is held yet.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, bytes: AtomicUsize::new(0), head_bytes: AtomicUsize::new(0) })
    }

    /// Takes some; false where there is not so much left, and then takes none.
    pub fn take(&self, bytes: usize) -> bool {
        let fits = |held: usize| held.checked_add(bytes).filter(|held| *held <= self.bytes_max);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Gives back what was taken.
    pub fn give(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Takes some for a head: never more than half of all, so that bodies of known callers find room.
    pub fn take_head(&self, bytes: usize) -> bool {
        let fits = |held: usize| held.checked_add(bytes).filter(|held| *held <= self.bytes_max / 2);
        if self.head_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            return false;
        }
        let taken = self.take(bytes);
        if !taken {
            self.head_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        taken
    }

    /// Gives back what was taken for a head.
    pub fn give_head(&self, bytes: usize) {
        self.head_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.give(bytes);
    }

    /// How much is held now.
    pub fn held(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// The body of one request: what it holds, given back when the request is answered, and how far it is.
#[derive(Debug)]
pub struct Room {
    memory: Arc<Memory>,
    bytes: AtomicUsize,
    waits: AtomicBool,
    is_whole: AtomicBool,
}

impl Room {
    /// For a request that has a body.
    pub fn new(memory: Arc<Memory>) -> Arc<Self> {
        Arc::new(Self {
            memory,
            bytes: AtomicUsize::new(0),
            waits: AtomicBool::new(false),
            is_whole: AtomicBool::new(false),
        })
    }

    /// Makes room for more of the body; false where there is none.
    pub fn grow(&self, bytes: usize) -> bool {
        let grown = self.memory.take(bytes);
        if grown {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        grown
    }

    /// The body is being waited for, or is not any more.
    pub fn set_waits(&self, waits: bool) {
        self.waits.store(waits, Ordering::Relaxed);
    }

    /// Whether the rest of the body is what the request waits for.
    pub fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    /// The body was read to its end.
    pub fn set_whole(&self) {
        self.is_whole.store(true, Ordering::Relaxed);
    }

    /// Whether it was.
    pub fn is_whole(&self) -> bool {
        self.is_whole.load(Ordering::Relaxed)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.memory.give(*self.bytes.get_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_hold_is_bounded_and_comes_back() {
        let memory = Memory::new(100);
        let (one, other) = (Room::new(memory.clone()), Room::new(memory.clone()));
        assert!(one.grow(60) && other.grow(40));
        assert!(!one.grow(1) && !other.grow(usize::MAX), "no more than there is");
        assert_eq!(memory.held(), 100);
        drop(one);
        assert!(other.grow(60));
        drop(other);
        assert_eq!(memory.held(), 0);
    }
}
