//! What a database or a role lacks is said when Tally starts, with what to do.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use tally_core::SubjectId;
use tally_core::command::{Call, Command, Suspend};
use tally_core::rows::{ListKey, Side};
use tally_engine::{Engine, Failure, Range, StoreError};
use tally_testing::Postgres;
use tokio::task::JoinSet;

use crate::support::{Outsider, Store, engine, relate, shared, unavailable, unique, until, with_schema};

/// Why a store cannot be used until somebody does something.
async fn broken(url: &str) -> String {
    match engine(url).prepare().await {
        Err(StoreError::Broken(why)) => why,
        other => panic!("{other:?} is not a store that needs attention"),
    }
}

/// The same place for another role.
fn as_role(url: &str, role: &str) -> String {
    url.replace("postgres://postgres@", &format!("postgres://{role}@"))
}

#[tokio::test]
async fn a_wrong_password_an_unknown_database_and_an_unknown_role_need_attention() {
    let url = shared("");
    let why = broken(&as_role(&url, "secret:wrong")).await;
    assert!(why.contains("password authentication failed"), "{why}");
    let why = broken(&url.replace("/postgres?", "/nowhere?")).await;
    assert!(why.contains("\"nowhere\" does not exist"), "{why}");
    let why = broken(&as_role(&url, "nobody_at_all")).await;
    assert!(why.contains("nobody_at_all"), "{why}");
    assert!(!why.contains("wrong"), "no secret is told");
}

#[tokio::test]
async fn a_newer_schema_is_left_alone() {
    let url = shared("");
    engine(&url).prepare().await.unwrap();
    let outside = Outsider::of(&url).await;
    outside.run("INSERT INTO migration (version) VALUES (99)").await;
    let why = broken(&url).await;
    assert!(why.contains("version 99") && why.contains("newer release of Tally"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_servers_that_start_at_once_make_the_tables_once() {
    let url = shared("");
    let outside = Outsider::of(&url).await;
    let role = unique();
    // Whatever the database's default is: a lock is waited for, and then what was done is seen.
    outside
        .run(&format!(
            "CREATE ROLE {role} SUPERUSER LOGIN; ALTER ROLE {role} SET default_transaction_isolation = 'serializable'"
        ))
        .await;
    let url = as_role(&url, &role);
    let mut starting = JoinSet::new();
    for _ in 0..8 {
        let engine = engine(&url);
        starting.spawn(async move { engine.prepare().await });
    }
    for started in starting.join_all().await {
        started.unwrap();
    }
    assert_eq!(outside.number("SELECT count(*) - max(version) FROM migration").await, 0);
    let store = Store::open(&url).await;
    assert_eq!(store.like("post:1", "alice").await.unwrap().count, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_while_a_lock_is_waited_for_is_seen_whatever_isolation_the_database_prefers() {
    let role = unique();
    let url = shared(&format!("&application_name={role}"));
    let (outside, watching) = (Outsider::of(&url).await, Outsider::of(&url).await);
    outside
        .run(&format!(
            "CREATE ROLE {role} SUPERUSER LOGIN; ALTER ROLE {role} SET default_transaction_isolation = 'repeatable read'"
        ))
        .await;
    let url = as_role(&url, &role);
    let stores = [Store::open(&url).await, Store::open(&url).await];
    let call = |store: &Store, command| {
        let runner = store.runner.clone();
        tokio::spawn(async move { runner.apply(Call::system(command)).await.unwrap().reply })
    };
    let suspend = |who| Command::from(Suspend { subject: SubjectId::new(who).unwrap() });
    // Preparing a statement would wait for the lock too.
    call(&stores[0], suspend("somebody")).await.unwrap().unwrap();
    call(&stores[1], relate("like", "post:2", "alice")).await.unwrap().unwrap();
    // A suspension that is almost through, and a like that was decided before it.
    outside.run("BEGIN; LOCK TABLE job IN EXCLUSIVE MODE").await;
    let suspending = call(&stores[0], suspend("mallory"));
    watching.until_waiting(&role, 1).await;
    let liking = call(&stores[1], relate("like", "post:1", "mallory"));
    watching.until_waiting(&role, 2).await;
    outside.run("ROLLBACK").await;
    suspending.await.unwrap().unwrap();
    assert_eq!(liking.await.unwrap().unwrap_err().code(), "forbidden");
    assert_eq!(stores[0].assert_sound().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_is_refused_at_the_start_and_named_later() {
    let mut postgres = Postgres::start(Default::default()).unwrap();
    let url = with_schema(&postgres.url(), "");
    let store = Store::open(&url).await;
    store.like("post:1", "alice").await.unwrap();
    let outside = Outsider::of(&url).await;
    let text = async |sql: &str| -> String { outside.0.query_one(sql, &[]).await.unwrap().get(0) };
    let data = PathBuf::from(text("SELECT current_setting('data_directory')").await);
    let programs = text("SELECT setting FROM pg_config() WHERE name = 'BINDIR'").await;
    postgres.stop().unwrap();
    // Its own files, started as a standby.
    std::fs::write(data.join("standby.signal"), "").unwrap();
    let owner = std::fs::metadata(&data).unwrap();
    let mut standby = std::process::Command::new(PathBuf::from(programs).join("postgres"))
        .args(["-c", &format!("port={}", postgres.port()), "-c", "listen_addresses=127.0.0.1"])
        .args(["-c", "unix_socket_directories=", "-c", "max_connections=300", "-D"])
        .arg(&data)
        // What ends everything in the folder of the instance ends it too.
        .current_dir(data.parent().unwrap())
        .uid(owner.uid())
        .gid(owner.gid())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let error = until("it is named", async || {
        store.engine.ping().await.err().filter(|error| error.to_string().contains("read-only replica"))
    })
    .await;
    assert!(error.is_transient());
    let why = broken(&url).await;
    assert!(why.contains("read-only replica; give the URL of the primary"), "{why}");
    assert!(unavailable(store.like("post:1", "bob").await).contains("read-only replica"));
    assert_eq!(store.count("post:1").await.unwrap(), 1, "reads go on");
    standby.kill().unwrap();
    standby.wait().unwrap();
}

#[tokio::test]
async fn a_role_that_may_only_read_and_write_rows_is_enough_once_the_tables_are_there() {
    let url = shared("");
    let (role, schema) = (unique(), engine(&url).options().schema.clone());
    let outside = Outsider::of(&url).await;
    outside.run(&format!("CREATE ROLE {role} LOGIN")).await;
    let plain = as_role(&url, &role);
    let why = broken(&plain).await;
    assert!(why.contains("permission denied") && why.contains("guide on roles"), "{why}");

    engine(&url).prepare().await.unwrap();
    let why = broken(&plain).await;
    assert!(why.contains("permission denied"), "{why}");
    outside
        .run(&format!(
            "GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}"
        ))
        .await;
    let store = Store::open(&plain).await;
    assert_eq!(store.like("post:1", "alice").await.unwrap().count, 1);
    assert!(store.apply(crate::support::unrelate("like", "post:1", "alice")).await.is_ok());
    assert!(store.apply(relate("shelf", "post:1", "alice")).await.is_ok());
    store.engine.ping().await.unwrap();
    assert_eq!(store.assert_sound().await, 1);

    outside.run(&format!("REVOKE INSERT ON edge FROM {role}")).await;
    match store.like("post:1", "bob").await {
        Err(Failure::Store(StoreError::Broken(why))) => assert!(why.contains("permission denied"), "{why}"),
        other => panic!("{other:?}"),
    }
    let list = ListKey { side: Side::Subject, id: "alice".into(), relation: None, hidden: false };
    assert_eq!(store.engine.scan(&Range::List { list, after: None }, 10).await.unwrap().items.len(), 1);
    outside.run(&format!("GRANT INSERT ON edge TO {role}")).await;
    assert!(store.like("post:1", "bob").await.unwrap().changed);
}

#[tokio::test]
async fn a_database_that_takes_no_writes_is_named() {
    let url = shared("&pool=2");
    let role = unique();
    let outside = Outsider::of(&url).await;
    outside.run(&format!("CREATE ROLE {role} SUPERUSER LOGIN")).await;
    let url = as_role(&url, &role);
    let store = Store::open(&url).await;
    store.like("post:1", "alice").await.unwrap();
    store.engine.ping().await.unwrap();
    outside.run(&format!("ALTER ROLE {role} SET default_transaction_read_only = on")).await;
    let why = broken(&url).await;
    assert!(why.contains("default_transaction_read_only"), "{why}");
    // A server that was up already notices on its next connection.
    outside
        .run(&format!("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '{role}'"))
        .await;
    let error = until("the old connections are gone", async || {
        store.engine.ping().await.err().filter(|error| error.to_string().contains("takes no writes"))
    })
    .await;
    assert!(error.is_transient());
    let why = unavailable(store.like("post:1", "bob").await);
    assert!(why.contains("read-only"), "{why}");
    assert_eq!(store.count("post:1").await.unwrap(), 1, "reads go on");
}
