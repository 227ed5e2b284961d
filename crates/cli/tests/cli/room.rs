//! `tally room`: what a person sees of a room, and what becomes of it.

use serde_json::{Value, json};
use tally::core::room::Join;
use tally::core::{Auth, Name, SubjectId};

use crate::doctor::{all_ok, status};
use crate::world::{KEY, Ran, World};

struct Rooms {
    world: World,
}

impl Rooms {
    fn new() -> Self {
        let world = World::new();
        world.seed("data", &[]);
        Self { world }
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.world.run(&[&["room"], args, &["--store", &self.world.url("data")]].concat())
    }

    fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).json()
    }

    fn join(&self, room: &str, subjects: &[&str]) {
        let auth: Auth = std::sync::Arc::new(json!({"kind": "system"}));
        self.world.with_store("data", async |tally| {
            for subject in subjects {
                let (room, subject) = (Name::new(room).unwrap(), Some(SubjectId::new(subject).unwrap()));
                let join = Join { room, subject, token: None, fresh: String::new(), ip: None };
                tally.join(join, &auth).await.unwrap();
            }
        });
    }
}

#[test]
fn a_room_needs_a_name_and_every_setting_has_a_flag() {
    let rooms = Rooms::new();
    let made = rooms.json(&["create", "sale", "--rate", "10"]);
    assert_eq!(
        (&made["created"], &made["changed"], &made["settings"]["rate_per_s"]),
        (&json!(true), &json!(true), &json!(10))
    );
    let all = [
        "create",
        "full",
        "--rate",
        "0.5",
        "--capacity",
        "7",
        "--mode",
        "hold",
        "--opens-at",
        "2099-01-01T00:00:00Z",
        "--closes-at",
        "2099-01-02T00:00:00+09:00",
        "--shuffle",
        "--join",
        "any",
        "--one-ticket-per-subject",
        "false",
        "--idle-ttl",
        "1m",
        "--ticket-ttl",
        "1h",
        "--claim-ttl",
        "30s",
        "--admission-ttl",
        "2m",
        "--dedupe-ttl",
        "2d",
        "--renewable",
        "--bypass",
        "auth.claims.staff == true",
        "--rate-limit",
        "5/min per ip",
        "--return-host",
        "shop.example",
        "--return-host",
        "shop.example:8443",
    ];
    let full = rooms.json(&all);
    let expected = json!({
        "rate_per_s": 0.5, "capacity": 7, "mode": "hold", "one_ticket_per_subject": false, "idle_ttl_ms": 60_000,
        "ticket_ttl_ms": 3_600_000, "claim_ttl_ms": 30_000, "admission_ttl_ms": 120_000, "dedupe_ttl_ms": 172_800_000,
        "renewable": true, "opens_at": "2099-01-01T00:00:00.000Z", "closes_at": "2099-01-01T15:00:00.000Z",
        "before_open": "shuffle", "join": "any", "bypass": "auth.claims.staff == true", "rate_limit": "5/min per ip",
        "return_hosts": ["shop.example", "shop.example:8443"]
    });
    assert_eq!(full["settings"], expected);
    let set = rooms.json(&["set", "full", "--rate", "2"]);
    assert_eq!((&set["settings"]["rate_per_s"], &set["settings"]["capacity"]), (&json!(2), &json!(7)));
    let names: Vec<Value> =
        rooms.json(&["list"])["items"].as_array().unwrap().iter().map(|it| it["room"].clone()).collect();
    assert_eq!(names, ["full", "sale"]);
    rooms.run(&["create", "sale", "--capacity", "0"]).fails(1, "bad_request: capacity is between 1");
    rooms.run(&["show", "nowhere"]).fails(1, "room_not_found");
    assert_eq!(rooms.run(&["create", "sale", "--rate", "0"]).code, 2);
}

#[test]
fn a_room_is_held_let_in_by_hand_emptied_and_deleted() {
    let rooms = Rooms::new();
    rooms.json(&["create", "sale", "--rate", "0.001", "--capacity", "5", "--idle-ttl", "24h"]);
    assert_eq!(rooms.json(&["drain", "sale"])["settings"]["mode"], "drain");
    assert_eq!(rooms.json(&["open", "sale"])["settings"]["mode"], "auto");
    assert_eq!(rooms.json(&["hold", "sale"])["settings"]["mode"], "hold");
    rooms.join("sale", &["a", "b", "c", "d"]);
    let shown = rooms.json(&["show", "sale"]);
    assert_eq!(
        (&shown["waiting"], &shown["rate_per_s"], &shown["idle_ttl_ms"]),
        (&json!(4), &json!(0.001), &json!(86_400_000))
    );
    assert_eq!(rooms.json(&["admit", "sale", "3"])["admitted"], 3);
    let watched = rooms.run(&["watch", "sale", "--once"]);
    assert!(watched.code == 0 && watched.out.contains("waiting") && watched.out.contains("0 of 5"), "{watched}");
    assert_eq!(rooms.json(&["watch", "sale", "--once"])["ready"], 3);
    assert_eq!(rooms.run(&["minutes", "sale"]).code, 0);
    let table = rooms.run(&["show", "sale"]);
    assert!(table.out.contains("hash of the seed") && table.out.contains("24h"), "{table}");
    rooms.run(&["delete", "sale"]).fails(2, "1 wait in `sale` and 3 are inside; with --yes");
    let deleted = rooms.run(&["delete", "sale", "--yes"]);
    assert!(deleted.code == 0 && deleted.out.contains("closed"), "{deleted}");
    rooms.run(&["show", "sale"]).fails(1, "room_not_found");
}

#[test]
fn a_server_does_the_same_and_the_doctor_looks_at_its_rooms() {
    let world = World::new();
    world.write("tally.toml", "");
    let server = world.serve();
    let run = |args: &[&str]| server.run(&world, args);
    assert_eq!(run(&["room", "create", "sale", "--rate", "0.001", "--ticket-ttl", "1m", "--mode", "hold"]).code, 0);
    assert_eq!(run(&["doctor", "--json", "--url", &server.base]).code, 0);
    let tickets = format!("{}/v1/rooms/sale/tickets", server.base);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for subject in ["a", "b"] {
        let join = reqwest::Client::new().post(&tickets).bearer_auth(KEY).json(&json!({"subject": subject}));
        assert_eq!(runtime.block_on(join.send()).unwrap().status().as_u16(), 201);
    }
    let slow = run(&["doctor", "--json", "--url", &server.base]);
    assert_eq!(status(&slow, "rooms").as_deref(), Some("warn"), "{slow}");
    assert_eq!(run(&["room", "set", "sale", "--rate", "100", "--json"]).json()["settings"]["mode"], "hold");
    all_ok(&run(&["doctor", "--json", "--url", &server.base]), "rooms");
    let listed = run(&["room", "list", "--json"]).json();
    assert_eq!((&listed["items"][0]["room"], &listed["items"][0]["waiting"]), (&json!("sale"), &json!(2)));
    assert_eq!(run(&["room", "admit", "sale", "1", "--json"]).json()["admitted"], 1);
    assert_eq!(run(&["room", "minutes", "sale", "--json"]).json(), json!({"items": []}));
    assert_eq!(run(&["room", "delete", "sale", "--yes", "--json"]).json()["changed"], true);
}
