//! An edge is there or it is not: semantics 1 to 5 and 8 of relations.

use crate::command::{Command, Relate};
use crate::id::{Name, ObjectId, SubjectId};
use crate::reply::Reply;
use crate::tests::check;
use crate::tests::world::World;

#[test]
fn relating_again_changes_nothing_and_keeps_the_time() {
    check(
        r#"
        relate like post:1 alice    -> active changed count=1
        clock 9000
        relate like post:1 alice    -> active count=1
        edge like post:1 alice      -> at=1000
        "#,
    );
}

#[test]
fn unrelating_what_is_not_there_changes_nothing() {
    check(
        r#"
        unrelate like post:1 alice  -> inactive count=0
        relate like post:1 bob      -> active changed count=1
        unrelate like post:1 alice  -> inactive count=1
        unrelate like post:1 bob    -> inactive changed count=0
        unrelate like post:1 bob    -> inactive count=0
        "#,
    );
}

#[test]
fn relating_after_unrelating_is_a_new_edge_and_the_newest() {
    check(
        r#"
        relate like post:1 alice    -> active changed count=1
        relate like post:1 bob      -> active changed count=2
        relate like post:2 alice    -> active changed count=1
        subjects like post:1        -> bob alice
        objects like alice          -> post:2 post:1
        unrelate like post:1 alice  -> inactive changed count=1
        clock 2000
        relate like post:1 alice    -> active changed count=2
        edge like post:1 alice      -> at=2000
        subjects like post:1        -> alice bob
        objects like alice          -> post:1 post:2
        "#,
    );
}

#[test]
fn edges_of_one_millisecond_are_strictly_ordered() {
    check(
        r#"
        relate like post:1 c        -> active changed count=1
        relate like post:1 a        -> active changed count=2
        relate like post:1 b        -> active changed count=3
        subjects like post:1        -> b a c
        # A clock that goes back does not reorder them.
        clock 10
        relate like post:1 d        -> active changed count=4
        subjects like post:1        -> d b a c
        edge like post:1 d          -> at=1000
        "#,
    );
}

#[test]
fn relations_and_objects_and_subjects_do_not_mix() {
    check(
        r#"
        relate like post:1 alice    -> active changed count=1
        relate note post:1 alice    -> active changed count=1
        relate like post:2 alice    -> active changed count=1
        relate like user:1 alice    -> active changed count=1
        total like alice            -> 3
        # Joined by an underscore, these two would be one.
        relate like post:b_c a      -> active changed count=1
        relate like post:c a_b      -> active changed count=1
        unrelate like post:b_c a    -> inactive changed count=0
        subjects like post:c        -> a_b
        "#,
    );
}

#[test]
fn a_toggle_turns_the_edge_over() {
    check(
        r#"
        toggle like post:1 alice                -> active changed count=1
        toggle like post:1 alice                -> inactive changed count=0
        toggle reaction post:1 bob kind=wow     -> active changed count=1 kind=wow
        # The kind says what to make, not what to remove.
        toggle reaction post:1 bob kind=love    -> inactive changed count=0
        kind reaction post:1 wow                -> 0
        toggle reaction post:1 bob              -> bad_request
        toggle note post:1 bob meta={"a":1}     -> active changed count=1 meta={"a":1}
        toggle favorite post:1 bob              -> active changed count=1
        toggle favorite post:2 bob              -> limit_exceeded
        toggle favorite post:1 bob              -> inactive changed count=0
        "#,
    );
}

#[test]
fn another_kind_replaces_the_first_and_both_counts_move() {
    check(
        r#"
        relate reaction post:1 alice kind=like  -> active changed count=1 kind=like
        relate reaction post:1 bob kind=like    -> active changed count=2 kind=like
        clock 2000
        relate reaction post:1 alice kind=love  -> active changed count=2 kind=love
        kind reaction post:1 like               -> 1
        kind reaction post:1 love               -> 1
        total reaction alice                    -> 1
        # A replacement is newly made, so it is the newest.
        edge reaction post:1 alice              -> at=2000 kind=love
        subjects reaction post:1                -> alice bob
        relate reaction post:1 alice kind=love  -> active count=2 kind=love
        unrelate reaction post:1 alice          -> inactive changed count=1
        kind reaction post:1 love               -> 0
        "#,
    );
}

#[test]
fn a_kind_is_one_of_those_declared() {
    check(
        r#"
        relate reaction post:1 alice            -> bad_request
        relate reaction post:1 alice kind=angry -> bad_request
        relate like post:1 alice kind=like      -> bad_request
        count reaction post:1                   -> 0
        "#,
    );
}

#[test]
fn kinds_that_are_no_longer_declared_stay_removable() {
    let mut world = World::new();
    crate::tests::script::run(&mut world, "relate reaction post:1 alice kind=wow -> active changed count=1 kind=wow");
    let reaction = world.catalog.relation(&Name::new("reaction").unwrap()).unwrap();
    let mut narrowed = (**reaction).clone();
    narrowed.one_of.retain(|kind| kind.as_str() != "wow");
    world.catalog.declare(narrowed);
    crate::tests::script::run(
        &mut world,
        r#"
        relate reaction post:1 bob kind=wow     -> bad_request
        unrelate reaction post:1 alice          -> inactive changed count=0
        kind reaction post:1 wow                -> 0
        "#,
    );
}

#[test]
fn a_relation_that_is_not_declared_is_refused() {
    check(
        r#"
        relate lik post:1 alice     -> relation_not_found
        unrelate lik post:1 alice   -> relation_not_found
        toggle lik post:1 alice     -> relation_not_found
        "#,
    );
}

#[test]
fn an_answer_says_all_that_the_contract_promises() {
    let mut world = World::new();
    let command = Command::from(Relate {
        relation: Name::new("like").unwrap(),
        object: ObjectId::new("post:1").unwrap(),
        subject: SubjectId::new("alice").unwrap(),
        kind: None,
        meta: None,
    });
    let reply = world.apply(command, None).reply.unwrap();
    assert_eq!(
        serde_json::to_value(&reply).unwrap(),
        serde_json::json!({
            "relation": "like", "object": "post:1", "subject": "alice", "active": true, "changed": true,
            "count": 1, "created_at": "1970-01-01T00:00:01.000Z", "meta": null,
        })
    );
    assert!(matches!(reply, Reply::Relation(_)));
}
