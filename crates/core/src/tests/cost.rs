//! The seeds' table of costs: logical rows read and written for the caller.

use super::check;

#[test]
fn a_like_costs_what_the_seed_says() {
    check(
        r#"
        cost relate like post:1 alice       -> reads=2 writes=2
        cost relate like post:1 alice       -> reads=1 writes=0
        cost unrelate like post:1 alice     -> reads=2 writes=2
        cost unrelate like post:1 alice     -> reads=1 writes=0
        cost toggle like post:1 alice       -> reads=2 writes=2
        cost toggle like post:1 alice       -> reads=2 writes=2
        "#,
    );
}

#[test]
fn a_bot_pays_for_one_like() {
    let mut script = String::from("cost relate like post:1 bot -> reads=2 writes=2\n");
    script.push_str(&"cost relate like post:1 bot -> reads=1 writes=0\n".repeat(99));
    script.push_str("count like post:1 -> 1");
    check(&script);
}

#[test]
fn two_users_pay_for_their_own() {
    check(
        r#"
        cost relate like post:1 alice       -> reads=2 writes=2
        cost relate like post:1 bob         -> reads=2 writes=2
        count like post:1                   -> 2
        "#,
    );
}

#[test]
fn what_a_relation_asks_for_is_paid_for_once() {
    check(
        r#"
        # A limit reads and writes the subject's own total.
        cost relate pin post:1 alice                            -> reads=3 writes=3
        cost unrelate pin post:1 alice                          -> reads=3 writes=3
        # An existence check is one document read.
        put post:1 status=open attributes={"free":true}         -> object changed status=open attributes={"free":true} at=1000..1000
        cost relate bookmark post:1 alice                       -> reads=3 writes=2
        cost relate vote post:1 alice meta={"weight":1}         -> reads=3 writes=2
        # Also when a condition looks at the same object.
        as {"kind":"user","subject":"alice"}
        cost relate claim post:1 alice                          -> reads=3 writes=2
        # A replacement is one edge and one count; new meta is the edge alone.
        cost relate reaction post:1 alice kind=like             -> reads=2 writes=2
        cost relate reaction post:1 alice kind=wow              -> reads=2 writes=2
        cost relate note post:1 alice meta={"a":1}              -> reads=2 writes=2
        cost relate note post:1 alice meta={"a":2}              -> reads=1 writes=1
        "#,
    );
}

#[test]
fn a_refusal_and_a_replay_cost_next_to_nothing() {
    check(
        r#"
        cost relate nothing post:1 alice        -> reads=0 writes=0
        cost relate bookmark post:9 alice       -> reads=0 writes=0
        cost once k relate like post:1 alice    -> reads=2 writes=2
        cost once k relate like post:1 alice    -> reads=0 writes=0
        "#,
    );
}

#[test]
fn a_batch_costs_what_its_commands_do() {
    check(
        r#"
        cost batch atomic relate like post:1 alice ; relate like post:1 alice ; relate like post:1 bob -> reads=5 writes=4
        "#,
    );
}
