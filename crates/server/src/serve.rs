//! Runs the server: opens the store, listens, serves, and stops without losing an answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tally::core::command::{Call, Command, PutApiKey};
use tally::core::rows::Role;
use tally::engine::{Lease, RunnerOptions, Together};
use tally::{Options, Tally};
use tally_settings::{DEV_WARNING, Settings, Sync};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::admission::{Admission, Both};
use crate::app::App;
use crate::auth::Authenticator;
use crate::auth::keys::NewKey;
use crate::door::places::Places;
use crate::http::routes;
use crate::metrics::Metrics;
use crate::{door, tls};

/// How the library is opened with these settings.
pub fn options(settings: &Settings) -> Options {
    let sync = match settings.sync {
        Sync::Always => tally::embedded::Sync::Always,
        Sync::Every(interval) => tally::embedded::Sync::Every(interval),
    };
    Options {
        catalog: settings.catalog(),
        runner: RunnerOptions { queue_commands_max: settings.bounds.queue_depth_max, ..RunnerOptions::default() },
        embedded: tally::embedded::Options {
            sync,
            cache_bytes: settings.embedded.cache_bytes,
            overlay_bytes_max: settings.embedded.overlay_bytes_max,
            ..Default::default()
        },
        subscriptions_max: settings.bounds.subscriptions_max,
        observer: None,
        ..Options::default()
    }
}

/// Serves until a signal or `stop` says otherwise. `ready` gets the address once it listens.
pub async fn serve(
    settings: Settings,
    ready: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    tls::install_crypto();
    let metrics = Arc::new(Metrics::default());
    let observer = {
        let metrics = metrics.clone();
        Arc::new(move |settled: &tally::engine::Settled| metrics.settled(settled))
    };
    let auth = Authenticator::new(&settings).await?;
    let admission = Admission::new(&settings.admission)?;
    let tls = settings.tls.as_ref().map(tls::server_config).transpose()?.map(TlsAcceptor::from);
    let listener =
        TcpListener::bind(settings.listen).await.with_context(|| format!("cannot listen on {}", settings.listen))?;
    let address = listener.local_addr()?;
    let tally = Tally::open(&settings.store, Options { observer: Some(observer), ..options(&settings) }).await?;
    tally::embedded::store::remove_left(&settings.backup_folder);
    let first_key = prepare_keys(&tally, &auth, &settings).await?;
    let app = App::new(tally, auth, admission, settings, metrics);
    let following = {
        let app = app.clone();
        tokio::spawn(async move { app.tally.follow_keys(&Both(&app)).await })
    };
    greet(&app, address, first_key.as_deref());
    ready(address);
    accept(&app, listener, tls, stop).await;
    following.abort();
    app.tally.close().await;
    if app.tally.engine().redis().is_some() {
        // How safe that is there is up to Redis.
        tracing::info!("stopped; everything that was answered is in Redis");
    } else {
        tracing::info!("stopped; everything that was answered is on disk");
    }
    Ok(())
}

/// Reads the stored keys; on the very first start makes one. Of several servers on one store, one does.
async fn prepare_keys(tally: &Tally, auth: &Authenticator, settings: &Settings) -> anyhow::Result<Option<String>> {
    let alone = tally.engine().lease(Lease::Setup).await?;
    let first_start = tally.read_keys(&auth.keys).await? || auth.keys.are_all_of_dev();
    let made = if alone && first_start && settings.admin_key.is_none() && !settings.dev {
        let made = NewKey::generate(Role::Admin, "first admin key", tally.now())?;
        let command = Command::from(PutApiKey { id: made.id.clone(), key: made.stored.clone() });
        tally.apply(Call::system(command)).await?.reply?;
        auth.keys.put(&made.id, &made.stored);
        Some(made.token)
    } else {
        None
    };
    tally.engine().release(Lease::Setup);
    Ok(made)
}

fn greet(app: &App, address: SocketAddr, first_key: Option<&str>) {
    for warning in &app.settings.warnings {
        tracing::warn!("{warning}");
    }
    if app.settings.dev {
        tracing::warn!("{}", DEV_WARNING);
    }
    let scheme = if app.settings.tls.is_some() { "https" } else { "http" };
    tracing::info!(store = tally::redacted(&app.settings.store), "serving on {scheme}://{address}");
    if let Some(key) = first_key {
        // The only time that the key is seen, so it goes to standard output, not to the log.
        println!("\nThis store is new. Its admin key, shown this once:\n\n  {key}\n\nTry it:\n");
        println!(
            "  curl -X PUT {scheme}://{address}/v1/relations/like/post:42/alice -H 'Authorization: Bearer {key}'\n"
        );
    }
}

async fn accept(app: &App, listener: TcpListener, tls: Option<TlsAcceptor>, stop: impl Future<Output = ()>) {
    let router = routes::router(app.clone());
    let bounds = app.settings.bounds;
    let places = Places::new(bounds.connections_max, app.memory.clone());
    let mut stop = std::pin::pin!(stop);
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let stream = match stream {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file handles, most likely: let some connections end first.
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // With every place taken by one at work, newcomers wait here and in the system's queue.
        let place = tokio::select! {
            place = places.take() => place,
            () = &mut stop => break,
        };
        tokio::spawn(door::serve(app.clone(), router.clone(), stream, tls.clone(), place));
    }
    drop(listener);
    tracing::info!("stopping: no new connections; requests in flight are answered");
    app.stopping.send_replace(true);
    if tokio::time::timeout(bounds.shutdown_grace, places.all_free()).await.is_err() {
        tracing::warn!("some connections did not end in time and are cut");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_the_store_in_a_folder_reach_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tally.toml");
        std::fs::write(&file, "[embedded]\ncache_bytes = 33554432\noverlay_bytes_max = 2097152\n").unwrap();
        let args = tally_settings::ServeArgs { config: Some(file), ..tally_settings::ServeArgs::default() };
        let settings = crate::settings::load_from(&args, &Default::default()).unwrap();
        let embedded = options(&settings).embedded;
        assert_eq!((embedded.cache_bytes, embedded.overlay_bytes_max), (32 << 20, 2 << 20));
    }
}
