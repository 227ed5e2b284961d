//! Runs the server: opens the store, listens, serves, and stops without losing an answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tally::core::command::{Call, Command};
use tally::core::rows::Role;
use tally::engine::{Engine, Lease, RunnerOptions};
use tally::{Options, Tally};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use crate::app::App;
use crate::auth::Authenticator;
use crate::auth::keys::NewKey;
use crate::config::{self, Settings};
use crate::http::{routes, service};
use crate::metrics::Metrics;
use crate::tls;

/// How the library is opened with these settings.
pub fn options(settings: &Settings) -> Options {
    let sync = match settings.sync {
        config::Sync::Always => tally::embedded::Sync::Always,
        config::Sync::Every(interval) => tally::embedded::Sync::Every(interval),
    };
    Options {
        catalog: settings.catalog(),
        runner: RunnerOptions { queue_commands_max: settings.limits.queue_depth_max, ..RunnerOptions::default() },
        embedded: tally::embedded::Options { sync, ..Default::default() },
        subscriptions_max: settings.limits.subscriptions_max,
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
    let tls = settings.tls.as_ref().map(tls::server_config).transpose()?.map(TlsAcceptor::from);
    let listener =
        TcpListener::bind(settings.listen).await.with_context(|| format!("cannot listen on {}", settings.listen))?;
    let address = listener.local_addr()?;
    let tally = Tally::open(&settings.store, Options { observer: Some(observer), ..options(&settings) }).await?;
    let first_key = prepare_keys(&tally, &auth, &settings).await?;
    let app = App::new(tally, auth, settings, metrics);
    let following = {
        let app = app.clone();
        tokio::spawn(async move { app.tally.follow_keys(&app.auth.keys).await })
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
    let first_start = tally.read_keys(&auth.keys).await?;
    let made = if alone && first_start && settings.admin_key.is_none() && !settings.dev {
        let made = NewKey::generate(Role::Admin, "first admin key", tally.now())?;
        let command = Command::PutApiKey { id: made.id.clone(), key: made.stored.clone() };
        tally.apply(Call::system(command)).await?.reply?;
        auth.keys.put(&made.id, &made.stored);
        Some(made.token)
    } else {
        None
    };
    tally.engine().release(Lease::Setup).await;
    Ok(made)
}

fn greet(app: &App, address: SocketAddr, first_key: Option<&str>) {
    for warning in &app.settings.warnings {
        tracing::warn!("{warning}");
    }
    if app.settings.dev {
        tracing::warn!("{}", config::DEV_WARNING);
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
    let limits = app.settings.limits;
    let places = Arc::new(Semaphore::new(limits.connections_max));
    let graceful = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        // With every place taken, newcomers wait in the system's queue.
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place,
            () = &mut stop => break,
        };
        let Ok(place) = place else { break };
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match stream {
            Ok((stream, _)) => spawn(app, &router, stream, tls.clone(), place, &graceful),
            Err(error) => {
                // Out of file handles, most likely: let some connections end first.
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    tracing::info!("stopping: no new connections; requests in flight are answered");
    app.stopping.send_replace(true);
    if tokio::time::timeout(limits.shutdown_grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("some connections did not end in time and are cut");
    }
}

fn spawn(
    app: &App,
    router: &Router,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    place: OwnedSemaphorePermit,
    graceful: &GracefulShutdown,
) {
    // Small answers should not wait for more bytes.
    let _ = stream.set_nodelay(true);
    let (app, router, watcher) = (app.clone(), router.clone(), graceful.watcher());
    tokio::spawn(async move {
        match tls {
            None => connection(app, router, stream, watcher).await,
            Some(acceptor) => {
                let handshake = tokio::time::timeout(app.settings.limits.header_read_timeout, acceptor.accept(stream));
                if let Ok(Ok(stream)) = handshake.await {
                    connection(app, router, stream, watcher).await;
                }
            }
        }
        drop(place);
    });
}

async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    app: App,
    router: Router,
    stream: S,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let limits = app.settings.limits;
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_read_timeout.max(limits.idle_timeout))
        .max_buf_size(limits.header_bytes_max.max(64 * 1024));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX))
        .keep_alive_interval(limits.idle_timeout);
    let spoken = Arc::new(AtomicBool::new(false));
    let service = {
        let spoken = spoken.clone();
        service_fn(move |request| {
            spoken.store(true, Ordering::Relaxed);
            service::serve(app.clone(), router.clone(), request)
        })
    };
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    let mut connection = std::pin::pin!(watcher.watch(connection));
    // The timers of the protocols start when it is known which one is spoken; a client that never says so
    // has none but this.
    let patience = limits.header_read_timeout.max(limits.idle_timeout);
    let ended = match tokio::time::timeout(patience, &mut connection).await {
        Ok(ended) => ended,
        Err(_) if spoken.load(Ordering::Relaxed) => connection.await,
        Err(_) => return,
    };
    if let Err(error) = ended {
        tracing::debug!(error = %error, "a connection ended early");
    }
}
