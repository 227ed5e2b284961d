//! Idempotency keys: one effect and one answer, however often a request is sent.

use std::sync::Arc;

use serde_json::json;

use crate::command::{Batch, Command, Once, Relate, Toggle};
use crate::prints;
use crate::rows::{Key, ReplayKey, Row};
use crate::tests::world::World;
use crate::tests::{check, script};

#[test]
fn a_toggle_that_is_sent_again_does_not_flip_back() {
    check(
        r#"
        once k1 toggle like post:1 alice    -> active changed count=1
        once k1 toggle like post:1 alice    -> replayed active changed count=1
        count like post:1                   -> 1
        once k2 toggle like post:1 alice    -> inactive changed count=0
        once k1 toggle like post:1 alice    -> replayed active changed count=1
        count like post:1                   -> 0
        "#,
    );
}

#[test]
fn another_request_with_the_same_key_is_told_what_differs() {
    check(
        r#"
        once k toggle like post:1 alice             -> active changed count=1
        once k toggle like post:2 alice             -> idempotency_key_reused object
        once k toggle like post:1 bob               -> idempotency_key_reused subject
        once k relate like post:1 alice             -> idempotency_key_reused op
        # Fields that are missing or new differ too.
        once k toggle like post:1 alice meta={"a":1} -> idempotency_key_reused first
        once m toggle note post:1 bob meta={"a":1}  -> active changed count=1 meta={"a":1}
        once m toggle note post:1 bob               -> idempotency_key_reused first
        # And none of that has spoilt the first answer.
        once k toggle like post:1 alice             -> replayed active changed count=1
        count like post:2                           -> 0
        "#,
    );
}

#[test]
fn a_refusal_is_remembered() {
    check(
        r#"
        once k relate bookmark post:1 alice     -> object_not_found
        put post:1                              -> object changed status=- attributes={} at=1000..1000
        once k relate bookmark post:1 alice     -> replayed object_not_found
        count bookmark post:1                   -> 0
        once k2 relate bookmark post:1 alice    -> active changed count=1
        "#,
    );
}

#[test]
fn a_defect_is_not_remembered() {
    check(
        r#"
        relate like post:1 alice                -> active changed count=1
        drift like post:1 -1
        once k toggle like post:1 alice         -> internal
        once b batch atomic unrelate like post:1 alice -> batch_refused 0 internal
        once c batch each unrelate like post:1 alice -> [internal]
        repair like post:1 1                    -> changed
        once k toggle like post:1 alice         -> inactive changed count=0
        once b batch atomic unrelate like post:1 alice -> [inactive count=0]
        # Commands that stand on their own may have taken effect beside the defect, so these answers are kept.
        once c batch each unrelate like post:1 alice -> replayed [internal]
        "#,
    );
}

#[test]
fn a_request_that_is_itself_wrong_is_not_remembered() {
    check(
        r#"
        once k toggle like post:1 alice kind=wow -> bad_request
        once k toggle like post:1 alice         -> active changed count=1
        once b batch atomic relate like post:1 bob ; relate like post:1 carol kind=wow -> batch_refused 1 bad_request
        once b batch atomic relate like post:1 bob -> [active changed count=2]
        # Commands that stand on their own may have taken effect beside it.
        once c batch each relate like post:1 dave ; relate like post:1 eve kind=wow -> [active changed count=3; bad_request]
        once c batch each relate like post:1 dave ; relate like post:1 eve kind=wow -> replayed [active changed count=3; bad_request]
        "#,
    );
}

#[test]
fn a_key_is_forgotten_when_its_time_is_over() {
    check(
        r#"
        once k toggle like post:1 alice         -> active changed count=1
        clock 60999
        once k toggle like post:1 alice         -> replayed active changed count=1
        # Decided by the stamped time, whether or not anybody has cleaned up.
        clock 61000
        once k toggle like post:1 alice         -> inactive changed count=0
        once k toggle like post:1 alice         -> replayed inactive changed count=0
        "#,
    );
}

#[test]
fn cleaning_up_keeps_what_is_still_needed() {
    check(
        r#"
        once k1 toggle like post:1 alice        -> active changed count=1
        clock 2000
        once k2 toggle like post:2 alice        -> active changed count=1
        clock 61000
        expire k1 k2 k3                         -> changed
        expire k1 k2 k3                         -> same
        once k2 toggle like post:2 alice        -> replayed active changed count=1
        "#,
    );
}

#[test]
fn callers_do_not_meet() {
    let mut world = World::new();
    let toggle = || script::read(&World::new(), &["toggle", "like", "post:1", "alice"]);
    let once = |caller: &str| Once {
        key: ReplayKey { caller: caller.into(), key: "k".into() },
        fields: Arc::new(vec![("op".into(), 1)]),
    };
    assert!(!world.apply(toggle(), Some(once("app"))).replayed);
    assert!(!world.apply(toggle(), Some(once("other"))).replayed);
    assert!(world.apply(toggle(), Some(once("app"))).replayed);
}

/// Every kind of answer comes back exactly as it was first given, down to what is null and what
/// is absent.
#[test]
fn a_replay_is_the_very_same_answer() {
    let lines = [
        "relate like post:1 alice",
        r#"relate note post:1 alice meta={"a":[1,null,2.5]}"#,
        "relate reaction post:1 alice kind=wow",
        "unrelate like post:1 alice",
        "relate nothing post:1 alice",
        "put post:1 status=open",
        "put post:2",
        "delete post:1",
        "suspend alice",
        "relate like post:3 alice",
        "batch each relate like post:1 bob ; relate nothing post:1 bob ; relate like post:1 bob",
        "batch atomic relate like post:2 bob ; relate bookmark post:9 bob",
        "repair like post:1 0",
    ];
    let mut world = World::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let command: Command = script::read(&world, &words);
        let key = ReplayKey { caller: "app".into(), key: line.into() };
        let once = Once { key, fields: Arc::new(vec![("body".into(), 1)]) };
        let first = world.apply(command.clone(), Some(once.clone()));
        let again = world.apply(command, Some(once));
        assert!(again.replayed && !first.replayed, "{line}");
        assert_eq!(again.reply, first.reply, "{line}");
        let json = |reply| serde_json::to_string(reply).unwrap();
        assert_eq!(json(&again.reply), json(&first.reply), "{line}");
    }
}

/// An answer is kept if it is about as large as what was sent: long names come back in it.
#[test]
fn the_answer_to_a_batch_with_long_names_is_kept_whole() {
    let mut world = World::new();
    let name = |prefix: &str, n: usize| format!("{prefix}{n:0>width$}", width = 256 - prefix.len());
    let commands = (0..500).map(|n| {
        Command::from(Relate {
            relation: crate::Name::new("like").unwrap(),
            object: crate::ObjectId::new(&format!("post:{}", name("p", n))).unwrap(),
            subject: crate::SubjectId::new(&name("s", n)).unwrap(),
            kind: None,
            meta: None,
        })
    });
    let command = Command::from(Batch { atomic: true, commands: commands.collect() });
    let once = || Some(Once { key: ReplayKey { caller: "app".into(), key: "k".into() }, fields: Arc::default() });
    let first = world.apply(command.clone(), once());
    let again = world.apply(command, once());
    assert!(again.replayed && first.reply.is_ok());
    assert_eq!(again.reply, first.reply);
}

/// What is remembered is no more than is charged for, whatever was sent, and holds none of its words.
#[test]
fn a_remembered_row_is_bounded_and_names_nobody() {
    let mut world = World::new();
    let meta = |keys: usize| (0..keys).map(|n| (format!("secret{n}"), n.into())).collect::<serde_json::Map<_, _>>();
    let mut bytes_of = |command: Command, body: serde_json::Value, commands: usize| {
        let parts_max = prints::PARTS_MAX.max(commands);
        let fields = prints::prints("salt", "/secret", body.to_string().as_bytes(), parts_max).unwrap();
        let key = ReplayKey { caller: "app".into(), key: body.to_string() };
        let once = Once { key: key.clone(), fields: Arc::new(fields) };
        let bytes_max = once.bytes_max(commands);
        assert!(!world.apply(command.clone(), Some(once.clone())).replayed);
        let Row::Replay(row) = world.rows.get(&Key::Replay(key))? else { panic!("a remembered answer") };
        let text = serde_json::to_string(row).unwrap();
        assert!(!text.contains("secret"), "{text}");
        assert!(text.len() <= bytes_max, "{} bytes were charged, {} are kept", bytes_max, text.len());
        assert!(world.apply(command, Some(once)).replayed);
        Some(text.len())
    };
    let toggle = |subject: &str, keys| {
        Command::from(Toggle {
            relation: crate::Name::new("note").unwrap(),
            object: crate::ObjectId::new("post:secret").unwrap(),
            subject: crate::SubjectId::new(subject).unwrap(),
            kind: None,
            meta: Some(Arc::new(meta(keys))),
        })
    };
    for keys in [1, prints::PARTS_MAX, 900] {
        let bytes = bytes_of(toggle(&format!("secret-{keys}"), keys), json!({"meta": meta(keys)}), 1);
        assert!(bytes.unwrap() < 4_096, "{keys} fields take {bytes:?} bytes");
    }
    assert_eq!(bytes_of(toggle("secret", 100_000), json!({"meta": meta(100_000)}), 1), None, "too large to be done");
    let commands: Vec<Command> = (0..500).map(|n| toggle(&format!("secret-in-batch-{n}"), 40)).collect();
    let body = json!({"commands": (0..500).map(|n| json!({"secret": n})).collect::<Vec<_>>()});
    assert!(bytes_of(Command::from(Batch { atomic: true, commands }), body, 500).is_some());
}
