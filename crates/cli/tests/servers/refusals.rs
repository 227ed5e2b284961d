//! A store that cannot be used is refused at the start, in one line and without its password.

use tally_testing::redis::Options;
use tally_testing::{Postgres, Redis, free_address};

use crate::support::server::refusal;
use crate::support::*;

/// The server's last word and its exit code.
async fn refused(url: &str, code: i32, words: &[&str]) {
    let (status, text) = refusal(&["--listen", "127.0.0.1:0", "--store", url]).await;
    assert_eq!(status.code(), Some(code), "{text}");
    let said: Vec<&str> = text.lines().filter(|line| line.starts_with("tally: ")).collect();
    assert_eq!(said.len(), 1, "{text}");
    for word in words {
        assert!(text.contains(word), "no `{word}` in: {text}");
    }
    assert!(!text.contains("hush"), "the password is shown: {text}");
}

#[tokio::test]
async fn a_postgresql_that_cannot_be_used_is_refused_at_the_start() {
    let postgres = Postgres::start(Default::default()).unwrap();
    let at = postgres.address();
    let nobody = free_address().unwrap();
    refused(&format!("postgres://secret:hush@{at}/postgres?sslmode=disable"), 1, &["password authentication failed"])
        .await;
    refused(&format!("postgres://u:hush@{nobody}/db?sslmode=disable"), 1, &["PostgreSQL"]).await;
    refused(&format!("postgres://postgres:hush@{at}/nowhere?sslmode=disable"), 1, &["\"nowhere\" does not exist"])
        .await;
}

#[tokio::test]
async fn a_redis_that_cannot_be_used_is_refused_at_the_start() {
    let options = Options { password: Some("right".into()), ..Options::default() };
    let redis = Redis::start(options.with("maxmemory-policy", "allkeys-lru")).unwrap();
    let (at, nobody) = (redis.address(), free_address().unwrap());
    refused(&format!("redis://:hush@{at}"), 1, &["Redis refuses the name or the password"]).await;
    refused(&format!("redis://:hush@{nobody}"), 1, &["Redis: Connection refused"]).await;
    refused(&format!("redis+cluster://:hush@{nobody}"), 1, &["Redis: ", "Connection refused"]).await;
    refused(&format!("redis+cluster://:right@{at}"), 1, &["not a Cluster: write redis://"]).await;
    let evicts = ["throws data away", "maxmemory-policy allkeys-lru", "maxmemory-policy noeviction", "may_vanish=1"];
    refused(&redis.url(), 1, &evicts).await;
    assert_eq!(redis.ask(&["DBSIZE"]).unwrap(), "0", "nothing was made there");

    let server = Server::start_on(&format!("{}?may_vanish=1", redis.url()), "").await;
    assert_eq!(server.client().like("post:1", "alice").await["count"], 1);
    assert!(server.log().contains("may throw answered writes away"), "{}", server.log());
    assert!(server.log().contains("keeps nothing on disk"), "{}", server.log());
}

#[tokio::test]
async fn a_url_that_cannot_be_meant_is_refused_with_the_settings() {
    refused("postgres://u:hush@h/db?schema=Bad-Name", 2, &["schema is a lower-case letter"]).await;
    refused("postgres://u:hush@h:port/db", 2, &["postgres://user@host/database"]).await;
    refused("postgres://u:hush@h/db?pool=lots", 2, &["pool is a number"]).await;
    refused("redis://u:hush@h?wait=1", 2, &["no parameter `wait`"]).await;
    refused("redis://u:hush@h1,h2", 2, &["redis+cluster://"]).await;
    refused("mysql://u:hush@h/db", 2, &["no store is called `mysql`"]).await;
}
