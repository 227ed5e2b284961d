//! Live counts: Server-Sent Events with the full count after each change.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use futures_util::stream;
use serde_json::json;
use tally::Subscription;
use tally::core::limits::{FEED_OBJECTS_MAX, FEED_RELATIONS_MAX};
use tally::core::query::CountAnswer;
use tally::core::rows::TotalKey;
use tally::core::{Answer, Name, ObjectId, Query};
use tokio::sync::watch;

use super::{Outcome, ask};
use crate::app::App;
use crate::auth::policy::Call;
use crate::http::problem::Problem;
use crate::http::request::{Caller, listed};

/// A comment now and then keeps the connection from being taken for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Follow counts as they change
///
/// An event `count` for each object and relation at first, then one whenever a count changes, always with the full count.
#[utoipa::path(
    get, path = "/v1/live", tag = "Running",
    params(
        ("objects" = String, Query, description = "Objects, separated by commas; a comma inside an id is written %2C"),
        ("relations" = String, Query, description = "Relations, separated by commas"),
    ),
    responses((status = 200, description = "Server-Sent Events", body = String, content_type = "text/event-stream"), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn live(State(app): State<App>, caller: Caller, RawQuery(query): RawQuery) -> Outcome {
    caller.signed_in()?;
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
        caller.may(Call::Live, None, Some(policy))?;
    }
    // Subscribed before the first read, so that no change falls between the two.
    let subscription = app.tally.watch(&objects, &relations)?;
    let first = ask(&app, &caller, Query::Feed { viewer: None, objects, relations, counters: Vec::new() }).await?;
    let follower = Follower::new(subscription, first, app.stopping.subscribe());
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

/// One client: what it has been told, and what is still to tell.
struct Follower {
    subscription: Subscription,
    stopping: watch::Receiver<bool>,
    counts: BTreeMap<(ObjectId, Name), CountAnswer>,
    ready: VecDeque<String>,
}

impl Follower {
    fn new(subscription: Subscription, first: Answer, stopping: watch::Receiver<bool>) -> Self {
        let mut counts = BTreeMap::new();
        if let Answer::Feed(feed) = first {
            for item in feed.items {
                for (relation, count) in item.relations {
                    counts.insert((item.object.clone(), relation), count);
                }
            }
        }
        let ready = counts.iter().map(|((object, relation), count)| event(object, relation, count)).collect();
        Self { subscription, stopping, counts, ready }
    }

    /// The next text to send; `None` when the server stops.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(text) = self.ready.pop_front() {
                return Some(text);
            }
            let changed = tokio::select! {
                changed = self.subscription.next() => changed,
                () = tokio::time::sleep(KEEP_ALIVE) => return Some(":\n\n".into()),
                _ = self.stopping.wait_for(|stopping| *stopping) => return None,
            };
            self.take(changed);
        }
    }

    fn take(&mut self, changed: BTreeMap<TotalKey, i64>) {
        let mut touched = std::collections::BTreeSet::new();
        for (total, value) in changed {
            let (pair, kind) = match total {
                TotalKey::Object { object, relation } => ((object, relation), None),
                TotalKey::Kind { object, relation, kind } => ((object, relation), Some(kind)),
                _ => continue,
            };
            // What the first read did not show, a condition forbids.
            let Some(count) = self.counts.get_mut(&pair) else { continue };
            match (kind, &mut count.kinds) {
                (Some(kind), Some(kinds)) => drop(kinds.insert(kind, value)),
                (Some(_), None) => {}
                (None, _) => count.count = value,
            }
            touched.insert(pair);
        }
        for pair in touched {
            if let Some(count) = self.counts.get(&pair) {
                self.ready.push_back(event(&pair.0, &pair.1, count));
            }
        }
    }
}

fn event(object: &ObjectId, relation: &Name, count: &CountAnswer) -> String {
    let mut data = json!({"object": object, "relation": relation, "count": count.count});
    if let Some(kinds) = &count.kinds {
        data["kinds"] = json!(kinds);
    }
    format!("event: count\ndata: {data}\n\n")
}
