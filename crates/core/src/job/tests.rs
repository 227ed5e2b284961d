//! Steps of long work: late, repeated, misdirected or overtaken, they do no harm.

use crate::limits::SWEEP_EDGES_MAX;
use crate::rows::JobId;
use crate::tests::world::World;
use crate::tests::{check, script};

#[test]
fn a_step_that_comes_twice_counts_once() {
    check(
        r#"
        relate like post:1 alice            -> active changed count=1
        relate like post:2 alice            -> active changed count=1
        forget alice                        -> job1 forget running edges=0
        sweep job1 like/post:1/alice        -> job1 forget running edges=1
        sweep job1 like/post:1/alice        -> job1 forget running edges=1
        sweep job1 like/post:2/alice        -> job1 forget running edges=2
        sweep job1                          -> job1 forget done edges=2
        sweep job1                          -> job1 forget done edges=2
        "#,
    );
}

#[test]
fn an_edge_named_twice_in_one_step_counts_once() {
    check(
        r#"
        relate reaction post:1 alice kind=wow   -> active changed count=1 kind=wow
        forget alice                            -> job1 forget running edges=0
        sweep job1 reaction/post:1/alice reaction/post:1/alice -> job1 forget running edges=1
        sweep job1                              -> job1 forget done edges=1
        "#,
    );
}

#[test]
fn a_step_that_comes_late_finds_the_job_ended() {
    check(
        r#"
        relate like post:1 alice            -> active changed count=1
        forget alice                        -> job1 forget running edges=0
        sweep job1                          -> job1 forget done edges=0
        sweep job1 like/post:1/alice        -> job1 forget done edges=0
        count like post:1                   -> 1
        "#,
    );
}

#[test]
fn a_step_touches_only_what_its_job_is_about() {
    check(
        r#"
        relate like post:1 alice            -> active changed count=1
        relate like post:1 bob              -> active changed count=2
        relate like post:2 bob              -> active changed count=1
        forget alice                        -> job1 forget running edges=0
        delete post:2                       -> job2 clear running edges=0
        suspend alice                       -> job3 hide running edges=0
        sweep job1 like/post:1/bob          -> job1 forget running edges=0
        sweep job2 like/post:1/bob          -> job2 clear running edges=0
        sweep job3 like/post:1/bob          -> job3 hide running edges=0
        restore alice                       -> job4 show running edges=0
        sweep job4 like/post:1/bob          -> job4 show running edges=0
        sweep job1 like/post:9/alice        -> job1 forget running edges=0
        count like post:1                   -> 2
        "#,
    );
}

#[test]
fn edges_newer_than_the_job_are_left_alone() {
    check(
        r#"
        relate like post:1 alice            -> active changed count=1
        forget alice                        -> job1 forget running edges=0
        delete post:1                       -> job2 clear running edges=0
        unrelate like post:1 alice          -> inactive count=0
        relate like post:1 alice            -> active changed count=1
        sweep job1 like/post:1/alice        -> job1 forget running edges=0
        sweep job2 like/post:1/alice        -> job2 clear running edges=0
        count like post:1                   -> 1
        "#,
    );
}

#[test]
fn hiding_that_was_overtaken_by_a_restore_ends() {
    check(
        r#"
        relate like post:1 alice            -> active changed count=1
        suspend alice                       -> job1 hide running edges=0
        restore alice                       -> job2 show running edges=0
        sweep job1 like/post:1/alice        -> job1 hide done edges=0
        count like post:1                   -> 1
        # Suspended again: the same job begins anew.
        suspend alice                       -> job1 hide running edges=0
        sweep job1 like/post:1/alice        -> job1 hide running edges=1
        count like post:1                   -> 0
        "#,
    );
}

#[test]
fn a_hiding_that_was_overtaken_goes_on_when_it_is_asked_for_again() {
    check(
        r#"
        relate like post:1 alice            -> active changed count=1
        suspend alice                       -> job1 hide running edges=0
        restore alice                       -> job2 show running edges=0
        relate like post:2 alice            -> active changed count=1
        suspend alice                       -> job1 hide running edges=0
        sweep job1 like/post:1/alice        -> job1 hide running edges=1
        sweep job1 like/post:1/alice like/post:2/alice -> job1 hide running edges=2
        "#,
    );
}

#[test]
fn showing_that_was_overtaken_by_a_suspension_ends() {
    check(
        r#"
        relate like post:1 alice            -> active changed count=1
        suspend alice                       -> job1 hide running edges=0
        sweep job1 like/post:1/alice        -> job1 hide running edges=1
        sweep job1                          -> job1 hide done edges=1
        restore alice                       -> job2 show running edges=0
        suspend alice                       -> job1 hide running edges=0
        sweep job2 like/post:1/alice        -> job2 show done edges=0
        hidden like alice                   -> post:1
        count like post:1                   -> 0
        "#,
    );
}

#[test]
fn two_jobs_over_one_edge_remove_it_once() {
    check(
        r#"
        relate like post:1 alice            -> active changed count=1
        forget alice                        -> job1 forget running edges=0
        delete post:1                       -> job2 clear running edges=0
        sweep job1 like/post:1/alice        -> job1 forget running edges=1
        sweep job2 like/post:1/alice        -> job2 clear running edges=0
        count like post:1                   -> 0
        "#,
    );
}

#[test]
fn a_job_that_is_not_there_is_not_found() {
    check("sweep job1 like/post:1/alice -> not_found");
}

#[test]
fn a_step_has_a_limit() {
    let mut world = World::new();
    script::run(&mut world, "forget alice -> job1 forget running edges=0");
    let fits = vec!["like/post:1/alice"; SWEEP_EDGES_MAX].join(" ");
    script::run(&mut world, &format!("sweep job1 {fits} -> job1 forget running edges=0"));
    script::run(&mut world, &format!("sweep job1 {fits} like/post:2/alice -> too_large"));
}

/// A step knows its edges' kinds only after a first load; it must not need one load for each.
#[test]
fn a_step_loads_at_most_twice() {
    let mut world = World::new();
    for number in 0..20 {
        let kind = ["like", "love", "wow"][number % 3];
        let line = format!("relate reaction post:{number} alice kind={kind} -> active changed count=1 kind={kind}");
        script::run(&mut world, &line);
    }
    script::run(&mut world, "forget alice -> job1 forget running edges=0");
    let edges: Vec<String> = (0..20).map(|number| format!("reaction/post:{number}/alice")).collect();
    script::run(&mut world, &format!("sweep job1 {} -> job1 forget running edges=20", edges.join(" ")));
    assert!(world.loads <= 2, "{} loads", world.loads);
}

#[test]
fn a_job_is_named_as_clients_see_it() {
    let id = JobId(0x2a);
    assert_eq!(id.text(), "job_000000000000002a");
    assert_eq!(JobId::parse(&id.text()), Some(id));
    for bad in ["job_2a", "2a", "job_", "job_zzzzzzzzzzzzzzzz", "job_000000000000002a0", "job_+00000000000002a"] {
        assert_eq!(JobId::parse(bad), None, "{bad}");
    }
}

#[test]
fn a_repair_adds_what_was_missing() {
    check(
        r#"
        relate like post:1 alice        -> active changed count=1
        drift like post:1 5
        count like post:1               -> 6
        repair like post:1 0            -> same
        repair like post:1 -5           -> changed
        count like post:1               -> 1
        drift like post:1 -3
        repair like post:1 3            -> changed
        count like post:1               -> 1
        "#,
    );
}

/// Nothing ever clamps a count: one that would fall below zero is a loud refusal.
#[test]
fn a_count_never_falls_below_zero() {
    check(
        r#"
        relate like post:1 alice        -> active changed count=1
        drift like post:1 -1
        unrelate like post:1 alice      -> internal
        edge like post:1 alice          -> at=1000
        count like post:1               -> 0
        repair like post:1 1            -> changed
        unrelate like post:1 alice      -> inactive changed count=0
        repair like post:1 -1           -> internal
        "#,
    );
}
