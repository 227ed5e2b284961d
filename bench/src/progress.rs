//! What the run is doing now: a bar at a terminal, a line in a log.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// One thing that takes a while.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Something of a known length, such as a preload.
    pub(crate) fn counted(what: &str, length: u64) -> Self {
        let style = "{spinner} {msg} {wide_bar} {human_pos}/{human_len} {eta}";
        Self::new(what, ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr()), style)
    }

    /// Something that is just awaited.
    pub(crate) fn spinner(what: &str) -> Self {
        Self::new(what, ProgressBar::new_spinner(), "{spinner} {msg} {elapsed}")
    }

    fn new(what: &str, bar: ProgressBar, style: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            eprintln!("{what}");
        }
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        // Slow on purpose: the machine is being measured.
        bar.enable_steady_tick(Duration::from_millis(500));
        Self(bar)
    }

    pub(crate) fn add(&self, amount: u64) {
        self.0.inc(amount);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
