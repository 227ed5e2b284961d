//! Clients that write through several servers and know what they were answered.
//!
//! Every edge is written by one client only, a request after the other, so what was answered last is
//! what must be there.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use reqwest::Method;

use crate::support::*;

/// How many favourites a subject may have.
pub(crate) const LIMIT: usize = 3;
pub(crate) const CONFIG: &str = "[relations.favorite]\nread = \"public\"\nlimit_per_subject = 3\n";
/// The subject on whose behalf every client fills its own place, so that the limit is fought over.
pub(crate) const GREEDY: &str = "greedy";
const OBJECTS: usize = 4;
const SUBJECTS: usize = 3;

/// What all clients share.
pub(crate) struct Field {
    /// A client of each server; one that is started again has another address.
    pub(crate) servers: RefCell<Vec<Client>>,
    pub(crate) answered: Cell<usize>,
    /// Requests that had to be sent again.
    pub(crate) again: Cell<usize>,
    pub(crate) over: Cell<bool>,
}

/// Relation, object, subject.
type Edge = (&'static str, String, String);

pub(crate) struct Writer {
    number: usize,
    step: usize,
    /// The edges of this client that were answered to be there, or not.
    pub(crate) known: BTreeMap<Edge, bool>,
}

impl Field {
    pub(crate) fn new(servers: &[Server]) -> Self {
        let servers = RefCell::new(servers.iter().map(Server::client).collect());
        Self { servers, answered: Cell::default(), again: Cell::default(), over: Cell::default() }
    }

    pub(crate) async fn until_answered(&self, more: usize) {
        let enough = self.answered.get() + more;
        until("enough writes are answered", async || (self.answered.get() >= enough).then_some(())).await;
    }

    /// Sends a write to one server after the other until one answers.
    async fn write(&self, method: Method, path: &str, first: usize) -> Answer {
        let mut turn = first;
        let answer = until("a write is answered", async || {
            let client = {
                let servers = self.servers.borrow();
                servers[turn % servers.len()].clone()
            };
            turn += 1;
            let answer = client.request(method.clone(), path).try_send().await.ok();
            let answer = answer.filter(|answer| answer.status != 503);
            if answer.is_none() {
                self.again.set(self.again.get() + 1);
            }
            answer
        })
        .await;
        self.answered.set(self.answered.get() + 1);
        answer
    }
}

impl Writer {
    pub(crate) fn new(number: usize) -> Self {
        Self { number, step: number, known: BTreeMap::new() }
    }

    pub(crate) fn subjects(&self) -> Vec<String> {
        (0..SUBJECTS).map(|n| format!("client-{}-{n}", self.number)).collect()
    }

    /// Flips edges until the field is over.
    pub(crate) async fn run(&mut self, field: &Field) {
        while !field.over.get() {
            self.step = self.step.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let dice = self.step >> 33;
            let subject = self.subjects()[dice / 7 % SUBJECTS].clone();
            let object = format!("post:{}", dice / 31 % OBJECTS);
            let edge = match dice % 5 {
                0 | 1 => ("like", object, subject),
                2 | 3 => ("favorite", object, subject),
                _ => ("favorite", format!("place:{}", self.number), GREEDY.to_owned()),
            };
            self.flip(field, edge, dice).await;
        }
    }

    async fn flip(&mut self, field: &Field, (relation, object, subject): Edge, first: usize) {
        let path = edge(relation, &object, &subject);
        let wanted = !self.known.get(&(relation, object.clone(), subject.clone())).copied().unwrap_or_default();
        let method = if wanted { Method::PUT } else { Method::DELETE };
        let answer = field.write(method, &path, first).await;
        if answer.status == 409 && relation == "favorite" && wanted {
            answer.problem(409, "limit_exceeded");
            let held = self.known.iter().filter(|((kind, _, who), is)| **is && *kind == relation && *who == subject);
            assert!(subject == GREEDY || held.count() == LIMIT, "{path}: refused below the limit");
            return;
        }
        assert_eq!((answer.status, &answer.json()["active"]), (200, &json!(wanted)), "{path}: {}", answer.text());
        self.known.insert((relation, object, subject), wanted);
    }
}

/// Looks at what is listed until the field is over: never more than the limit.
pub(crate) async fn watch_the_limit(field: &Field) {
    let path = format!("/v1/subjects/{GREEDY}/relations/favorite?limit=100");
    let mut turn = 0;
    while !field.over.get() {
        let client = {
            let servers = field.servers.borrow();
            servers[turn % servers.len()].clone()
        };
        turn += 1;
        if let Ok(answer) = client.get(&path).try_send().await
            && answer.status != 503
        {
            assert_eq!(answer.status, 200, "{}", answer.text());
            let listed = answer.json()["items"].as_array().unwrap().len();
            assert!(listed <= LIMIT, "{listed} are listed: {}", answer.text());
        }
        tokio::task::yield_now().await;
    }
}

/// Holds what a server says against everything that was answered.
pub(crate) async fn check(client: &Client, writers: &[Writer]) {
    let mut counts: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    let mut held: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for ((relation, object, subject), active) in writers.iter().flat_map(|writer| &writer.known) {
        *counts.entry((relation, object)).or_default() += i64::from(*active);
        let of_subject = held.entry((relation, subject)).or_default();
        of_subject.extend(active.then(|| object.clone()));
    }
    for ((relation, object), count) in counts {
        assert_eq!(client.count(relation, object).await, count, "{relation} {object}");
        assert_eq!(client.subjects(relation, object).await.len() as i64, count, "{relation} {object}");
    }
    for ((relation, subject), mut objects) in held {
        let mut listed = client.objects(relation, subject).await;
        listed.sort();
        objects.sort();
        assert_eq!(listed, objects, "{relation} of {subject}: an answered write is not there");
        assert!(relation != "favorite" || listed.len() <= LIMIT, "{subject} has {listed:?}");
    }
}
