//! What is attached to an edge: semantics 9.

use super::check;
use crate::limits::META_BYTES_MAX;

#[test]
fn meta_is_held_to_its_declared_shape() {
    check(
        r#"
        relate memo post:1 alice meta={"text":"hello"}                  -> active changed count=1 meta={"text":"hello"}
        relate memo post:2 alice meta={"text":"hello","loud":true}      -> active changed count=1 meta={"loud":true,"text":"hello"}
        relate memo post:3 alice                                        -> bad_request
        relate memo post:3 alice meta={}                                -> bad_request
        relate memo post:3 alice meta={"text":"longer"}                 -> bad_request
        relate memo post:3 alice meta={"text":"ok","loud":"yes"}        -> bad_request
        relate memo post:3 alice meta={"text":"ok","other":1}           -> bad_request
        count memo post:3                                               -> 0
        "#,
    );
}

#[test]
fn meta_of_an_edge_does_not_change() {
    check(
        r#"
        relate like post:1 alice meta={"a":1}       -> active changed count=1 meta={"a":1}
        relate like post:1 alice meta={"a":1}       -> active count=1 meta={"a":1}
        relate like post:1 alice meta={"a":2}       -> immutable
        relate like post:1 alice meta={}            -> immutable
        # Nothing said about meta is not another meta.
        relate like post:1 alice                    -> active count=1 meta={"a":1}
        edge like post:1 alice                      -> at=1000 meta={"a":1}
        unrelate like post:1 alice                  -> inactive changed count=0
        relate like post:1 alice meta={"a":2}       -> active changed count=1 meta={"a":2}
        "#,
    );
}

#[test]
fn no_meta_and_empty_meta_are_the_same() {
    check(
        r#"
        relate like post:1 alice                    -> active changed count=1
        relate like post:1 alice meta={}            -> active count=1
        relate like post:2 alice meta={}            -> active changed count=1
        relate like post:2 alice                    -> active count=1
        edge like post:2 alice                      -> at=1000
        "#,
    );
}

#[test]
fn mutable_meta_is_replaced_and_the_time_kept() {
    check(
        r#"
        relate note post:1 alice meta={"a":1}       -> active changed count=1 meta={"a":1}
        relate note post:1 bob                      -> active changed count=2
        clock 2000
        relate note post:1 alice meta={"b":2}       -> active changed count=2 meta={"b":2}
        relate note post:1 alice meta={"b":2}       -> active count=2 meta={"b":2}
        relate note post:1 alice                    -> active count=2 meta={"b":2}
        edge note post:1 alice                      -> at=1000 meta={"b":2}
        subjects note post:1                        -> bob alice
        relate note post:1 alice meta={}            -> active changed count=2
        "#,
    );
}

#[test]
fn another_kind_takes_its_own_meta() {
    check(
        r#"
        relate reaction post:1 alice kind=like meta={"a":1}     -> active changed count=1 kind=like meta={"a":1}
        relate reaction post:1 alice kind=like meta={"a":2}     -> immutable
        relate reaction post:1 alice kind=love meta={"a":2}     -> active changed count=1 kind=love meta={"a":2}
        relate reaction post:1 alice kind=wow                   -> active changed count=1 kind=wow
        "#,
    );
}

#[test]
fn meta_is_bounded_whatever_its_shape() {
    let fits = "x".repeat(META_BYTES_MAX - r#"{"a":""}"#.len());
    let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(16), "]".repeat(16));
    check(&format!(
        r#"
        relate like post:1 alice meta={{"a":"{fits}x"}}     -> too_large
        relate like post:1 alice meta={deep}                -> bad_request
        relate like post:1 alice meta={{"a":"{fits}"}}      -> active changed count=1 meta={{"a":"{fits}"}}
        "#
    ));
}
