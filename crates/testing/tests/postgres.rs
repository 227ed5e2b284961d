//! What can be done to a PostgreSQL, and that nothing of it stays behind.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

mod common;

use common::{wait_until_gone, with_services};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;
use tally_testing::postgres::{Options, POSTGRES_TEMPLATE_VARIABLE, POSTGRES_VARIABLE};
use tally_testing::{Cut, Direction, Postgres, Proxy};
use tokio_postgres::{Client, NoTls};

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn ask(client: &Client, sql: &str) -> String {
    let row = client.query_one(&format!("SELECT ({sql})::text"), &[]).await.unwrap();
    row.get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_life() {
    let settings = vec![("work_mem".into(), "7MB".into())];
    let mut postgres = Postgres::start(Options { settings, ..Options::default() }).unwrap();
    let (url, first) = (postgres.url(), postgres.pid());
    let client = connect(&url).await;
    for (setting, wanted) in [
        ("work_mem", "7MB"),
        ("fsync", "off"),
        ("max_connections", "300"),
        ("lc_collate", "C"),
        ("server_encoding", "UTF8"),
    ] {
        assert_eq!(ask(&client, &format!("current_setting('{setting}')")).await, wanted, "{setting}");
    }
    client.batch_execute("CREATE TABLE kept (it text); INSERT INTO kept VALUES ('before')").await.unwrap();

    postgres.restart().unwrap();
    assert_ne!(postgres.pid(), first);
    assert_eq!(postgres.url(), url);
    assert!(client.batch_execute("SELECT 1").await.is_err(), "its connections are closed");
    let client = connect(&url).await;
    client.batch_execute("UPDATE kept SET it = 'committed'").await.unwrap();
    client.batch_execute("BEGIN; UPDATE kept SET it = 'never'").await.unwrap();

    postgres.kill().unwrap();
    assert_eq!(postgres.pid(), None);
    assert!(tokio_postgres::connect(&url, NoTls).await.is_err());
    postgres.start_again().unwrap();
    let client = connect(&url).await;
    assert_eq!(ask(&client, "SELECT it FROM kept").await, "committed");

    postgres.pause().unwrap();
    {
        let mut answer = std::pin::pin!(ask(&client, "SELECT it FROM kept"));
        let quiet = tokio::time::timeout(Duration::from_millis(200), answer.as_mut()).await;
        assert!(quiet.is_err(), "a paused server answers nobody");
        postgres.resume().unwrap();
        assert_eq!(answer.await, "committed");
    }

    let folder = ask(&client, "current_setting('data_directory')").await;
    postgres.stop().unwrap();
    assert!(postgres.stop().is_err());
    drop(postgres);
    assert!(!Path::new(&folder).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_user_needs_a_password() {
    let postgres = Postgres::start(Options::default()).unwrap();
    let client = connect(&postgres.url_with_password()).await;
    assert_eq!(ask(&client, "current_user").await, "secret");
    let wrong = postgres.url_with_password().replace("secret:secret", "secret:wrong");
    assert!(tokio_postgres::connect(&wrong, NoTls).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_or_killed_one_is_cleaned_up_too() {
    for kill in [true, false] {
        let mut postgres = Postgres::start(Options::default()).unwrap();
        let client = connect(&postgres.url()).await;
        let folder = ask(&client, "current_setting('data_directory')").await;
        if kill {
            postgres.kill().unwrap();
        } else {
            postgres.pause().unwrap();
        }
        drop(postgres);
        assert!(!Path::new(&folder).exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_lost_or_its_answer_is() {
    let postgres = Postgres::start(Options::default()).unwrap();
    let proxy = Proxy::start(postgres.address()).unwrap();
    let observer = connect(&postgres.url()).await;
    observer.batch_execute("CREATE TABLE kept (it text)").await.unwrap();
    for (cut, rows) in [(Cut::Before, "0"), (Cut::After, "1")] {
        let client = connect(&postgres.url_through(&proxy)).await;
        client.batch_execute("BEGIN; INSERT INTO kept VALUES ('x')").await.unwrap();
        proxy.cut_when(cut, |direction, bytes| {
            direction == Direction::Request && bytes.windows(6).any(|word| word == b"COMMIT")
        });
        client.batch_execute("COMMIT").await.unwrap_err();
        proxy.pass();
        // The lock waits until the transaction is over, one way or the other.
        observer.batch_execute("BEGIN; LOCK TABLE kept; COMMIT").await.unwrap();
        assert_eq!(ask(&observer, "SELECT count(*) FROM kept").await, rows, "{cut:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shared_one_is_one() {
    let url = Postgres::shared().unwrap();
    assert_eq!(Postgres::shared().unwrap(), url);
    assert_eq!(ask(&connect(url).await, "current_user").await, "postgres");
}

#[test]
fn with_services_ends_as_its_command_ends() {
    assert_eq!(with_services("exit 7").status().unwrap().code(), Some(7));
    assert!(with_services(&format!("test -d \"${POSTGRES_TEMPLATE_VARIABLE}\"")).status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_leaves_nothing_behind() {
    let script = format!("echo \"${POSTGRES_VARIABLE}\"; echo \"${POSTGRES_TEMPLATE_VARIABLE}\"; cat");
    let mut running = with_services(&script).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let url = lines.next().unwrap().unwrap();
    let template = lines.next().unwrap().unwrap();
    let client = connect(&url).await;
    let data = ask(&client, "current_setting('data_directory')").await;

    running.kill().unwrap();
    running.wait().unwrap();
    wait_until_gone(Path::new(&data).parent().unwrap());
    wait_until_gone(Path::new(&template));
    assert!(tokio_postgres::connect(&url, NoTls).await.is_err());
}
