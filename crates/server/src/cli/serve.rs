//! `tally serve`: settings, log, signals, server.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::failure::Failure;
use super::logging;
use crate::config::{self, ServeArgs};

pub(super) const AFTER_HELP: &str = "\
Examples:
  tally serve --dev                                      try it out, without keys
  TALLY_ADMIN_KEY=… tally serve --listen 0.0.0.0:7700    with a key of your own
  tally serve --store embedded:/var/lib/tally --config /etc/tally.toml

The first start of a new store prints an admin key, once, unless TALLY_ADMIN_KEY or --dev is given.
SIGTERM and Ctrl-C stop it after answering what is in flight; a second one stops it at once.";

/// Runs the server until it is told to stop.
pub(super) fn run(args: &ServeArgs) -> Result<(), Failure> {
    let settings = config::load(args)?;
    logging::init(&settings.log);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let serving = crate::serve::serve(settings, |_| {}, told_to_stop());
    runtime.block_on(serving).map_err(|error| Failure::new(format!("{error:#}")))
}

/// Resolves at the first signal to stop. The handlers are put up when this is first polled, which is when
/// the server listens: before that nothing is in flight, and a signal may end the process as it always does.
async fn told_to_stop() {
    let signals = signal(SignalKind::terminate()).and_then(|term| Ok((term, signal(SignalKind::interrupt())?)));
    let (mut terminate, mut interrupt) = match signals {
        Ok(signals) => signals,
        Err(error) => {
            // Signals then do what they do by default: the process ends at once, and loses nothing answered.
            tracing::warn!(%error, "signals cannot be caught; stopping will not wait for requests in flight");
            return std::future::pending().await;
        }
    };
    any(&mut terminate, &mut interrupt).await;
    tokio::spawn(async move {
        let code = any(&mut terminate, &mut interrupt).await;
        tracing::warn!("told to stop a second time: stopping at once");
        std::process::exit(code);
    });
}

/// The exit code that a shell gives to the signal that came.
async fn any(terminate: &mut Signal, interrupt: &mut Signal) -> i32 {
    tokio::select! {
        _ = terminate.recv() => 128 + SignalKind::terminate().as_raw_value(),
        _ = interrupt.recv() => 128 + SignalKind::interrupt().as_raw_value(),
    }
}
