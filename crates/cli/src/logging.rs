//! Logs go to standard error, so that standard output stays for answers.
//!
//! `log.level` is the one knob, so that `config show` tells the whole truth; RUST_LOG is not read. It is
//! about Tally itself: libraries say only warnings, at every level, because what they trace may hold
//! headers, and headers hold keys.

use tally_settings::LogSettings;
use tracing_subscriber::EnvFilter;

/// Logs as the settings say.
pub(super) fn init(settings: &LogSettings) {
    start(settings.json, filter(&settings.level));
}

/// Commands speak for themselves; only what is wrong is logged. What a store's server could do better is said by
/// the doctor, and not at every command.
pub(super) fn for_commands() {
    start(false, EnvFilter::new("warn,tally_redis::facts=error"));
}

fn start(json: bool, filter: EnvFilter) {
    let builder = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(filter)
        .with_ansi(!json && std::io::IsTerminal::is_terminal(&std::io::stderr()));
    // Another logger can only be there in a test, and it is as good.
    let _ = if json { builder.json().flatten_event(true).try_init() } else { builder.try_init() };
}

fn filter(level: &str) -> EnvFilter {
    let libraries = if level == "error" { "error" } else { "warn" };
    EnvFilter::new(format!("{libraries},tally={level}"))
}
