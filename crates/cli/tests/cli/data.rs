//! The data commands, each on a server and on a folder with the same outcome.

use serde_json::{Value, json};

use crate::world::{Ran, Served, World};

const DECLARED: &str = "[relations.reaction]\nread = \"public\"\none_of = [\"like\", \"love\"]\n\
     [limits.burst]\nrate = \"3/hour\"\n[boards.yearly]\nties = \"shared\"\nseason = \"0 0 1 1 *\"\n";

/// Where the commands of a test go.
pub(crate) enum Place {
    Server(Served),
    Folder,
}

impl Place {
    pub(crate) fn run(&self, world: &World, args: &[&str]) -> Ran {
        match self {
            Place::Server(server) => server.run(world, args),
            Place::Folder => world.run(&[args, &["--store", &world.url("data")]].concat()),
        }
    }
}

/// Does the same on a server and on a folder, each with `likes` in its store.
pub(crate) fn on_both(likes: &[(&str, &str)], test: impl Fn(&World, &Place)) {
    let world = World::new();
    world.write("tally.toml", DECLARED);
    world.seed("data", likes);
    test(&world, &Place::Server(world.serve()));
    let world = World::new();
    world.write("tally.toml", DECLARED);
    world.seed("data", likes);
    test(&world, &Place::Folder);
}

/// An answer without its times, which no test can know.
fn timeless(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            map.retain(|name, _| name != "created_at");
            map.values_mut().for_each(|inner| *inner = timeless(inner.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| *inner = timeless(inner.take())),
        _ => {}
    }
    value
}

#[test]
fn writing_the_same_twice_changes_once() {
    on_both(&[], |world, place| {
        let edge = |changed, active, count| {
            let mut edge = json!({"relation": "like", "object": "post:42", "subject": "alice"});
            edge["active"] = active;
            edge["changed"] = changed;
            edge["count"] = count;
            edge
        };
        let run = |args: &[&str]| timeless(place.run(world, args).json());
        let with_meta = |mut edge: Value| {
            edge["meta"] = Value::Null;
            edge
        };
        assert_eq!(run(&["like", "post:42", "alice", "--json"]), with_meta(edge(json!(true), json!(true), json!(1))));
        assert_eq!(run(&["like", "post:42", "alice", "--json"]), with_meta(edge(json!(false), json!(true), json!(1))));
        assert_eq!(run(&["unlike", "post:42", "alice", "--json"]), edge(json!(true), json!(false), json!(0)));
        assert_eq!(run(&["unlike", "post:42", "alice", "--json"]), edge(json!(false), json!(false), json!(0)));
    });
}

#[test]
fn kinds_and_meta_go_in_and_come_out() {
    on_both(&[], |world, place| {
        let run = |args: &[&str]| timeless(place.run(world, args).json());
        let love = run(&["relate", "reaction", "post:1", "alice", "--kind", "love", "--json"]);
        assert_eq!((&love["kind"], &love["count"]), (&json!("love"), &json!(1)));
        let count = run(&["count", "reaction", "post:1", "--viewer", "alice", "--json"]);
        assert_eq!(count, json!({"count": 1, "active": true, "kind": "love", "kinds": {"like": 0, "love": 1}}));
        let memo = run(&["relate", "bookmark", "post:1", "앨리스 a/b", "--meta", r#"{"memo":"later"}"#, "--json"]);
        assert_eq!(memo["meta"], json!({"memo": "later"}));
        let list = run(&["list", "bookmark", "--subject", "앨리스 a/b", "--json"]);
        assert_eq!(list, json!({"items": [{"object": "post:1", "meta": {"memo": "later"}}]}));
        let undone = run(&["relate", "bookmark", "post:1", "앨리스 a/b", "--undo", "--json"]);
        assert_eq!((&undone["active"], &undone["count"]), (&json!(false), &json!(0)));
    });
}

#[test]
fn lists_and_feeds_show_what_is_there() {
    let names: Vec<String> = (0..120).map(|number| format!("user-{number:03}")).collect();
    let likes: Vec<(&str, &str)> = names.iter().map(|name| ("post:42", name.as_str())).collect();
    on_both(&likes, |world, place| {
        let run = |args: &[&str]| place.run(world, args).json();
        let page = run(&["list", "like", "--object", "post:42", "--limit", "2", "--json"]);
        assert_eq!(timeless(page["items"].clone())[0], json!({"subject": "user-119", "meta": null}));
        let cursor = page["next_cursor"].as_str().unwrap();
        let next = run(&["list", "like", "--object", "post:42", "--limit", "1", "--cursor", cursor, "--json"]);
        assert_eq!(next["items"][0]["subject"], "user-117");
        let all = run(&["list", "like", "--object", "post:42", "--all", "--json"]);
        assert_eq!((all["items"].as_array().unwrap().len(), &all["items"][119]["subject"]), (120, &json!("user-000")));
        assert_eq!(all.get("next_cursor"), None);
        let feed = run(&[
            "read",
            "--objects",
            "post:42,post:1",
            "--relations",
            "like,bookmark",
            "--viewer",
            "user-001",
            "--json",
        ]);
        let item = |object, count, active| {
            let bookmark = json!({"count": 0, "active": false});
            json!({"object": object, "relations": {"like": {"count": count, "active": active}, "bookmark": bookmark}})
        };
        assert_eq!(feed, json!({"items": [item("post:42", 120, true), item("post:1", 0, false)]}));
    });
}

#[test]
fn people_get_tables() {
    on_both(&[("post:42", "alice")], |world, place| {
        for (args, words) in [
            (&["like", "post:42", "bob"][..], &["│ like", "post:42", "bob", "yes"][..]),
            (&["count", "like", "post:42", "--viewer", "bob"], &["count", "┆ 2", "viewer"]),
            (&["list", "like", "--object", "post:42"], &["subject", "alice", "bob"]),
            (&["list", "like", "--object", "post:42", "--limit", "1"], &["bob", "There is more: --cursor "]),
            (&["read", "--objects", "post:42", "--relations", "like"], &["object", "like", "┆ 2"]),
        ] {
            let ran = place.run(world, args);
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran}");
            for word in words {
                assert!(ran.out.contains(word), "no `{word}` in: {ran}");
            }
        }
    });
}

#[test]
fn refusals_are_one_line_with_their_code() {
    on_both(&[], |world, place| {
        let run = |args: &[&str]| place.run(world, args);
        run(&["count", "lik", "post:42"])
            .fails(1, "relation_not_found: there is no relation `lik`; did you mean `like`?");
        run(&["list", "like", "--object", "post:42", "--cursor", "x"]).fails(1, "bad_cursor: ");
        run(&["relate", "reaction", "post:42", "alice"]).fails(1, "bad_request: ");
        run(&["relate", "reaction", "post:42", "alice", "--kind", "hate", "--json"]).fails(1, "bad_request: ");
        for nobody in [&["like", "post:42", "me"][..], &["board", "add", "points", "me", "5"]] {
            run(nobody)
                .fails(1, "bad_request: `me` stands for the subject of a user's token, and is no subject's name");
        }
    });
}

#[test]
fn wrong_words_are_wrong_usage() {
    let world = World::new();
    for (args, words) in [
        (&["like", "post", "alice"][..], "type:id"),
        (&["like", "post:42"], "<SUBJECT>"),
        (&["relate", "like", "post:42", "alice", "--meta", "[]"], "JSON object"),
        (&["relate", "like", "post:42", "alice", "--undo", "--kind", "love"], "cannot be used with"),
        (&["list", "like"], "--object"),
        (&["list", "like", "--object", "post:1", "--limit", "101"], "1..=100"),
        (&["count", "like", "post:42", "--store", "embedded:x", "--url", "http://x"], "cannot be used with"),
        (&["count", "like", "post:42", "--store", "postgres:x"], "postgres://user@host/database"),
        (&["count", "like", "post:42", "--store", "mysql:x"], "embedded:PATH"),
        (&["count", "like", "post:42", "--url", "nowhere"], "is not a server"),
        (&["count", "like", "post:42", "--url", "http://me:secret@x"], "holds no secret"),
        (&["count", "like", "post:42", "--key", "a b"], "without spaces"),
        (&["unlike", "post:42", ".."], "cannot stand in a URL"),
        (&["key", "create", "--role", "king", "--name", "x"], "read, service, admin"),
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {ran}");
        assert!(ran.err.contains(words) && ran.out.is_empty(), "no `{words}` in: {ran}");
    }
}

#[test]
fn what_is_in_the_way_is_named_with_what_to_do() {
    let world = World::new();
    world.run(&["count", "like", "post:42", "--url", "http://127.0.0.1:1"]).fails(1, "start it with `tally serve`");
    let missing = world.url("typo");
    world.run(&["like", "post:42", "alice", "--store", &missing]).fails(1, "there is no store in ");
    assert!(!world.path("typo").exists(), "a mistyped path makes no store");
    let server = world.serve();
    world.run(&["count", "like", "post:42", "--store", &world.url("data")]).fails(1, "is open in another process");
    server.run_as(&world, "wrong", &["count", "like", "post:42"]).fails(1, "unauthenticated: ");
    world.run(&["count", "like", "post:42", "--url", &server.base]).fails(1, "give a key with --key or TALLY_KEY");
    let flags = ["count", "like", "post:42", "--url", &server.base, "--key", crate::world::KEY, "--json"];
    assert_eq!(world.run(&flags).json(), json!({"count": 0}));
    let mut admin = world.tally();
    admin.args(["count", "like", "post:42", "--json", "--url", &server.base]).env("TALLY_ADMIN_KEY", crate::world::KEY);
    assert_eq!(crate::world::ran(&mut admin).json(), json!({"count": 0}));
}

#[test]
fn a_wrong_settings_file_stops_a_command_on_a_folder() {
    let world = World::new();
    world.seed("data", &[]);
    let file = world.write("wrong.toml", "listn = 1\n");
    let ran =
        world.run(&["count", "like", "post:1", "--store", &world.url("data"), "--config", file.to_str().unwrap()]);
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.err.contains("wrong.toml:1:1") && ran.err.contains("did you mean `listen`?"), "{ran}");
}
