//! Several commands as one: all or none, or each on its own.

use crate::command::{Batch, Command, Forget, Rehearse};
use crate::limits::ATOMIC_COMMANDS_MAX;
use crate::tests::world::World;
use crate::tests::{check, script};

#[test]
fn an_atomic_batch_is_all_or_none() {
    check(
        r#"
        batch atomic relate like post:1 alice ; relate pin post:1 alice ; unrelate like post:2 bob -> [active changed count=1; active changed count=1; inactive count=0]
        batch atomic relate like post:2 alice ; relate pin post:2 alice ; relate pin post:3 alice -> batch_refused 2 limit_exceeded
        count like post:2       -> 0
        total pin alice         -> 1
        batch atomic relate bookmark post:9 alice ; relate like post:2 alice -> batch_refused 0 object_not_found
        count like post:2       -> 0
        "#,
    );
}

#[test]
fn the_first_refusal_is_the_one_that_is_told() {
    check(
        r#"
        batch atomic relate like post:1 alice ; relate bookmark post:9 alice ; relate nothing post:1 alice -> batch_refused 1 object_not_found
        "#,
    );
}

#[test]
fn without_atomic_each_stands_on_its_own() {
    check(
        r#"
        batch each relate favorite post:1 alice ; relate favorite post:2 alice ; relate nothing post:1 alice ; relate like post:1 alice -> [active changed count=1; limit_exceeded; relation_not_found; active changed count=1]
        objects favorite alice  -> post:1
        count like post:1       -> 1
        "#,
    );
}

#[test]
fn commands_see_what_those_before_them_did() {
    check(
        r#"
        batch atomic relate like post:1 alice ; relate like post:1 alice ; unrelate like post:1 alice ; toggle like post:1 alice -> [active changed count=1; active count=1; inactive changed count=0; active changed count=1]
        batch atomic unrelate like post:1 alice ; relate like post:1 alice ; unrelate like post:1 alice -> [inactive changed count=0; active changed count=1; inactive changed count=0]
        batch atomic relate favorite post:1 bob ; unrelate favorite post:1 bob ; relate favorite post:2 bob -> [active changed count=1; inactive changed count=0; active changed count=1]
        objects favorite bob    -> post:2
        "#,
    );
}

#[test]
fn the_order_inside_a_batch_is_the_order_of_the_lists() {
    check(
        r#"
        batch atomic relate like post:1 c ; relate like post:1 a ; relate like post:1 b -> [active changed count=1; active changed count=2; active changed count=3]
        relate like post:1 d    -> active changed count=4
        subjects like post:1    -> d b a c
        "#,
    );
}

#[test]
fn a_batch_may_begin_several_jobs() {
    check(
        r#"
        relate like post:1 alice -> active changed count=1
        batch atomic forget alice ; delete post:1 -> [job1 forget running edges=0; job2 clear running edges=0]
        sweep job1 like/post:1/alice -> job1 forget running edges=1
        sweep job2              -> job2 clear done edges=0
        "#,
    );
}

#[test]
fn a_batch_cannot_hold_a_batch() {
    let mut world = World::new();
    let like = script::read(&world, &["relate", "like", "post:1", "alice"]);
    for atomic in [true, false] {
        let inner = Command::from(Batch { atomic, commands: vec![like.clone()] });
        let outer = Command::from(Batch { atomic, commands: vec![like.clone(), inner] });
        assert_eq!(world.apply(outer, None).reply.unwrap_err().code(), "bad_request");
    }
    script::run(&mut world, "count like post:1 -> 0");
}

#[test]
fn a_batch_has_a_limit_and_may_be_empty() {
    let mut world = World::new();
    let likes = |many: usize| {
        let commands =
            (0..many).map(|number| script::read(&World::new(), &["relate", "like", "post:1", &format!("s{number}")]));
        Command::from(Batch { atomic: true, commands: commands.collect() })
    };
    assert_eq!(world.apply(likes(ATOMIC_COMMANDS_MAX + 1), None).reply.unwrap_err().code(), "too_large");
    assert!(world.apply(likes(0), None).reply.is_ok());
    script::run(&mut world, "count like post:1 -> 0");
    assert!(world.apply(likes(ATOMIC_COMMANDS_MAX), None).reply.is_ok());
    // One load for all of them.
    assert_eq!(world.loads, 1);
    script::run(&mut world, "count like post:1 -> 500");
}

#[test]
fn a_job_that_begins_inside_a_batch_is_announced_too() {
    let forget = || Command::from(Forget { subject: crate::SubjectId::new("alice").unwrap() });
    let batch = |commands| Command::from(Batch { atomic: false, commands });
    assert!(forget().wakes().jobs && batch(vec![forget()]).wakes().jobs);
    assert!(!batch(Vec::new()).wakes().jobs);
    assert!(!Command::from(Rehearse { commands: vec![forget()] }).wakes().jobs, "nothing is done");
}
