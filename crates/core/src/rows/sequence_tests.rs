//! What is filled in at a commit, and what is not.

use super::*;
use crate::id::{Name, SubjectId};

fn room() -> Name {
    Name::new("sale").unwrap()
}

fn subject() -> SubjectId {
    SubjectId::new("ann").unwrap()
}

fn ticket(seq: Seq) -> (Key, Change) {
    let ticket = Ticket::new(subject(), "t", TicketState::Waiting, Timestamp(1), Timestamp(2));
    (Key::Ticket(TicketKey { room: room(), seq }), Change { before: None, after: Some(Row::Ticket(ticket)) })
}

fn entry(seq: Seq, before: Option<Seq>) -> (Key, Change) {
    let key = EntryKey { room: room(), subject: subject(), token: "t".into() };
    (Key::Entry(key), Change { before: before.map(Row::Entry), after: Some(Row::Entry(seq)) })
}

fn taking(count: u32, rows: Vec<(Key, Change)>) -> Changes {
    Changes { rows, numbers: vec![(crate::room::rows::queue(&room()), count)], ..Changes::default() }
}

#[test]
fn keys_and_columns_get_the_same_numbers() {
    let changes = taking(2, vec![ticket(Seq::Taken(1)), entry(Seq::Taken(1), None), ticket(Seq::Taken(0))]);
    let given = changes.given(&[40]).unwrap().unwrap();
    assert_eq!(given.rows, [ticket(Seq::Given(41)), entry(Seq::Given(41), None), ticket(Seq::Given(40))]);
}

#[test]
fn what_is_known_stays_as_it_is() {
    let changes = taking(1, vec![ticket(Seq::Given(3)), entry(Seq::Given(9), Some(Seq::Given(2)))]);
    assert_eq!(changes.given(&[40]), Ok(None));
    let changes = taking(1, vec![ticket(Seq::Given(3)), entry(Seq::Taken(0), Some(Seq::Given(2)))]);
    let given = changes.given(&[40]).unwrap().unwrap();
    assert_eq!(given.rows, [ticket(Seq::Given(3)), entry(Seq::Given(40), Some(Seq::Given(2)))]);
}

#[test]
fn a_number_that_is_not_taken_is_refused() {
    for changes in [
        taking(1, vec![ticket(Seq::Taken(1))]),
        taking(1, vec![entry(Seq::Taken(1), None)]),
        Changes { rows: vec![ticket(Seq::Taken(0))], ..Changes::default() },
        Changes {
            numbers: vec![(SequenceKey { home: "other".into(), name: "queue".into() }, 1)],
            rows: vec![entry(Seq::Taken(0), None)],
            ..Changes::default()
        },
    ] {
        let first: Vec<u64> = changes.numbers.iter().map(|_| 1).collect();
        assert!(changes.given(&first).is_err() && changes.check_numbers().is_err(), "{changes:?}");
    }
}

#[test]
fn every_kind_that_carries_numbers_has_the_home_of_its_sequence() {
    for kind in RowKind::ALL {
        if kind.sequence().is_some() {
            let declared = kind.declared();
            assert!(matches!(declared.home, Home::With(_)), "{kind:?}");
            let numbers = declared.key.iter().chain(declared.columns).filter(|(_, of)| *of == Type::Number);
            assert!(numbers.count() > 0, "{kind:?}");
        }
    }
    let sequence = crate::room::rows::queue(&room());
    assert_eq!(ticket(Seq::Given(1)).0.sequence().as_ref(), Some(&sequence));
    assert_eq!(entry(Seq::Given(1), None).0.sequence().as_ref(), Some(&sequence));
    assert_eq!(Key::Sheet(room()).sequence(), None);
}

#[test]
fn a_sequence_begins_with_one_and_ends_somewhere() {
    assert_eq!(SequenceKey::take(SequenceKey::last(None), 3), Some((1, Row::Sequence(3))));
    assert_eq!(SequenceKey::take(3, 1), Some((4, Row::Sequence(4))));
    assert_eq!(SequenceKey::take(NUMBER_MAX - 1, 1), Some((NUMBER_MAX, Row::Sequence(NUMBER_MAX))));
    assert_eq!(SequenceKey::take(NUMBER_MAX - 1, 2), None);
    assert_eq!(SequenceKey::take(u64::MAX, 1), None);
}

#[test]
fn points_get_the_numbers_that_are_taken_there() {
    let queue = |name: &str, seq| {
        let order = OrderKey::Queue(Name::new(name).unwrap());
        Standing::at(order, Place::of_number(seq))
    };
    let board = BoardKey { board: room(), season: Timestamp(0), levels: false };
    let score = Standing::at(board.into(), Place::of_number(Seq::Taken(0)));
    let end = Standing::end(OrderKey::Queue(room()));
    let points = [
        queue("sale", Seq::Taken(1)),
        queue("sale", Seq::Given(7)),
        // Behind all that are taken, and of a room where none are.
        queue("sale", Seq::Taken(2)),
        queue("gate", Seq::Taken(0)),
        score.clone(),
        end.clone(),
    ];
    let mut expected = points.to_vec();
    expected[0] = queue("sale", Seq::Given(41));
    let changes = taking(2, Vec::new());
    assert_eq!(changes.standings(&points, &[40]), expected);
    assert_eq!(changes.taken_at(&points[0]), Some((0, 2, 1)));
    assert_eq!([score.taken(), end.taken()], [None, None]);
}
