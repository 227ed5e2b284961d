//! The tables are for everybody to read: real columns, real times.

use std::collections::BTreeMap;
use std::sync::Arc;

use tally_core::command::{Command, Relate};
use tally_core::rows::{Column, EdgeKey, Home, Key, Row, RowKind, Type};
use tally_core::time::Timestamp;
use tally_core::view::Wants;
use tally_core::{ObjectId, SubjectId, relation};
use tally_engine::{Clock, Engine, SystemClock};

use crate::support::{Outsider, Store, engine, name, relate, shared, unrelate};

#[tokio::test]
async fn a_user_can_join_the_tables() {
    let url = shared("");
    let store = Store::open(&url).await;
    let outside = Outsider::of(&url).await;
    for (post, fans) in [("post:1", 3), ("post:2", 5), ("post:3", 1)] {
        for fan in 0..fans {
            store.like(post, &format!("fan-{fan}")).await.unwrap();
        }
    }
    store.apply(unrelate("like", "post:2", "fan-4")).await.unwrap();
    for (post, memo) in [("post:1", "read later"), ("post:2", "for Bob")] {
        let Command::Relation(relation::Command::Relate(Relate { relation, object, subject, kind, .. })) =
            relate("bookmark", post, "alice")
        else {
            panic!("it relates")
        };
        let meta = serde_json::json!({"memo": memo});
        let meta = Some(Arc::new(meta.as_object().unwrap().clone()));
        store.apply(Command::from(Relate { relation, object, subject, kind, meta })).await.unwrap();
    }
    // The user's own table, by the object's own id.
    outside
        .run(
            "CREATE TABLE post (id int PRIMARY KEY, title text NOT NULL);
             INSERT INTO post VALUES (1, 'One'), (2, 'Two'), (3, 'Three')",
        )
        .await;

    let days = "SELECT created_at::date, count(*) FROM edge WHERE relation = 'like' AND NOT hidden GROUP BY 1";
    let days = outside.0.query(days, &[]).await.unwrap();
    // Two, if midnight came in between.
    assert_eq!(days.iter().map(|day| day.get::<_, i64>(1)).sum::<i64>(), 8);
    assert!(days.len() <= 2);

    let top = "SELECT title, sum(n)::int8 FROM object_total JOIN post ON object = 'post:' || id
               WHERE relation = 'like' AND kind = '' GROUP BY title ORDER BY 2 DESC, title LIMIT 2";
    let top: Vec<(String, i64)> =
        outside.0.query(top, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(top, [("Two".to_owned(), 4), ("One".to_owned(), 3)]);

    let mine = "SELECT title, meta->>'memo' FROM edge JOIN post ON object = 'post:' || id
                WHERE subject = 'alice' AND relation = 'bookmark' ORDER BY created_at DESC";
    let mine: Vec<(String, String)> =
        outside.0.query(mine, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(mine, [("Two".into(), "for Bob".into()), ("One".into(), "read later".into())]);
}

#[tokio::test]
async fn a_time_in_the_table_is_the_stamp_to_the_microsecond() {
    let url = shared("");
    let store = Store::open(&url).await;
    let outside = Outsider::of(&url).await;
    for n in 0..20 {
        store.like("post:1", &format!("fan-{n}")).await.unwrap();
    }
    let sql = "SELECT subject, (extract(epoch FROM created_at) * 1000000)::int8 FROM edge";
    let mut odd = 0;
    for row in outside.0.query(sql, &[]).await.unwrap() {
        let (subject, us): (&str, i64) = (row.get(0), row.get(1));
        let (object, subject) = (ObjectId::new("post:1").unwrap(), SubjectId::new(subject).unwrap());
        let key = Key::Edge(EdgeKey { object, relation: name("like"), subject });
        let loaded = store.engine.load(&Wants::rows(vec![key])).await.unwrap();
        let Some(Row::Edge(edge)) = &loaded.rows[0] else { panic!("the edge is there") };
        assert_eq!(edge.created.0, us.unsigned_abs());
        odd += usize::from(us % 1_000 != 0);
    }
    assert!(odd > 0, "twenty of twenty on a whole millisecond is no chance");
}

/// A clock that is wrong.
struct Off {
    ms: i64,
}

impl Clock for Off {
    fn now(&self) -> Timestamp {
        Timestamp(SystemClock.now().0.saturating_add_signed(self.ms))
    }
}

#[tokio::test]
async fn time_is_the_databases_whatever_a_servers_clock_says() {
    const HOUR_MS: i64 = 3_600_000;
    let url = shared("");
    let outside = Outsider::of(&url).await;
    let ahead = Store::on(engine(&url), Off { ms: HOUR_MS }).await;
    let behind = Store::on(engine(&url), Off { ms: -HOUR_MS }).await;
    let now = async || outside.number("SELECT extract(epoch FROM clock_timestamp()) * 1000000").await;
    for n in 0..10 {
        for (store, who) in [(&ahead, "ahead"), (&behind, "behind")] {
            let (who, before) = (format!("{who}-{n}"), now().await);
            store.like("post:1", &who).await.unwrap();
            let after = now().await;
            let sql = format!("SELECT extract(epoch FROM created_at) * 1000000 FROM edge WHERE subject = '{who}'");
            let created = outside.number(&sql).await;
            assert!(before <= created && created <= after, "{who}: {before} {created} {after}");
        }
    }
}

/// A kind of row that is declared with a column more or less needs a migration.
#[tokio::test]
async fn the_tables_have_the_columns_that_are_declared() {
    let url = shared("");
    let _store = Store::open(&url).await;
    let outside = Outsider::of(&url).await;
    let sql = "SELECT column_name::text, data_type::text FROM information_schema.columns
               WHERE table_schema = current_schema() AND table_name = $1";
    // Edges have a form of their own, and counters are totals.
    let kinds = RowKind::ALL.into_iter().filter(|kind| !matches!(kind, RowKind::Edge | RowKind::Counter));
    for declared in kinds.map(RowKind::declared) {
        let columns = outside.0.query(sql, &[&declared.name]).await.unwrap();
        let found: BTreeMap<String, String> = columns.iter().map(|row| (row.get(0), row.get(1))).collect();
        let of = |(name, of): &Column| {
            let of = match of {
                Type::Text => "text",
                Type::Json => "json",
                Type::Number | Type::Signed => "bigint",
                Type::Numbers | Type::Times => "ARRAY",
                Type::Time => "timestamp with time zone",
                Type::Flag => "boolean",
                Type::Day => "date",
                Type::Bytes => "bytea",
            };
            ((*name).to_owned(), of.to_owned())
        };
        let mut expected: BTreeMap<String, String> = declared.key.iter().chain(declared.columns).map(of).collect();
        let in_partitions = declared.due.is_some() && declared.home != Home::Store;
        if in_partitions {
            expected.insert("due_partition".to_owned(), "smallint".to_owned());
        }
        assert_eq!(found, expected, "{}", declared.name);
        if let Some(due) = declared.due {
            let sql = "SELECT count(*) FROM pg_indexes WHERE schemaname = current_schema() AND tablename = $1
                       AND indexdef LIKE '%(' || $2 || ',%'";
            let by = if in_partitions { format!("due_partition, {}", due.column()) } else { due.column().to_owned() };
            let indexes: i64 = outside.0.query_one(sql, &[&declared.name, &by]).await.unwrap().get(0);
            assert!(indexes > 0, "{} has no index by {}", declared.name, due.column());
        }
        if let Some(by) = declared.order {
            let sql = "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() AND indexname = $1";
            let index: String = outside.0.query_one(sql, &[&format!("{}_order", declared.name)]).await.unwrap().get(0);
            let (last, parts) = declared.key.split_last().unwrap();
            let mut names: Vec<String> = parts.iter().map(|(name, _)| (*name).to_owned()).collect();
            names.extend(by.score.map(|score| format!("((~ {score}))")));
            names.push(by.reached.to_owned());
            if by.reached != last.0 {
                names.push(last.0.to_owned());
            }
            let only = by.only.map_or(String::new(), |(column, value)| format!(" WHERE ({column} = '{value}'::text)"));
            assert!(index.ends_with(&format!("({}){only}", names.join(", "))), "{index}");
        }
    }
}
