//! Commits by number: each server counts its own, and knows which of them are still under way.
//!
//! The number goes with everything that is sent for a commit, together with the lowest that is under way. So Redis can tell
//! what comes late: whatever is below is over, however long it was on its way. See `scripts/ring.lua`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

#[derive(Default)]
pub(crate) struct Numbers(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    last: u64,
    under_way: BTreeSet<u64>,
}

/// A commit under way, until it is dropped.
pub(crate) struct Numbered {
    numbers: Arc<Numbers>,
    pub(crate) number: u64,
    /// As everybody knows it.
    pub(crate) name: String,
}

impl Numbered {
    pub(crate) fn begin(numbers: &Arc<Numbers>, server: u64) -> Self {
        let number = numbers.0.lock().map_or(0, |mut counted| {
            counted.last += 1;
            let number = counted.last;
            counted.under_way.insert(number);
            number
        });
        Self { numbers: numbers.clone(), number, name: format!("{server:x}-{number}") }
    }

    /// Everything below is over.
    pub(crate) fn low(&self) -> u64 {
        let low = self.numbers.0.lock().ok().and_then(|counted| counted.under_way.first().copied());
        low.unwrap_or(self.number).min(self.number)
    }
}

impl Drop for Numbered {
    fn drop(&mut self) {
        if let Ok(mut counted) = self.numbers.0.lock() {
            counted.under_way.remove(&self.number);
        }
    }
}

/// The number in a name.
pub(crate) fn number_in(name: &str) -> &str {
    name.rsplit_once('-').map_or("0", |(_, number)| number)
}

/// The server in a name.
pub(crate) fn server_in(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(server, _)| server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_the_lowest_under_way_is_over() {
        let numbers = Arc::new(Numbers::default());
        let one = Numbered::begin(&numbers, 0xab);
        let two = Numbered::begin(&numbers, 0xab);
        assert_eq!((one.number, two.number, two.low()), (1, 2, 1));
        drop(one);
        assert_eq!(two.low(), 2);
        assert_eq!((server_in(&two.name), number_in(&two.name)), ("ab", "2"));
    }
}
