//! Live counts: Server-Sent Events with the full count after each change.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::body::{Body, Bytes};
use axum::extract::RawQuery;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::IntoResponse;
use futures_util::stream;
use tally::Subscription;
use tally::core::limits::{FEED_OBJECTS_MAX, FEED_RELATIONS_MAX};
use tally::core::query::FeedQuery;
use tally::core::{Name, ObjectId};
use tokio::sync::watch;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::auth::policy::Permission;
use crate::http::counts::{Counts, Pair};
use crate::http::problem::Problem;
use crate::http::request::{Caller, Outcome, listed};

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(live))
}

/// A comment now and then keeps the connection from being taken for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How often a quiet stream looks whether the credential that opened it still holds, and how soon it asks again for what
/// the store could not tell.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Counts that are told at once. Whether they may be is asked right before, so what waits for a slow client is never much.
const AT_ONCE: usize = 64;

/// Follow counts as they change
///
/// An event `count` for each object and relation at first, then one whenever a count changes, always with the full count.
/// The stream ends with the credential that opened it: when the key is revoked, or the token expires. A relation's
/// condition for reading is asked before every event: what it forbids is left out for as long as it does.
#[utoipa::path(get, path = "/v1/live", tag = "Running",
    params(
        ("objects" = String, Query, description = "Objects, separated by commas; a comma inside an id is written %2C"),
        ("relations" = String, Query, description = "Relations, separated by commas"),
    ),
    responses((status = 200, description = "Server-Sent Events", body = String, content_type = "text/event-stream")))]
pub async fn live(caller: Caller, headers: HeaderMap, RawQuery(query): RawQuery) -> Outcome {
    let app = &caller.app;
    let credential = Credential::of(app, &headers).await?;
    let query = query.unwrap_or_default();
    let objects = listed(&query, "objects")?.iter().map(|text| ObjectId::new(text)).collect::<Result<Vec<_>, _>>()?;
    let relations = listed(&query, "relations")?.iter().map(|text| Name::new(text)).collect::<Result<Vec<_>, _>>()?;
    if objects.is_empty() || objects.len() > FEED_OBJECTS_MAX {
        return Err(Problem::bad_request(format!("objects has 1 to {FEED_OBJECTS_MAX} objects, separated by commas")));
    }
    if relations.is_empty() || relations.len() > FEED_RELATIONS_MAX {
        let text = format!("relations has 1 to {FEED_RELATIONS_MAX} names, separated by commas");
        return Err(Problem::bad_request(text));
    }
    for relation in &relations {
        let policy = app.tally.catalog().relation(relation).map_err(Problem::from)?.read;
        caller.may(Permission::Live, None, Some(policy))?;
    }
    // Subscribed before the first read, so that no change falls between the two.
    let subscription = app.tally.watch(&objects, &relations)?;
    let pairs = objects.iter().flat_map(|object| relations.iter().map(|name| (object.clone(), name.clone())));
    let ready = pairs.collect();
    let first =
        app.tally.query(&FeedQuery { viewer: None, objects, relations, counters: Vec::new() }, &caller.facts()).await?;
    let follower = Follower {
        subscription,
        stopping: app.stopping.subscribe(),
        credential: Some(credential),
        quiet_since: Instant::now(),
        counts: Counts::new(app, caller.facts(), first),
        ready,
    };
    let events = stream::unfold(follower, async |mut follower| {
        let event = follower.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(event)), follower))
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, Body::from_stream(events)).into_response())
}

/// What a stream was opened with.
struct Credential {
    app: App,
    header: Option<HeaderValue>,
    /// In seconds since 1970: when the token says that it ends.
    ends_s: Option<u64>,
}

impl Credential {
    async fn of(app: &App, headers: &HeaderMap) -> Result<Self, Problem> {
        let header = headers.get(header::AUTHORIZATION).cloned();
        let ends_s = app.auth.good_until(header.as_ref().map(HeaderValue::as_bytes)).await?;
        // One that has ended already, by a clock that is a little off, lasts for as long as it is accepted.
        let ends_s = ends_s.filter(|ends_s| *ends_s > now_s());
        Ok(Self { app: app.clone(), header, ends_s })
    }

    /// Whether it would still be let in.
    async fn holds(&self) -> bool {
        if self.ends_s.is_some_and(|ends_s| ends_s <= now_s()) {
            return false;
        }
        match self.app.auth.good_until(self.header.as_ref().map(HeaderValue::as_bytes)).await {
            Ok(_) => true,
            Err(error) => error.is_transient(),
        }
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// One client: what it has been told, and what is still to tell.
struct Follower {
    subscription: Subscription,
    stopping: watch::Receiver<bool>,
    credential: Option<Credential>,
    quiet_since: Instant,
    counts: Counts,
    /// What has changed and was not told yet.
    ready: BTreeSet<Pair>,
}

impl Follower {
    /// The next text to send; `None` when the server stops, and after the credential has ended.
    async fn next(&mut self) -> Option<String> {
        loop {
            if !self.credential.as_ref()?.holds().await {
                self.credential = None;
                return Some(": the credential has ended; come back with another\n\n".into());
            }
            if let Some(text) = self.tell().await {
                self.quiet_since = Instant::now();
                return Some(text);
            }
            if self.quiet_since.elapsed() >= KEEP_ALIVE {
                self.quiet_since = Instant::now();
                return Some(":\n\n".into());
            }
            let changed = tokio::select! {
                changed = self.subscription.next() => changed,
                () = tokio::time::sleep(LOOK_AGAIN) => continue,
                _ = self.stopping.wait_for(|stopping| *stopping) => return None,
            };
            self.ready.extend(self.counts.take(changed));
        }
    }

    /// Some of what is to be told, as far as it may be now.
    async fn tell(&mut self) -> Option<String> {
        while !self.ready.is_empty() {
            let pairs: Vec<Pair> = self.ready.iter().take(AT_ONCE).cloned().collect();
            // What the store cannot tell now is asked for again, and not lost.
            let text = self.counts.events(&pairs).await?;
            for pair in &pairs {
                self.ready.remove(pair);
            }
            if !text.is_empty() {
                return Some(text);
            }
        }
        None
    }
}
