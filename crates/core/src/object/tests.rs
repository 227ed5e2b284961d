//! The registry, and the relations that ask it: semantics 7, and `allow_self` of 10.

use crate::tests::check;

#[test]
fn an_object_is_registered_changed_and_kept() {
    check(
        r#"
        put post:1 status=draft                         -> object changed status=draft attributes={} at=1000..1000
        clock 2000
        put post:1 status=draft                         -> object status=draft attributes={} at=1000..1000
        put post:1 status=open                          -> object changed status=open attributes={} at=1000..2000
        put post:1 status=open attributes={"a":1}       -> object changed status=open attributes={"a":1} at=1000..2000
        put post:1                                      -> object changed status=- attributes={} at=1000..2000
        "#,
    );
}

#[test]
fn what_is_put_is_bounded() {
    let (long, bell) = ("x".repeat(129), '\u{7}');
    check(&format!(
        r#"
        put post:1 status={long}                        -> bad_request
        put post:1 status=                              -> bad_request
        put post:1 status=a{bell}b                      -> bad_request
        put post:1 attributes={{"a":"{}"}}              -> too_large
        relate bookmark post:1 alice                    -> object_not_found
        "#,
        "x".repeat(16 * 1024)
    ));
}

#[test]
fn a_relation_may_want_its_object_registered() {
    check(
        r#"
        relate bookmark post:1 alice    -> object_not_found
        toggle bookmark post:1 alice    -> object_not_found
        put post:1                      -> object changed status=- attributes={} at=1000..1000
        relate bookmark post:1 alice    -> active changed count=1
        delete post:1                   -> job1 clear running edges=0
        # Gone at once: nobody new gets in while its edges are being removed.
        relate bookmark post:1 bob      -> object_not_found
        relate bookmark post:1 alice    -> object_not_found
        unrelate bookmark post:1 alice  -> inactive changed count=0
        "#,
    );
}

#[test]
fn deleting_an_object_removes_its_edges_and_counts() {
    check(
        r#"
        relate like post:1 alice                -> active changed count=1
        relate reaction post:1 bob kind=wow     -> active changed count=1 kind=wow
        relate like post:2 alice                -> active changed count=1
        # Also an object that was never registered: its edges are there all the same.
        delete post:1                           -> job1 clear running edges=0
        clock 2000
        relate like post:1 carol                -> active changed count=2
        sweep job1 like/post:1/carol like/post:1/alice reaction/post:1/bob -> job1 clear running edges=2
        sweep job1                              -> job1 clear done edges=2
        count like post:1                       -> 1
        subjects like post:1                    -> carol
        kind reaction post:1 wow                -> 0
        count like post:2                       -> 1
        "#,
    );
}

#[test]
fn an_object_registered_again_is_new() {
    check(
        r#"
        put post:1 status=open          -> object changed status=open attributes={} at=1000..1000
        delete post:1                   -> job1 clear running edges=0
        clock 2000
        put post:1 status=open          -> object changed status=open attributes={} at=2000..2000
        "#,
    );
}

#[test]
fn one_does_not_follow_oneself() {
    check(
        r#"
        relate follow user:alice alice                  -> forbidden
        relate follow user:alice bob                    -> active changed count=1
        put post:1 attributes={"owner":"alice"}         -> object changed status=- attributes={"owner":"alice"} at=1000..1000
        relate follow post:1 alice                      -> forbidden
        toggle follow post:1 alice                      -> forbidden
        relate follow post:1 bob                        -> active changed count=1
        # An owner that is not a text owns nothing, and neither does one that is only like it.
        put post:2 attributes={"owner":["alice"]}       -> object changed status=- attributes={"owner":["alice"]} at=1000..1000
        relate follow post:2 alice                      -> active changed count=1
        relate follow user:alice2 alice                 -> active changed count=1
        # Where it is allowed, which is the default, nobody looks.
        relate like post:1 alice                        -> active changed count=1
        "#,
    );
}
