//! `tally copy`: the copy answers as the original did, goes on after a kill, and refuses what it could ruin.

use std::path::Path;
use std::process::Stdio;

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tally::core::command::{Batch, Call, Command, Relate};
use tally::core::{Name, ObjectId, SubjectId};

use crate::world::{KEY, Ran, Served, World, until};

pub(crate) const RELATIONS: &str = "[relations.reaction]\nread = \"public\"\none_of = [\"wow\", \"love\"]\n";

fn copy(world: &World, from: &str, to: &str) -> Ran {
    world.run(&["copy", "--from", &world.url(from), "--to", &world.url(to), "--json"])
}

/// Asks the server over HTTP; gives whether the answer was remembered, and the answer.
pub(crate) fn ask(
    server: &Served,
    method: Method,
    path: &str,
    with: impl Fn(RequestBuilder) -> RequestBuilder,
) -> (bool, Value) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::builder().no_proxy().build().unwrap();
        let request = client.request(method, format!("{}{path}", server.base)).bearer_auth(KEY);
        let answer = with(request).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        (answer.headers().contains_key("idempotent-replayed"), answer.json().await.unwrap())
    })
}

/// Everything that a caller can see.
pub(crate) fn answers(world: &World, server: &Served) -> Vec<Value> {
    let mut seen = Vec::new();
    for args in [
        &["count", "like", "post:1", "--viewer", "alice"][..],
        &["count", "reaction", "post:1"],
        &["list", "like", "--object", "post:1"],
        &["list", "bookmark", "--subject", "alice"],
        &["list", "like", "--subject", "mallory"],
        &["read", "--objects", "post:1,post:2", "--relations", "like,reaction,bookmark", "--viewer", "bob"],
        &["key", "list"],
    ] {
        seen.push(server.run(world, &[args, &["--json"]].concat()).json());
    }
    seen.push(ask(server, Method::GET, "/v1/objects/post:1", |request| request).1);
    seen
}

/// Rows of most kinds: likes, reactions, a bookmark with meta, a registered object.
pub(crate) fn fill(world: &World, server: &Served) {
    for who in ["alice", "bob", "mallory"] {
        assert_eq!(server.run(world, &["like", "post:1", who]).code, 0);
        assert_eq!(server.run(world, &["relate", "reaction", "post:1", who, "--kind", "wow"]).code, 0);
    }
    let meta = ["relate", "bookmark", "post:2", "alice", "--meta", "{\"memo\":\"나중에\",\"n\":1.0}"];
    assert_eq!(server.run(world, &meta).code, 0);
    let object = json!({"status": "published", "attributes": {"owner": "alice"}});
    ask(server, Method::PUT, "/v1/objects/post:1", |request| request.json(&object));
}

/// A call whose answer is remembered. Says whether it was.
pub(crate) fn toggle(server: &Served) -> (bool, Value) {
    ask(server, Method::POST, "/v1/relations/like/post:3/alice/toggle", |request| {
        request.header("Idempotency-Key", "once")
    })
}

#[test]
fn a_copy_answers_as_the_original_did() {
    let world = World::new();
    world.write("tally.toml", RELATIONS);
    let server = world.serve();
    fill(&world, &server);
    let (replayed, toggled) = toggle(&server);
    assert!(!replayed);
    let made = server.run(&world, &["key", "create", "--role", "read", "--name", "dashboard", "--json"]).json();
    let (_, job) = ask(&server, Method::POST, "/v1/subjects/mallory/suspend", |request| request);
    let job = format!("/v1/jobs/{}", job["job"].as_str().unwrap());
    let job = |server: &Served| ask(server, Method::GET, &job, |request| request).1;
    let hidden = until("mallory is hidden", || Some(job(&server)).filter(|job| job["state"] == "done"));
    let before = answers(&world, &server);
    world.run(&["copy", "--from", &world.url("data"), "--to", &world.url("second")]).fails(1, "is open in another");
    server.stop();

    let copied = copy(&world, "data", "second").json();
    for (kind, rows) in [("edges", 8), ("objects", 1), ("subjects", 1), ("replays", 1), ("jobs", 1), ("api_keys", 1)] {
        assert_eq!(copied[kind], rows, "{kind} in {copied}");
    }
    assert_eq!((&copied["rows"], &copied["resumed_rows"]), (&json!(13), &json!(0)));
    std::fs::rename(world.path("data"), world.path("first")).unwrap();
    std::fs::rename(world.path("second"), world.path("data")).unwrap();
    let server = world.serve();
    assert_eq!(answers(&world, &server), before);
    assert_eq!(toggle(&server), (true, toggled), "the copy remembers what was answered");
    assert_eq!(job(&server), hidden);
    assert_eq!(server.run_as(&world, made["key"].as_str().unwrap(), &["count", "like", "post:1"]).code, 0);
    // What was hidden came along, and comes back.
    ask(&server, Method::POST, "/v1/subjects/mallory/restore", |request| request);
    until("mallory is back", || {
        let count = server.run(&world, &["count", "like", "post:1", "--json"]).json();
        (count["count"] == 3).then_some(())
    });
}

#[test]
fn a_copy_says_what_it_did_and_refuses_what_it_could_ruin() {
    let world = World::new();
    world.seed("data", &[("post:1", "alice"), ("post:1", "bob")]);
    world.seed("other", &[("post:1", "zoe")]);
    let ran = world.run(&["copy", "--from", &world.url("data"), "--to", &world.url("new")]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "quiet when nobody watches: {ran}");
    for word in ["edges", "┆ 2", "Both stores agree", "tally serve --store embedded:"] {
        assert!(ran.out.contains(word), "no `{word}` in: {ran}");
    }
    let again = copy(&world, "data", "new").json();
    assert_eq!((&again["rows"], &again["resumed_rows"]), (&json!(2), &json!(2)), "it was whole already");
    copy(&world, "data", "other").fails(1, "holds rows already");
    copy(&world, "data", "data").fails(1, "the same store");
    copy(&world, "nothing", "fresh").fails(1, "there is no store in");
    assert!(!world.path("nothing").exists() && !world.path("fresh").exists());
    let unknown = world.run(&["copy", "--from", "mysql://u:hush@h/db", "--to", &world.url("fresh")]);
    unknown.fails(2, "`mysql://u:***@h/db` is not a store");
    assert_eq!(world.run(&["copy", "--from", &world.url("data")]).code, 2);
}

/// Likes in a folder, by the hundred.
pub(crate) fn seed_many(world: &World, name: &str, likes: usize) {
    world.with_store(name, async |tally| {
        for batch in (0..likes).collect::<Vec<_>>().chunks(500) {
            let like = |n: &usize| {
                Command::from(Relate {
                    relation: Name::new("like").unwrap(),
                    object: ObjectId::new(&format!("post:{}", n % 97)).unwrap(),
                    subject: SubjectId::new(&format!("user-{n}")).unwrap(),
                    kind: None,
                    meta: None,
                })
            };
            let command = Command::from(Batch { atomic: true, commands: batch.iter().map(like).collect() });
            tally.apply(Call::system(command)).await.unwrap().reply.unwrap();
        }
    });
}

/// Bytes that a store has put into its log, which is zeros further on.
fn logged(folder: &Path) -> usize {
    let Ok(files) = std::fs::read_dir(folder.join("log")) else { return 0 };
    let bytes = files.filter_map(|file| std::fs::read(file.ok()?.path()).ok());
    bytes.map(|bytes| bytes.iter().rev().skip_while(|byte| **byte == 0).count()).sum()
}

#[test]
fn a_copy_that_was_killed_goes_on() {
    const LIKES: usize = 20_000;
    let world = World::new();
    seed_many(&world, "data", LIKES);
    let (from, to, target) = (world.url("data"), world.url("second"), world.path("second"));
    let mut command = world.tally();
    command.args(["copy", "--from", &from, "--to", &to]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // Some pages are on disk then, and most are not.
    until("it writes", || (logged(&target) > 200_000 || child.try_wait().unwrap().is_some()).then_some(()));
    // SIGKILL, wherever it is.
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "it ended before it could be killed");
    let refused = world.run(&["count", "like", "post:1", "--store", &to]);
    refused.fails(1, "this store is a half-made copy; finish it with: tally copy --from embedded:");
    let copied = copy(&world, "data", "second").json();
    assert_eq!(copied["edges"], LIKES);
    assert!(copied["resumed_rows"].as_u64().unwrap() > 0, "{copied}");
    let verified = world.run(&["verify", "--store", &to, "--json"]).json();
    assert_eq!((&verified["edges"], &verified["drifted"]), (&json!(LIKES), &json!(0)));
    let count = |store: &str| world.run(&["count", "like", "post:1", "--store", store, "--json"]).json();
    assert_eq!(count(&to), count(&from));
}
