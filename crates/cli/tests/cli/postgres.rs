//! A store in PostgreSQL from the command line: the same commands, and a doctor that knows it.

use serde_json::json;
use tally_testing::Postgres;
use tally_testing::postgres::Options;

use crate::doctor::{all_ok, status};
use crate::world::World;

#[test]
fn commands_work_beside_the_servers_of_a_database() {
    let world = World::new();
    let url = format!("{}?sslmode=disable&schema=beside_{}", Postgres::shared().unwrap(), std::process::id());
    let on = |args: &[&str]| world.run(&[args, &["--store", &url]].concat());
    on(&["like", "post:1", "alice"]).fails(1, "there is no store in the schema beside_");
    let server = world.serve_on(&url);
    assert_eq!(on(&["like", "post:1", "alice"]).code, 0);
    assert_eq!(server.run(&world, &["like", "post:1", "bob"]).code, 0);
    assert_eq!(on(&["count", "like", "post:1", "--json"]).json(), json!({"count": 2}));
    assert_eq!(on(&["verify", "--json"]).json()["edges"], 2);
    let made = on(&["key", "create", "--role", "read", "--name", "dashboard", "--json"]).json();
    let listed = server.run(&world, &["key", "list", "--json"]).json();
    assert_eq!(listed["items"][0]["id"], made["id"], "{listed}");

    on(&["backup", "monday"]).fails(1, "pg_dump");
    server.run(&world, &["backup", "monday"]).fails(1, "pg_dump");
    world.run(&["restore", "monday", "--to", &url]).fails(2, "pg_restore");

    let ran = on(&["doctor", "--full", "--json"]);
    all_ok(&ran, "reach version encryption schema permissions clock connections servers totals counts");
    assert_eq!(status(&ran, "durability").as_deref(), Some("warn"), "fsync is off in tests: {ran}");
    assert!(ran.out.contains(&format!(" ({})", env!("CARGO_PKG_VERSION"))), "the server is named: {ran}");
    server.stop();
    assert!(on(&["doctor", "--json"]).out.contains("none is up"));
}

#[test]
fn rows_of_totals_that_nobody_adds_up_keep_nothing_from_being_mended() {
    let world = World::new();
    let (base, schema) = (Postgres::shared().unwrap(), format!("leftover_{}", std::process::id()));
    let url = format!("{base}?sslmode=disable&schema={schema}");
    let server = world.serve_on(&url);
    for who in ["alice", "bob"] {
        for post in ["post:1", "post:2"] {
            assert_eq!(server.run(&world, &["like", post, who]).code, 0);
        }
    }
    // One of a total that is not spread, one without a first row, one of a counter, one with a name that nobody has;
    // and a drift beside them.
    sql(
        base,
        &format!(
            "SET search_path = {schema};
             INSERT INTO object_total (object, relation, kind, shard, n)
             VALUES ('post:1', 'like', '', 5, 7), ('post:3', 'like', 'wow', 1, 2), ('views', 'page', '#', 3, 4),
                    ('nobody', 'like', '', 0, 1);
             UPDATE object_total SET n = 9 WHERE object = 'post:2'"
        ),
    );
    let found = server.run(&world, &["verify", "--json"]);
    assert_eq!(found.code, 3, "{found}");
    let report = found.any_json();
    assert_eq!(report["drift"], json!([{"relation": "like", "object": "post:2", "stored": 9, "counted": 2}]));
    assert_eq!(report["strays"].as_array().unwrap().len(), 4, "{report}");
    let mended = server.run(&world, &["verify", "--repair", "--json"]).any_json();
    assert_eq!(mended["repaired"], 4, "{mended}");
    sql(base, &format!("DELETE FROM {schema}.object_total WHERE object = 'nobody'"));
    let sound = server.run(&world, &["verify", "--json"]);
    assert_eq!(sound.code, 0, "{sound}");
    for post in ["post:1", "post:2"] {
        assert_eq!(server.run(&world, &["count", "like", post, "--json"]).json(), json!({"count": 2}));
    }
}

#[test]
fn the_doctor_says_what_is_wrong_with_a_database() {
    let world = World::new();
    let settings = vec![("max_connections".into(), "20".into()), ("synchronous_commit".into(), "off".into())];
    let postgres = Postgres::start(Options { settings, fsync: true, ..Options::default() }).unwrap();
    let at = postgres.address();
    let doctor = |url: &str| world.run(&["doctor", "--json", "--store", url]);
    let url = format!("{}?sslmode=disable&pool=30", postgres.url());
    let new = doctor(&url);
    assert_eq!(new.code, 0, "{new}");
    for (check, expected) in [("schema", "ok"), ("durability", "warn"), ("connections", "warn")] {
        assert_eq!(status(&new, check).as_deref(), Some(expected), "{check}: {new}");
    }
    assert!(new.out.contains("is not there yet") && new.out.contains("synchronous_commit is off"), "{new}");

    let wrong = doctor(&format!("postgres://secret:hush@{at}/postgres?sslmode=disable"));
    assert_eq!((wrong.code, status(&wrong, "reach").as_deref()), (1, Some("fail")), "{wrong}");
    assert!(wrong.out.contains("password authentication failed") && !wrong.out.contains("hush"), "{wrong}");

    let server = world.serve_on(&url.replace("&pool=30", ""));
    server.stop();
    sql(
        &postgres.url(),
        "CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA tally TO reader; \
                    GRANT SELECT ON ALL TABLES IN SCHEMA tally TO reader; CREATE ROLE stranger LOGIN",
    );
    for (role, words) in [("reader", "reader may not write"), ("stranger", "stranger may not read")] {
        let ran = doctor(&format!("postgres://{role}@{at}/postgres?sslmode=disable&pool=2"));
        assert_eq!((ran.code, status(&ran, "permissions").as_deref()), (1, Some("fail")), "{ran}");
        assert!(ran.out.contains(words), "no `{words}` in {ran}");
    }
    sql(&postgres.url(), "INSERT INTO tally.migration (version) VALUES (999)");
    let newer = doctor(&url);
    assert_eq!((newer.code, status(&newer, "schema").as_deref()), (1, Some("fail")), "{newer}");
    sql(&postgres.url(), "ALTER DATABASE postgres SET default_transaction_read_only = on");
    let replica = doctor(&url);
    assert_eq!((replica.code, status(&replica, "version").as_deref()), (1, Some("fail")), "{replica}");
}

/// Asks the database behind Tally's back; gives the first value, if there is one.
pub(crate) fn sql(url: &str, statements: &str) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, wire) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        let wire = tokio::spawn(wire);
        let answered = client.simple_query(statements).await;
        wire.abort();
        answered.unwrap_or_default().iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
    })
}
