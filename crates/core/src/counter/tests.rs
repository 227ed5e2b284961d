//! Counters.

use serde_json::json;

use crate::command::{Command, DeleteObject, PutObject};
use crate::tests::counting::{code, told, world};

#[test]
fn a_counter_asks_its_condition_and_keeps_when() {
    let mut world = world();
    let add = |by: i64| json!({"op": "count", "counter": "reads", "key": "post:1", "by": by});
    assert_eq!(code(&mut world, add(1)), "condition_failed");
    assert_eq!(code(&mut world, json!({"op": "count", "counter": "reads", "key": "home"})), "bad_request");
    let put = |status: &str| {
        Command::from(PutObject {
            object: crate::ObjectId::new("post:1").unwrap(),
            status: Some(status.into()),
            attributes: Default::default(),
        })
    };
    world.apply(put("published"), None).reply.unwrap();
    world.now_ms = 5_000;
    let first = told(&mut world, add(3));
    assert_eq!((&first["value"], &first["last_at"]), (&json!(3), &json!("1970-01-01T00:00:05.000Z")));
    world.now_ms = 5_400;
    assert_eq!(told(&mut world, add(-5))["last_at"], "1970-01-01T00:00:05.000Z", "kept to the second");
    world.now_ms = 6_500;
    let later = told(&mut world, add(1));
    assert_eq!((&later["value"], &later["last_at"]), (&json!(-1), &json!("1970-01-01T00:00:06.500Z")));
    // An object that goes takes its counters with it.
    world.apply(Command::from(DeleteObject { object: crate::ObjectId::new("post:1").unwrap() }), None).reply.unwrap();
    world.apply(put("published"), None).reply.unwrap();
    let anew = told(&mut world, add(1));
    assert_eq!((&anew["value"], &anew["last_at"]), (&json!(1), &json!("1970-01-01T00:00:06.500Z")));
}
