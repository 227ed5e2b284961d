//! `tally serve`: settings, log, signals, server.

use tally_server::settings;
use tally_settings::ServeArgs;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use super::failure::Failure;
use super::logging;

pub(super) const AFTER_HELP: &str = "\
Examples:
  tally serve --dev                                      try it out, without keys
  TALLY_ADMIN_KEY=… tally serve --listen 0.0.0.0:7700    with a key of your own
  tally serve --store embedded:/var/lib/tally --config /etc/tally.toml
  tally serve --store postgres://tally@db/app            one of several servers on a database
  tally serve --store redis://cache:6379                 one of several on a Redis
  tally serve --store redis+cluster://r1:6379,r2:6379    or on a Redis Cluster

The first start of a new store prints an admin key, once, unless TALLY_ADMIN_KEY or --dev is given.
SIGTERM and Ctrl-C stop it after answering what is in flight; a second one stops it at once.";

/// Runs the server until it is told to stop.
pub(super) fn run(args: &ServeArgs) -> Result<(), Failure> {
    let settings = settings::load(args)?;
    logging::init(&settings.log);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        // Before anything is opened, so that no signal finds the process unprepared once it listens.
        let told = told_to_stop()?;
        tally_server::serve::serve(settings, |_| {}, async { drop(told.await) }).await
    });
    // A recount that is still reading holds nothing that could be lost.
    runtime.shutdown_background();
    served.map_err(|error| Failure::new(format!("{error:#}")))
}

/// Resolves at the first signal to stop; the second ends the process, whatever it is doing.
fn told_to_stop() -> std::io::Result<oneshot::Receiver<()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (tell, told) = oneshot::channel();
    tokio::spawn(async move {
        any(&mut terminate, &mut interrupt).await;
        // The server may be gone already.
        let _ = tell.send(());
        let code = any(&mut terminate, &mut interrupt).await;
        tracing::warn!("told to stop a second time: stopping at once");
        std::process::exit(code);
    });
    Ok(told)
}

/// The exit code that a shell gives to the signal that came.
async fn any(terminate: &mut Signal, interrupt: &mut Signal) -> i32 {
    tokio::select! {
        _ = terminate.recv() => 128 + SignalKind::terminate().as_raw_value(),
        _ = interrupt.recv() => 128 + SignalKind::interrupt().as_raw_value(),
    }
}
