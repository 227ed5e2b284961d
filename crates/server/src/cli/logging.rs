//! Logs go to standard error, so that standard output stays for answers.
//!
//! `log.level` is the one knob, so that `config show` tells the whole truth; RUST_LOG is not read. It is
//! about Tally itself: libraries say only warnings, at every level, because what they trace may hold
//! headers, and headers hold keys.

use tracing_subscriber::EnvFilter;

use crate::config::LogSettings;

/// Logs as the settings say.
pub(super) fn init(settings: &LogSettings) {
    let builder = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(filter(&settings.level))
        .with_ansi(!settings.json && std::io::IsTerminal::is_terminal(&std::io::stderr()));
    // Another logger can only be there in a test, and it is as good.
    let _ = if settings.json { builder.json().flatten_event(true).try_init() } else { builder.try_init() };
}

/// Commands speak for themselves; only what is wrong is logged.
pub(super) fn for_commands() {
    init(&LogSettings { json: false, level: "warn".into() });
}

fn filter(level: &str) -> EnvFilter {
    let libraries = if level == "error" { "error" } else { "warn" };
    EnvFilter::new(format!("{libraries},tally={level}"))
}
