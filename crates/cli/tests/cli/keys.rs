//! `tally key`: made, used, listed, revoked.

use crate::world::World;

#[test]
fn a_key_works_from_its_making_to_its_end() {
    let world = World::new();
    let server = world.serve();
    let made = server.run(&world, &["key", "create", "--role", "read", "--name", "dashboard", "--json"]).json();
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert_eq!((made["role"].as_str(), made["name"].as_str()), (Some("read"), Some("dashboard")));
    assert_eq!(server.run_as(&world, key, &["count", "like", "post:1"]).code, 0);
    server.run_as(&world, key, &["like", "post:1", "alice"]).fails(1, "forbidden: ");
    server.run_as(&world, key, &["key", "list"]).fails(1, "forbidden: ");

    let listed = server.run(&world, &["key", "list"]);
    assert!(listed.out.contains(id) && listed.out.contains("dashboard") && !listed.out.contains(key), "{listed}");
    let revoked = server.run(&world, &["key", "revoke", id]);
    assert_eq!((revoked.code, revoked.out.trim_end()), (0, format!("{id} is revoked.").as_str()), "{revoked}");
    let again = server.run(&world, &["key", "revoke", id]);
    assert!(again.out.contains("was revoked already"), "{again}");
    server.run_as(&world, key, &["count", "like", "post:1"]).fails(1, "unauthenticated: ");
    server.run(&world, &["key", "revoke", "nobody"]).fails(1, "not_found: ");
}

#[test]
fn a_key_made_in_a_folder_opens_the_server_on_it() {
    let world = World::new();
    world.seed("data", &[]);
    let store = world.url("data");
    let ran = world.run(&["key", "create", "--role", "service", "--name", "backend", "--store", &store]);
    let key = ran.out.lines().rev().find_map(|line| line.trim().strip_prefix("tally_")).unwrap();
    let key = format!("tally_{key}");
    let listed = world.run(&["key", "list", "--store", &store, "--json"]).json();
    assert_eq!(listed["items"][0]["name"], "backend");
    let server = world.serve_with(&[], None);
    assert_eq!(server.run_as(&world, &key, &["like", "post:1", "alice"]).code, 0);
}
