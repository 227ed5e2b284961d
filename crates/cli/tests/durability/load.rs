//! Clients that write until the server goes away, and remember exactly what they were told.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;

use crate::support::*;

/// Edges of each writer's own.
pub(crate) const OWN: usize = 12;
/// Edges that all writers make, over and over.
pub(crate) const SHARED: usize = 40;

/// One client with edges that nobody else writes.
pub(crate) struct Writer {
    name: String,
    /// All of its edges in one atomic batch, or one edge at a time.
    atomic: bool,
    /// What each of its edges is, as far as anyone has told.
    known: Vec<bool>,
    /// Edges whose last write was sent and never answered.
    unsure: Vec<usize>,
    /// Shared edges that an answer said this client made.
    pub(crate) made: Vec<usize>,
    /// Shared edges that an answer said are there.
    pub(crate) seen: Vec<usize>,
    step: usize,
}

impl Writer {
    pub(crate) fn new(number: usize) -> Self {
        Self {
            name: format!("writer-{number}"),
            atomic: number.is_multiple_of(2),
            known: vec![false; OWN],
            unsure: Vec::new(),
            made: Vec::new(),
            seen: Vec::new(),
            step: number,
        }
    }

    fn objects() -> Vec<String> {
        (0..OWN).map(|n| format!("own:{n}")).collect()
    }

    /// Writes until there is no answer any more.
    pub(crate) async fn run(&mut self, client: &Client, answered: &AtomicUsize) {
        loop {
            self.step += 1;
            let went_on = match self.step % 3 {
                0 => self.write_shared(client).await,
                _ if self.atomic => self.flip_all(client).await,
                _ => self.flip_one(client).await,
            };
            if went_on.is_none() {
                return;
            }
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A like that all clients send.
    async fn write_shared(&mut self, client: &Client) -> Option<()> {
        let number = self.step * 7 % SHARED;
        let path = edge("like", "shared:1", &format!("fan-{number}"));
        let answer = client.put(&path).try_send().await.ok()?;
        assert_eq!(answer.status, 200, "{}", answer.text());
        self.seen.push(number);
        if answer.json()["changed"] == true {
            self.made.push(number);
        }
        Some(())
    }

    async fn flip_one(&mut self, client: &Client) -> Option<()> {
        let number = self.step % OWN;
        let path = edge("like", &format!("own:{number}"), &self.name);
        let wanted = !self.known[number];
        self.unsure = vec![number];
        let request = if wanted { client.put(&path) } else { client.delete(&path) };
        let answer = request.try_send().await.ok()?;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!((&answer.json()["active"], &answer.json()["changed"]), (&json!(wanted), &json!(true)), "{path}");
        self.known[number] = wanted;
        self.unsure.clear();
        Some(())
    }

    async fn flip_all(&mut self, client: &Client) -> Option<()> {
        let wanted = !self.known[0];
        let op = if wanted { "relate" } else { "unrelate" };
        let commands: Vec<Value> = Self::objects()
            .iter()
            .map(|object| json!({"op": op, "relation": "like", "object": object, "subject": self.name}))
            .collect();
        self.unsure = (0..OWN).collect();
        let answer = client.post("/v1/batch").json(&json!({"commands": commands})).try_send().await.ok()?;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let results = answer.json()["results"].as_array().unwrap().clone();
        assert!(results.iter().all(|result| result["changed"] == true && result["active"] == wanted), "{results:?}");
        self.known = vec![wanted; OWN];
        self.unsure.clear();
        Some(())
    }

    /// Holds the store against what was answered, and takes up what was left open.
    pub(crate) async fn check(&mut self, client: &Client) {
        let body = json!({"viewer": self.name, "objects": Self::objects(), "relations": ["like"]});
        let feed = client.post("/v1/read").json(&body).ok().await;
        let items = feed["items"].as_array().unwrap();
        let found: Vec<bool> =
            items.iter().map(|item| item["relations"]["like"]["active"].as_bool().unwrap()).collect();
        for number in (0..OWN).filter(|number| !self.unsure.contains(number)) {
            assert_eq!(found[number], self.known[number], "{} own:{number}: an answered write is gone", self.name);
        }
        if self.atomic {
            assert!(found.iter().all(|active| *active == found[0]), "{}: half a batch: {found:?}", self.name);
        }
        self.known = found;
        self.unsure.clear();
    }
}

/// Everything that was told of the shared edges, held against what is there.
pub(crate) async fn check_shared(client: &Client, writers: &[Writer]) {
    let listed = client.subjects("like", "shared:1").await;
    assert_eq!(client.count("like", "shared:1").await, listed.len() as i64);
    let mut made: BTreeMap<usize, u32> = BTreeMap::new();
    for writer in writers {
        for number in &writer.made {
            *made.entry(*number).or_default() += 1;
        }
        for number in &writer.seen {
            assert!(listed.contains(&format!("fan-{number}")), "fan-{number} was answered and is gone");
        }
    }
    assert!(made.values().all(|times| *times == 1), "an edge was made twice: {made:?}");
}

/// Has all of them write until enough is answered and `end` ends the server. Then starts it again, and everything has to be as
/// they were told.
pub(crate) async fn loaded(
    server: &mut Server,
    writers: &mut [Writer],
    enough: usize,
    end: impl AsyncFnOnce(&mut Server),
) {
    let client = server.client();
    let answered = AtomicUsize::new(0);
    let writing = join_all(writers.iter_mut().map(|writer| writer.run(&client, &answered)));
    let ending = async {
        until("enough writes are answered", async || (answered.load(Ordering::Relaxed) >= enough).then_some(())).await;
        end(server).await;
    };
    tokio::join!(writing, ending);
    server.restart().await;
    let client = server.client();
    for writer in writers.iter_mut() {
        writer.check(&client).await;
    }
    check_shared(&client, writers).await;
    client.verified().await;
}
