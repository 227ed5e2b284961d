//! Rules for [`super::Proxy::cut_when`].

use super::Direction;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a word is somewhere in these bytes.
pub fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|part| part == word.as_bytes())
}

/// Says yes once.
pub fn once(
    matches: impl Fn(Direction, &[u8]) -> bool + Send + Sync,
) -> impl Fn(Direction, &[u8]) -> bool + Send + Sync {
    let done = AtomicBool::new(false);
    move |direction, bytes| matches(direction, bytes) && !done.swap(true, Ordering::SeqCst)
}
