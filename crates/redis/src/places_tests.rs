//! Tests of `places.rs`.

use tally_core::rows::{
    BoardKey, ChunkKey, CountKey, JobId, LimitKey, ReplayKey, ScoreKey, TicketKey, TotalKey, TotalOf,
};
use tally_core::time::Timestamp;
use tally_core::{Day, KeyId, Name, ObjectId, SubjectId};

use super::*;
use crate::slots::slot_of;

fn keys() -> Keys {
    Keys::new("tally", true)
}

fn every_kind() -> Vec<(Key, &'static str, Option<&'static str>)> {
    let name = |text: &str| Name::new(text).unwrap();
    let (daily, alice) = (name("daily"), SubjectId::new("alice").unwrap());
    let views = CountKey { name: name("views"), key: KeyId::new("post:}").unwrap() };
    let board = BoardKey { board: name("weekly"), season: Timestamp(1_700_000_000_000), levels: true };
    let replay = ReplayKey { caller: "key:a".into(), key: "k\"1".into() };
    vec![
        (Key::Object(ObjectId::new("post:42").unwrap()), "tally:object:{post:42}", None),
        (Key::Subject(alice.clone()), "tally:subject:{alice}", None),
        (Key::Replay(replay), "tally:replay:{r26}", Some("[\"key:a\",\"k\\\"1\"]")),
        (Key::Job(JobId(7)), "tally:job:{sys}", Some("job_0000000000000007")),
        (Key::ApiKey("k1".into()), "tally:api_key:{sys}", Some("k1")),
        (Key::Names, "tally:declared:{sys}", Some("")),
        (Key::Counter(views.clone()), "tally:counter:{post:}}", Some("views")),
        (Key::Touched(views.clone()), "tally:counter_last:{post:}}", Some("views")),
        (Key::Unique(views), "tally:unique_count:{post:}}", Some("views")),
        (Key::Limit(LimitKey { name: "posting".into(), key: String::new() }), "tally:rate_limit:{%}", Some("posting")),
        (Key::Sheet(daily.clone()), "tally:attendance_sheet:{daily}", None),
        (Key::Day((daily.clone(), Day(0))), "tally:attendance_day:{daily}", Some("1970-01-01")),
        (
            Key::Chunk(ChunkKey { sheet: daily.clone(), day: Day(0), chunk: 9 }),
            "tally:attendance_chunk:{daily}:1970-01-01",
            Some("9"),
        ),
        (Key::Attendee((daily, alice.clone())), "tally:attendee:{daily}", Some("alice")),
        (Key::Board(name("weekly")), "tally:board:{weekly}", None),
        (
            Key::Score(ScoreKey { board, member: alice }),
            "tally:score:{weekly}:2023-11-14T22:13:20.000Z:true",
            Some("alice"),
        ),
        (
            Key::Ticket(TicketKey { room: name("sale"), seq: tally_core::rows::Seq::Given(42) }),
            "tally:ticket:{sale}",
            Some("42"),
        ),
    ]
}

#[test]
fn rows_are_where_the_plan_says_and_are_found_again() {
    let keys = keys();
    for (key, at, field) in every_kind() {
        let place = keys.place(&key);
        assert_eq!((place.clone().home().as_str(), place.field().as_deref()), (at, field));
        assert_eq!(due_key(key.kind(), &due_member(&key)).as_ref(), Some(&key));
        if let Some(order) = key.order() {
            assert_eq!(keys.hash_of(&order), at);
            assert_eq!(order.key(field.unwrap()).as_ref(), Some(&key));
            assert_eq!(slot_of(&keys.order(&order)), slot_of(at));
        }
        match entry_of(&key).map(|entry| keys.listed(&entry).unwrap()) {
            Some(Listed::Row(listed)) => assert_eq!(listed, key),
            Some(Listed::Hash(hash)) => {
                assert_eq!((hash.key.as_str(), hash.key_of(field.unwrap())), (at, Some(key)));
            }
            None => {
                assert!(keys.hashes(key.kind()).iter().any(|hash| hash == at), "{at}");
                assert_eq!(key_in(key.kind(), field.unwrap()), Some(key));
            }
        }
    }
}

#[test]
fn numbers_stand_with_the_rows_that_go_with_them() {
    let keys = keys();
    let counter = CountKey { name: Name::new("views").unwrap(), key: KeyId::new("post:42").unwrap() };
    let total = TotalKey::Counter(counter.clone());
    let TotalOf::Number(number) = total.of() else { panic!("a counter is a number") };
    let at = keys.number(&number);
    assert_eq!(keys.place(&Key::Counter(counter.clone())), Place::Field(at.hash, at.field));
    assert_eq!(at.entry, entry_of(&Key::Counter(counter)));
    let sheet = Name::new("daily").unwrap();
    let present = TotalKey::Present { sheet: sheet.clone(), day: Day(0) };
    let TotalOf::Number(number) = present.of() else { panic!("a number") };
    let at = keys.number(&number);
    assert_eq!((at.hash.as_str(), at.field.as_str()), ("tally:attendance_present:{daily}", "1970-01-01"));
    assert_eq!(slot_of(&at.hash), slot_of(&keys.place(&Key::Sheet(sheet)).home()));
}
