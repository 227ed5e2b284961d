//! API keys: made once, revoked once, kept for the record.

use crate::command::{Command, PutApiKey, PutSigner, RevokeApiKey};
use crate::limits::LABEL_BYTES_MAX;
use crate::reply::{Done, Reply};
use crate::rows::{ApiKey, Key, Role, Row, Signer, Signers};
use crate::tests::world::World;
use crate::time::Timestamp;

fn put(id: &str, name: &str) -> Command {
    let key = ApiKey {
        hash: format!("hash of {id}"),
        role: Role::Service,
        name: name.into(),
        created_at: Timestamp(1_000),
        revoked_at: None,
    };
    Command::from(PutApiKey { id: id.into(), key })
}

fn revoke(id: &str) -> Command {
    Command::from(RevokeApiKey { id: id.into() })
}

/// `changed`, `same`, or the code of the refusal.
fn outcome(world: &mut World, command: Command) -> &'static str {
    match world.apply(command, None).reply {
        Ok(Reply::Done(Done { changed: true })) => "changed",
        Ok(Reply::Done(Done { changed: false })) => "same",
        Ok(other) => panic!("{other:?}"),
        Err(refusal) => refusal.code().name(),
    }
}

#[test]
fn a_key_is_made_once_and_revoked_once() {
    let mut world = World::new();
    assert_eq!(outcome(&mut world, revoke("k1")), "not_found");
    assert_eq!(outcome(&mut world, put("k1", "backend")), "changed");
    assert_eq!(outcome(&mut world, put("k1", "backend")), "conflict");
    world.now_ms = 2_000;
    assert_eq!(outcome(&mut world, revoke("k1")), "changed");
    world.now_ms = 3_000;
    assert_eq!(outcome(&mut world, revoke("k1")), "same");
    // Its id is spent, and it is still known what it was and when it ended.
    assert_eq!(outcome(&mut world, put("k1", "backend")), "conflict");
    match &world.rows[&Key::ApiKey("k1".into())] {
        Row::ApiKey(key) => assert_eq!((key.name.as_str(), key.revoked_at), ("backend", Some(Timestamp(2_000)))),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_name_has_a_limit() {
    let mut world = World::new();
    assert_eq!(outcome(&mut world, put("k1", &"x".repeat(LABEL_BYTES_MAX + 1))), "bad_request");
    assert_eq!(outcome(&mut world, put("k1", "a\0b")), "bad_request", "not every store can hold it");
    assert_eq!(outcome(&mut world, put("k1", &"x".repeat(LABEL_BYTES_MAX))), "changed");
}

#[test]
fn an_id_that_no_store_takes_is_nobodys() {
    let long = "x".repeat(LABEL_BYTES_MAX + 1);
    for id in ["", "a\0b", "a b", "\u{7f}", "ключ", &long] {
        let mut world = World::new();
        assert_eq!(outcome(&mut world, revoke(id)), "not_found", "{id:?}");
        assert_eq!(world.loads, 0, "the store is not asked for {id:?}");
        assert_eq!(outcome(&mut world, put(id, "backend")), "bad_request", "{id:?}");
    }
}

fn sign_with(kid: &str, after: Option<&str>, at_once: bool) -> Command {
    let (public, private) = (format!("public-{kid}"), format!("private-{kid}"));
    let signer = Signer { kid: kid.into(), public, private, created_at: Timestamp(0), signs_from: Timestamp(0) };
    Command::from(PutSigner { signer, after: after.map(Into::into), at_once })
}

#[test]
fn of_those_who_make_a_signing_key_at_once_one_does() {
    let mut world = World::new();
    assert_eq!(outcome(&mut world, sign_with("a", None, false)), "changed");
    assert_eq!(outcome(&mut world, sign_with("b", None, false)), "same", "a was first");
    assert_eq!(outcome(&mut world, sign_with("c", Some("a"), false)), "changed");
    assert_eq!(outcome(&mut world, sign_with("d", Some("a"), false)), "same", "c was first");
    assert_eq!(outcome(&mut world, sign_with("", Some("c"), false)), "bad_request");
    assert_eq!(outcome(&mut world, sign_with("e", Some("c"), true)), "changed");
}

#[test]
fn a_signing_key_is_shown_before_it_signs() {
    let signer = |kid: &str, from| Signer {
        kid: kid.into(),
        public: "p".into(),
        private: "s".into(),
        created_at: Timestamp(0),
        signs_from: Timestamp(from),
    };
    let signers = Signers { items: vec![signer("a", 0), signer("b", 1_000)] };
    let at = |time| signers.at(Timestamp(time)).map(|signer| signer.kid.as_str());
    assert_eq!((at(0), at(999), at(1_000), at(5_000)), (Some("a"), Some("a"), Some("b"), Some("b")));
    assert_eq!(Signers::default().at(Timestamp(1)), None);
}
