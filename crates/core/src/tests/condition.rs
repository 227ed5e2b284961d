//! Configured conditions: what is false, missing or in error denies. Semantics 10.

use super::check;

#[test]
fn a_condition_sees_the_object_as_it_is_decided_on() {
    check(
        r#"
        # Not registered: its status is null, which is not 'open'.
        relate vote post:1 alice meta={"weight":1}  -> condition_failed
        put post:1 status=closed                    -> object changed status=closed attributes={} at=1000..1000
        relate vote post:1 alice meta={"weight":1}  -> condition_failed
        put post:1 status=open                      -> object changed status=open attributes={} at=1000..1000
        relate vote post:1 alice meta={"weight":1}  -> active changed count=1 meta={"weight":1}
        relate vote post:1 bob meta={"weight":3}    -> condition_failed
        "#,
    );
}

#[test]
fn a_condition_in_error_denies() {
    check(
        r#"
        put post:1 status=open                      -> object changed status=open attributes={} at=1000..1000
        relate vote post:1 alice                    -> condition_failed
        relate vote post:1 alice meta={"weight":"1"} -> condition_failed
        toggle vote post:1 alice                    -> condition_failed
        count vote post:1                           -> 0
        "#,
    );
}

#[test]
fn removing_has_a_condition_of_its_own() {
    check(
        r#"
        put post:1 status=open                      -> object changed status=open attributes={} at=1000..1000
        relate vote post:1 alice meta={"weight":1}  -> active changed count=1 meta={"weight":1}
        relate vote post:1 bob meta={"weight":2}    -> active changed count=2 meta={"weight":2}
        put post:1 status=closed                    -> object changed status=closed attributes={} at=1000..1000
        unrelate vote post:1 bob                    -> condition_failed
        toggle vote post:1 bob                      -> condition_failed
        unrelate vote post:1 alice                  -> inactive changed count=1
        # Without an edge there is no weight to compare.
        unrelate vote post:1 carol                  -> condition_failed
        "#,
    );
}

#[test]
fn a_condition_sees_who_asks_and_when() {
    check(
        r#"
        put seat:1 attributes={"free":true}         -> object changed status=- attributes={"free":true} at=1000..1000
        # Nobody in particular asks.
        relate claim seat:1 alice                   -> condition_failed
        as {"kind":"user","subject":"bob"}
        relate claim seat:1 alice                   -> condition_failed
        as {"kind":"user","subject":"alice"}
        relate claim seat:1 alice                   -> active changed count=1
        clock 4999
        unrelate claim seat:1 alice                 -> inactive changed count=0
        relate claim seat:1 alice                   -> active changed count=1
        clock 5000
        unrelate claim seat:1 alice                 -> condition_failed
        "#,
    );
}

#[test]
fn a_missing_object_is_named_before_its_condition() {
    check(
        r#"
        as {"kind":"user","subject":"alice"}
        relate claim seat:9 alice                   -> object_not_found
        "#,
    );
}
