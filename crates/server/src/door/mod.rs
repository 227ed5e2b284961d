//! The door: connections are given a place, watched, and cut when they do not do what they came for.
//!
//! `places.rs` bounds how many there are, `activity.rs` how long each may take for what, `memory.rs` what
//! their unfinished requests hold together, `wire.rs` watches their bytes, `framing` follows where requests
//! begin and end in them, `origin.rs` says which pages may ask.

pub mod activity;
pub mod answer;
mod framing;
pub mod memory;
pub mod origin;
pub mod places;
pub mod proxy;
mod wire;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use self::activity::{Activity, Cut};
use self::places::Place;
use self::proxy::Peer;
use self::wire::Wire;
use crate::app::App;
use crate::http::problem::Problem;
use crate::http::service;

/// Bytes that a client may send ahead of being read, in one stream and in all of a connection (HTTP/2).
const STREAM_WINDOW: u32 = 128 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;
/// Bytes of an answer that wait to be sent, for each stream.
const SEND_BUFFER: usize = 64 * 1024;
/// Longest time for a goodbye.
const GOODBYE: Duration = Duration::from_secs(1);
/// So much above the limit of headers is still answered with a problem document (HTTP/2).
const HEADERS_ABOVE: usize = 16 * 1024;

/// Serves a connection to its end.
pub async fn serve(app: App, router: Router, stream: TcpStream, tls: Option<TlsAcceptor>, place: Place) {
    // Small answers should not wait for more bytes.
    let _ = stream.set_nodelay(true);
    let activity = place.activity.clone();
    // One whose other end is gone already will not ask for anything.
    let Ok(peer) = stream.peer_addr() else { return };
    let peer = Peer(peer.ip());
    match tls {
        None => connection(app, router, stream, activity, peer).await,
        Some(acceptor) => {
            let handshake = std::pin::pin!(acceptor.accept(stream).into_future());
            match activity.watch(&app.settings.bounds, handshake).await {
                Ok(Ok(stream)) => connection(app, router, stream, activity, peer).await,
                Ok(Err(_)) => {}
                Err(cut) => app.metrics.cut(cut.name()),
            }
        }
    }
}

async fn connection<S>(app: App, router: Router, stream: S, activity: Arc<Activity>, peer: Peer)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut wire = Wire::new(stream, activity.clone());
    let spoken = activity.watch(&app.settings.bounds, std::pin::pin!(wire.speaks_http_2())).await;
    let is_http_2 = match spoken {
        Ok(is_http_2) => is_http_2,
        Err(cut) => return app.metrics.cut(cut.name()),
    };
    let ended = match is_http_2 {
        Ok(false) => speak_http_1(&app, router, wire, &activity, peer).await,
        Ok(true) => speak_http_2(&app, router, wire, &activity, peer).await,
        Err(_) => return,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn speak_http_1<S>(
    app: &App,
    router: Router,
    wire: Wire<S>,
    activity: &Arc<Activity>,
    peer: Peer,
) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let bounds = &app.settings.bounds;
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // Watched by `activity`, which can tell an idle client from a slow one.
        .header_read_timeout(None)
        .max_header_size(bounds.header_bytes_max)
        .max_buf_size(bounds.header_bytes_max.max(64 * 1024));
    let service = {
        let (app, activity) = (app.clone(), activity.clone());
        service_fn(move |request| service::serve(app.clone(), router.clone(), activity.clone(), peer, request))
    };
    let mut connection = builder.serve_connection(TokioIo::new(wire), service);
    let watched = tokio::select! {
        watched = activity.watch(bounds, Pin::new(&mut connection)) => Some(watched),
        () = app.stopped() => None,
    };
    let watched = match watched {
        Some(watched) => watched,
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            activity.watch(bounds, Pin::new(&mut connection)).await
        }
    };
    let cut = match watched {
        Ok(ended) => return ended,
        Err(cut) => cut,
    };
    app.metrics.cut(cut.name());
    if cut == Cut::SlowHead && activity.has_begun() {
        let waited_ms = bounds.header_read_timeout.as_millis();
        let problem = Problem::bad_request(format!("the headers were not sent within {waited_ms} ms"));
        app.metrics.problem(problem.code);
        connection.into_parts().io.into_inner().say(&problem).await;
    }
    Ok(())
}

async fn speak_http_2<S>(
    app: &App,
    router: Router,
    wire: Wire<S>,
    activity: &Arc<Activity>,
    peer: Peer,
) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let bounds = &app.settings.bounds;
    let mut builder = http2::Builder::new(TokioExecutor::new());
    let headers = bounds.header_bytes_max + HEADERS_ABOVE;
    builder
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(headers).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(bounds.idle_timeout);
    let service = {
        let (app, activity) = (app.clone(), activity.clone());
        service_fn(move |request| service::serve(app.clone(), router.clone(), activity.clone(), peer, request))
    };
    let mut connection = builder.serve_connection(TokioIo::new(wire), service);
    let watched = tokio::select! {
        watched = activity.watch(bounds, Pin::new(&mut connection)) => Some(watched),
        () = app.stopped() => None,
    };
    match watched {
        Some(Ok(ended)) => return ended,
        Some(Err(cut)) => {
            Pin::new(&mut connection).graceful_shutdown();
            app.metrics.cut(cut.name());
            return tokio::time::timeout(GOODBYE, connection).await.unwrap_or(Ok(()));
        }
        None => Pin::new(&mut connection).graceful_shutdown(),
    }
    match activity.watch(bounds, Pin::new(&mut connection)).await {
        Ok(ended) => ended,
        Err(cut) => {
            app.metrics.cut(cut.name());
            Ok(())
        }
    }
}
