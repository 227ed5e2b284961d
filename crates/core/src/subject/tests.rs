//! A subject as a whole: forgotten, suspended, restored. Semantics 11.

use serde_json::json;

use crate::command::{Attend, ChangeScore, Command, Forget, ScoreChange, Sweep};
use crate::day::Day;
use crate::id::{Name, SubjectId};
use crate::reply::Reply;
use crate::rows::Key;
use crate::tests::counting::{name, told, world};
use crate::tests::world::World;
use crate::tests::{check, script};
use crate::time::Stamp;

#[test]
fn forgetting_removes_everything_until_now_and_nothing_later() {
    check(
        r#"
        relate like post:1 alice                -> active changed count=1
        relate pin post:1 alice                 -> active changed count=1
        relate like post:1 bob                  -> active changed count=2
        forget alice                            -> job1 forget running edges=0
        # A new life begins at once, in the same millisecond.
        relate like post:2 alice                -> active changed count=1
        sweep job1 like/post:2/alice like/post:1/alice pin/post:1/alice -> job1 forget running edges=2
        sweep job1                              -> job1 forget done edges=2
        objects like alice                      -> post:2
        count like post:1                       -> 1
        count pin post:1                        -> 0
        total pin alice                         -> 0
        subjects like post:1                    -> bob
        "#,
    );
}

#[test]
fn forgetting_somebody_unknown_is_a_job_with_nothing_to_do() {
    check(
        r#"
        forget nobody                           -> job1 forget running edges=0
        sweep job1                              -> job1 forget done edges=0
        "#,
    );
}

#[test]
fn suspending_hides_and_restoring_brings_back_with_the_times() {
    check(
        r#"
        relate like post:1 alice                -> active changed count=1
        relate reaction post:1 alice kind=wow   -> active changed count=1 kind=wow
        relate like post:1 bob                  -> active changed count=2
        clock 2000
        suspend alice                           -> job1 hide running edges=0
        sweep job1 like/post:1/alice reaction/post:1/alice -> job1 hide running edges=2
        sweep job1                              -> job1 hide done edges=2
        subjects like post:1                    -> bob
        hidden like alice                       -> post:1
        count like post:1                       -> 1
        kind reaction post:1 wow                -> 0
        # Hidden is not lost: it still counts against the subject's own limit.
        total like alice                        -> 1
        edge like post:1 alice                  -> at=1000 hidden
        clock 3000
        restore alice                           -> job2 show running edges=0
        sweep job2 like/post:1/alice reaction/post:1/alice -> job2 show running edges=2
        sweep job2                              -> job2 show done edges=2
        subjects like post:1                    -> bob alice
        count like post:1                       -> 2
        kind reaction post:1 wow                -> 1
        edge like post:1 alice                  -> at=1000
        "#,
    );
}

#[test]
fn a_suspended_subject_makes_nothing_and_may_remove() {
    check(
        r#"
        relate like post:1 alice                -> active changed count=1
        relate like post:2 alice                -> active changed count=1
        suspend alice                           -> job1 hide running edges=0
        relate like post:3 alice                -> forbidden suspended
        relate like post:1 alice                -> forbidden suspended
        toggle like post:3 alice                -> forbidden suspended
        relate like post:3 bob                  -> active changed count=1
        sweep job1 like/post:1/alice            -> job1 hide running edges=1
        # One is hidden and was counted no more, the other is still counted.
        unrelate like post:1 alice              -> inactive changed count=0
        toggle like post:2 alice                -> inactive changed count=0
        total like alice                        -> 0
        "#,
    );
}

#[test]
fn an_answer_that_was_lost_is_given_again() {
    check(
        r#"
        restore alice       -> conflict
        suspend alice       -> job1 hide running edges=0
        suspend alice       -> job1 hide running edges=0
        sweep job1          -> job1 hide done edges=0
        suspend alice       -> job1 hide done edges=0
        restore alice       -> job2 show running edges=0
        restore alice       -> job2 show running edges=0
        sweep job2          -> job2 show done edges=0
        restore alice       -> job2 show done edges=0
        # The same job again, for another suspension.
        suspend alice       -> job1 hide running edges=0
        restore alice       -> job2 show running edges=0
        "#,
    );
}

#[test]
fn relating_right_after_a_restore_shows_the_edge_with_its_time() {
    check(
        r#"
        relate note post:1 alice meta={"a":1}   -> active changed count=1 meta={"a":1}
        relate reaction post:1 alice kind=like  -> active changed count=1 kind=like
        suspend alice                           -> job1 hide running edges=0
        sweep job1 note/post:1/alice reaction/post:1/alice -> job1 hide running edges=2
        clock 2000
        restore alice                           -> job2 show running edges=0
        # The job has not come to these yet.
        relate note post:1 alice                -> active changed count=1 meta={"a":1}
        edge note post:1 alice                  -> at=1000 meta={"a":1}
        relate reaction post:1 alice kind=wow   -> active changed count=1 kind=wow
        kind reaction post:1 like               -> 0
        sweep job2 note/post:1/alice reaction/post:1/alice -> job2 show running edges=0
        count note post:1                       -> 1
        "#,
    );
}

#[test]
fn forgetting_a_suspended_subject_removes_what_is_hidden_and_leaves_it_suspended() {
    check(
        r#"
        relate like post:1 alice                -> active changed count=1
        relate like post:2 alice                -> active changed count=1
        suspend alice                           -> job1 hide running edges=0
        sweep job1 like/post:1/alice            -> job1 hide running edges=1
        forget alice                            -> job2 forget running edges=0
        relate like post:3 alice                -> forbidden suspended
        sweep job1 like/post:2/alice            -> job1 hide running edges=2
        sweep job2 like/post:1/alice like/post:2/alice -> job2 forget running edges=2
        sweep job2                              -> job2 forget done edges=2
        total like alice                        -> 0
        # Forgetting oneself is no way out.
        relate like post:3 alice                -> forbidden suspended
        restore alice                           -> job3 show running edges=0
        relate like post:3 alice                -> active changed count=1
        "#,
    );
}

#[test]
fn what_was_forgotten_is_gone_before_the_job_comes_to_it() {
    check(
        r#"
        relate like post:1 alice                -> active changed count=1
        relate like post:2 alice                -> active changed count=1
        relate like post:3 alice                -> active changed count=1
        relate pin post:1 alice                 -> active changed count=1
        relate pin post:4 alice                 -> active changed count=1
        clock 2000
        forget alice                            -> job1 forget running edges=0
        # The clock of another server may be behind: what comes is later all the same.
        clock 500
        relate like post:1 alice                -> active changed count=1
        edge like post:1 alice                  -> at=2000
        relate like post:1 alice                -> active count=1
        unrelate like post:2 alice              -> inactive count=0
        toggle like post:3 alice                -> active changed count=1
        # The old ones do not count against the limit; the new ones do.
        relate pin post:2 alice                 -> active changed count=1
        relate pin post:5 alice                 -> active changed count=1
        relate pin post:3 alice                 -> limit_exceeded
        sweep job1 like/post:1/alice like/post:2/alice like/post:3/alice pin/post:1/alice pin/post:2/alice -> job1 forget running edges=1
        relate pin post:3 alice                 -> limit_exceeded
        sweep job1 pin/post:4/alice             -> job1 forget running edges=2
        relate pin post:3 alice                 -> limit_exceeded
        sweep job1                              -> job1 forget done edges=2
        objects like alice                      -> post:3 post:1
        total pin alice                         -> 2
        relate pin post:3 alice                 -> limit_exceeded
        "#,
    );
}

#[test]
fn forgetting_again_is_the_same_job_and_takes_more() {
    check(
        r#"
        relate like post:1 alice                -> active changed count=1
        forget alice                            -> job1 forget running edges=0
        sweep job1 like/post:1/alice            -> job1 forget running edges=1
        relate like post:2 alice                -> active changed count=1
        forget alice                            -> job1 forget running edges=1
        relate like post:3 alice                -> active changed count=1
        sweep job1 like/post:2/alice like/post:3/alice -> job1 forget running edges=2
        sweep job1                              -> job1 forget done edges=2
        objects like alice                      -> post:3
        # Begun anew when it has ended, under the same name.
        forget alice                            -> job1 forget running edges=0
        "#,
    );
}

#[test]
fn showing_leaves_what_was_forgotten_where_its_job_looks_last() {
    check(
        r#"
        relate like post:1 alice                -> active changed count=1
        suspend alice                           -> job1 hide running edges=0
        sweep job1 like/post:1/alice            -> job1 hide running edges=1
        restore alice                           -> job2 show running edges=0
        forget alice                            -> job3 forget running edges=0
        sweep job2 like/post:1/alice            -> job2 show running edges=0
        hidden like alice                       -> post:1
        sweep job3 like/post:1/alice            -> job3 forget running edges=1
        "#,
    );
}

/// Nobody could suspend or forget a subject whose name means whoever asks.
#[test]
fn nobody_is_called_me() {
    check(
        r#"
        relate like post:1 me                   -> bad_request
        toggle like post:1 me                   -> bad_request
        batch atomic relate like post:1 alice ; relate like post:1 me -> batch_refused 1 bad_request
        batch each relate like post:1 alice ; toggle like post:1 me -> [active changed count=1; bad_request]
        # One from before can be taken away.
        unrelate like post:1 me                 -> inactive count=1
        forget me                               -> job1 forget running edges=0
        "#,
    );
    let (name, me) = (|text: &str| Name::new(text).unwrap(), SubjectId::new("me").unwrap());
    let attend = |present| Command::from(Attend { sheet: name("daily"), day: None, subject: me.clone(), present });
    let score = |change| Command::from(ChangeScore { board: name("points"), member: me.clone(), change });
    let code = |command| World::new().apply(command, None).reply.unwrap_err().code();
    for refused in [attend(true), score(ScoreChange::By(1)), score(ScoreChange::To(1))] {
        assert_eq!(code(refused), "bad_request");
    }
    let relate = script::read(&World::new(), &["relate", "like", "post:1", "me2"]);
    assert!(World::new().apply(relate, None).reply.is_ok());
}

#[test]
fn whoever_is_forgotten_was_never_there() {
    let mut world = world();
    let days = 150;
    for day in 0..days {
        let command = Command::from(Attend {
            sheet: name("daily"),
            day: Some(Day(day)),
            subject: crate::SubjectId::new("ann").unwrap(),
            present: true,
        });
        world.apply(command, None).reply.unwrap();
    }
    world.now_ms = 1_000 * 86_400_000;
    for board in ["points", "dense", "round"] {
        let score = |who: &str| json!({"op": "score", "board": board, "member": who, "score": 5});
        told(&mut world, score("ann"));
        told(&mut world, score("bob"));
    }
    let forget = Command::from(Forget { subject: crate::SubjectId::new("ann").unwrap() });
    let Ok(Reply::Job(job)) = world.apply(forget, None).reply else { panic!() };
    let job = crate::rows::JobId::parse(&job.job).unwrap();
    let mut steps = 0;
    loop {
        steps += 1;
        let sweep = Command::from(Sweep { job, before: Stamp(u64::MAX), edges: Vec::new() });
        let Ok(Reply::Job(left)) = world.apply(sweep, None).reply else { panic!() };
        if left.finished_at.is_some() {
            break;
        }
    }
    assert!(steps > 1, "many days go in several steps");
    let named = |key: &Key| match key {
        Key::Attendee((_, who)) => who.as_str() == "ann",
        Key::Score(key) => key.member.as_str() == "ann",
        Key::Day(..) | Key::Chunk(_) => true,
        _ => false,
    };
    assert_eq!(world.rows.keys().find(|key| named(key)), None);
    assert_eq!(told(&mut world, json!({"op": "score", "board": "dense", "member": "bob", "by": 1}))["rank"], 1);
}
