//! API keys that all servers know, and the one that the first start makes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use tempfile::TempDir;

use crate::database::{On, on, servers};
use crate::support::server::{address, binary};
use crate::support::*;

on!(a_key_of_one_server_works_on_the_other_until_it_is_revoked: postgres redis cluster);
async fn a_key_of_one_server_works_on_the_other_until_it_is_revoked(on: On) {
    let [a, b]: [Server; 2] = servers(&on.new_store(), "").await;
    let made = a.client().post("/v1/keys").json(&json!({"role": "service"})).status(201).await;
    let (there, path) = (b.client_as(made["key"].as_str()), edge("like", "post:1", "alice"));
    let status = async || there.put(&path).send().await.status;
    until("the key is known on the other", async || (status().await == 200).then_some(())).await;
    b.client().delete(&format!("/v1/keys/{}", made["id"].as_str().unwrap())).ok().await;
    there.put(&path).problem(401, "unauthenticated").await;
    let here = a.client_as(made["key"].as_str());
    until("it is known to be revoked", async || (here.put(&path).send().await.status == 401).then_some(())).await;
    let keys = a.client().get("/v1/keys").ok().await;
    assert_eq!(keys, b.client().get("/v1/keys").ok().await);
}

on!(an_id_that_is_none_is_not_found: postgres redis cluster);
async fn an_id_that_is_none_is_not_found(on: On) {
    let [server]: [Server; 1] = servers(&on.new_store(), "").await;
    for id in ["a%00b", "a%0Ab", "a%20b", "%E2%82%AC", "nobodys", &"x".repeat(2_000)] {
        server.client().delete(&format!("/v1/keys/{id}")).problem(404, "not_found").await;
    }
}

on!(a_stream_ends_when_its_key_is_revoked_through_another_server: postgres redis cluster);
async fn a_stream_ends_when_its_key_is_revoked_through_another_server(on: On) {
    let [a, b]: [Server; 2] = servers(&on.new_store(), "").await;
    let made = a.client().post("/v1/keys").json(&json!({"role": "read"})).status(201).await;
    let there = b.client_as(made["key"].as_str());
    let query = "objects=post:1&relations=like";
    until("the key is known on the other", async || {
        (there.get("/v1/relations/like/post:1").send().await.status == 200).then_some(())
    })
    .await;
    let mut events = Events::open(&there, query).await;
    assert_eq!(events.next().await.unwrap()["count"], 0);
    a.client().delete(&format!("/v1/keys/{}", made["id"].as_str().unwrap())).ok().await;
    // Counts may be told again meanwhile.
    events.ended().await;
}

/// A server without a key of its own.
struct Bare {
    child: Child,
    out: PathBuf,
    log: PathBuf,
}

impl Bare {
    fn start(home: &Path, number: usize, url: &str) -> Self {
        let (out, log) = (home.join(format!("out-{number}")), home.join(format!("log-{number}")));
        let mut command = binary();
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", url]).env_remove("TALLY_ADMIN_KEY");
        command.current_dir(home).stdin(Stdio::null());
        let child = command.stdout(File::create(&out).unwrap()).stderr(File::create(&log).unwrap()).spawn().unwrap();
        Self { child, out, log }
    }

    async fn base(&self) -> String {
        until("it listens", async || address(&std::fs::read_to_string(&self.log).unwrap())).await
    }

    /// The key that it printed.
    fn key(&self) -> Option<String> {
        let out = std::fs::read_to_string(&self.out).unwrap();
        let (_, rest) = out.split_once("shown this once:")?;
        rest.split_whitespace().next().map(str::to_owned)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

on!(servers_that_start_at_once_make_one_first_key: postgres redis cluster);
async fn servers_that_start_at_once_make_one_first_key(on: On) {
    let (home, url) = (TempDir::new().unwrap(), on.new_store());
    let servers: Vec<Bare> = (0..3).map(|number| Bare::start(home.path(), number, &url)).collect();
    let mut bases = Vec::new();
    for server in &servers {
        bases.push(server.base().await);
    }
    let found = || servers.iter().filter_map(Bare::key).collect::<Vec<_>>();
    let keys = until("a key is shown", async || Some(found()).filter(|keys| !keys.is_empty())).await;
    for base in &bases {
        let admin = Client::new(base, Some(&keys[0]));
        let listed = until("the key works on every server", async || {
            let answer = admin.get("/v1/keys").send().await;
            (answer.status == 200).then(|| answer.json())
        })
        .await;
        assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    }
    assert_eq!(found().len(), 1, "one server shows it");
}
