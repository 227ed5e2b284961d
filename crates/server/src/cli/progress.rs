//! Progress for a person who watches. Nothing is drawn when standard error is not a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Counts rows when nobody knows how many there will be.
pub(super) fn rows(what: &'static str) -> ProgressBar {
    spinning("{spinner} {msg}: {human_pos} rows, {per_sec}, {elapsed}", what)
}

/// Counts bytes towards a known end.
pub(super) fn bytes(what: &'static str, total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {eta}");
    let bar = ProgressBar::new(total);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.with_message(what)
}

fn spinning(template: &str, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template(template);
    let bar = ProgressBar::new_spinner();
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar.with_message(what)
}
