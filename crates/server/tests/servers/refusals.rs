//! A store that cannot be used is refused at the start, in one line and without its password.

use tally_testing::{Postgres, free_address};

use crate::support::server::refusal;

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
async fn a_url_that_cannot_be_meant_is_refused_with_the_settings() {
    refused("postgres://u:hush@h/db?schema=Bad-Name", 2, &["schema is a lower-case letter"]).await;
    refused("postgres://u:hush@h:port/db", 2, &["postgres://user@host/database"]).await;
    refused("postgres://u:hush@h/db?pool=lots", 2, &["pool is a number"]).await;
    refused("mysql://u:hush@h/db", 2, &["no store is called `mysql`"]).await;
}
