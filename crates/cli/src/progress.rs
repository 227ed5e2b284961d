//! Progress for a person who watches. Nothing is drawn when standard error is not a terminal.

use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressState, ProgressStyle};

/// Counts rows when nobody knows how many there will be.
pub(super) fn rows(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg}: {human_pos} rows, {rate} a second, {elapsed}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner();
    bar.set_style(style.with_key("rate", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        // What cannot be drawn is not drawn.
        let _ = write!(out, "{}", HumanCount(state.per_sec() as u64));
    }));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar.with_message(what)
}

/// Counts bytes towards a known end.
pub(super) fn bytes(what: &'static str, total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {eta}");
    let bar = ProgressBar::new(total);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.with_message(what)
}
