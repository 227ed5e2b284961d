//! A server's own clock does not decide what is told: not in a read, nor in the answer to a write.

use std::sync::Arc;

use tally::core::catalog::ReadPolicy;
use tally::core::condition::Condition;
use tally::core::query::EdgeQuery;
use tally::core::rows::EdgeKey;
use tally::core::{Auth, Catalog, Name, ObjectId, RelationDef, SubjectId, Timestamp};
use tally::engine::clock::{Clock, ManualClock, SystemClock};
use tally::{Options, Tally};

use crate::database::{On, on};

const HOUR_MS: u64 = 3_600_000;

/// A relation that may be read from half an hour ago on, and one from half an hour from now on.
fn catalog(now: Timestamp) -> Catalog {
    let mut catalog = Catalog::default();
    for (name, from) in [("past", now.0 - HOUR_MS / 2), ("future", now.0 + HOUR_MS / 2)] {
        let mut relation = RelationDef::new(Name::new(name).unwrap(), ReadPolicy::Public);
        let text = format!("now > timestamp('{}')", Timestamp(from));
        relation.when.read = Some(Condition::compile(&text).unwrap());
        catalog.declare(relation);
    }
    catalog
}

on!(a_servers_clock_does_not_decide_what_is_told: postgres redis cluster);
async fn a_servers_clock_does_not_decide_what_is_told(on: On) {
    let (url, now) = (on.new_store(), SystemClock.now());
    let key = |relation: &str| EdgeKey {
        object: ObjectId::new("post:1").unwrap(),
        relation: Name::new(relation).unwrap(),
        subject: SubjectId::new("alice").unwrap(),
    };
    for own in [now.0 - HOUR_MS, now.0, now.0 + HOUR_MS] {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(own));
        let options = Options { catalog: catalog(now), clock: Some(clock), ..Options::default() };
        let tally = Tally::open(&url, options).await.unwrap();
        let auth = Auth::default();
        for (relation, is_open) in [("past", true), ("future", false)] {
            tally.relate(relation, "post:1", "alice").await.unwrap();
            let EdgeKey { object, relation, subject } = key(relation);
            let read = tally.query(&EdgeQuery { relation: relation.clone(), object, subject }, &auth).await;
            assert_eq!(read.is_ok(), is_open, "{relation} read at {own}");
            let told = tally.readable(&[(key(relation.as_str()), None)], &auth).await.unwrap();
            assert_eq!(told, [is_open], "{relation} told at {own}");
        }
        tally.close().await;
    }
}
