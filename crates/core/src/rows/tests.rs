//! What is declared is what rows are made of.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::day::Day;
use crate::id::{Name, ObjectId, SubjectId};
use crate::room::RoomSettings;
use crate::room::rows::{Phase, Recent};
use crate::verify::{Claims, Known};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A row of every kind, with nothing left out and with everything left out that may be.
fn samples() -> Vec<(Key, Row)> {
    let meta = || Arc::new(json!({"memo": "안녕", "n": 1.5}).as_object().cloned().unwrap());
    let (object, subject) = (ObjectId::new("post:42").unwrap(), SubjectId::new("alice").unwrap());
    let edge = EdgeKey { object: object.clone(), relation: name("like"), subject: subject.clone() };
    let counted = CountKey { name: name("views"), key: crate::KeyId::new("post:42").unwrap() };
    let at = Timestamp(1_700_000_000_123);
    let mut bits = Bits::default();
    bits.set(7, true);
    let mut sketch = Sketch::default();
    sketch.add("alice");
    let used = |state| Row::Limit(Used { state, look_at: at });
    let limit = LimitKey { name: "posting".into(), key: "al\u{1}ice".into() };
    let job = |work, finished_at| Row::Job(Job { work, before: Stamp(7), edges: 3, created_at: at, finished_at });
    let board = BoardKey { board: name("weekly"), season: at, levels: false };
    let key = |revoked_at| {
        let (hash, name) = ("ab".into(), "ci".into());
        Row::ApiKey(ApiKey { hash, role: Role::Service, name, created_at: at, revoked_at })
    };
    let signer = |created_at| Signer {
        kid: "k".into(),
        public: "p".into(),
        private: "s".into(),
        created_at,
        signs_from: created_at,
    };
    let registered = |status: Option<&str>| Object {
        status: status.map(Into::into),
        attributes: meta(),
        created_at: at,
        updated_at: at,
    };
    let suspended = Some(Suspension { at, job: JobId(9) });
    let ticket = |state| {
        let subject = SubjectId::new("alice").unwrap();
        Row::Ticket(Ticket::new(subject, "tab \"1\"", state, at, Timestamp(at.0 + 1)))
    };
    let forgotten = Some(Forgotten { before: Stamp(5), left: [(name("like"), 2)].into() });
    let made = |kind, meta, hidden| Row::Edge(Edge { created: Stamp(77), kind, meta, hidden });
    let mut all = vec![
        (Key::Edge(edge.clone()), made(None, None, false)),
        (Key::Edge(edge), made(Some(name("wow")), Some(meta()), true)),
        (Key::Object(object.clone()), Row::Object(registered(None))),
        (Key::Object(object.clone()), Row::Object(registered(Some("published")))),
        (Key::Subject(subject.clone()), Row::Subject(Subject { suspended, forgotten: None })),
        (Key::Subject(subject.clone()), Row::Subject(Subject { suspended: None, forgotten })),
        (
            Key::Replay(ReplayKey { caller: "key:a".into(), key: "k \"1\"".into() }),
            Row::Replay(Replay {
                fields: Arc::new(vec![("by".into(), u64::MAX)]),
                answer: "{}".into(),
                expires_at: at,
            }),
        ),
        (Key::Job(JobId(u64::MAX)), job(Work::Clear { object: object.clone() }, None)),
        (Key::Job(JobId(0)), job(Work::Ended { work: JobKind::Forget }, Some(at))),
        (Key::ApiKey("k1".into()), key(None)),
        (Key::ApiKey("k1".into()), key(Some(at))),
        (Key::Names, Row::Names(Names { boards: [name("weekly")].into(), ..Names::default() })),
        (Key::Signers, Row::Signers(Signers { items: vec![signer(at)] })),
        (Key::Counter(counted.clone()), Row::Counter(-3)),
        (Key::Touched(counted.clone()), Row::Touched(at)),
        (Key::Unique(counted), Row::Unique(sketch)),
        (Key::Limit(limit.clone()), used(UsedState::Log(vec![(1, 2)]))),
        (Key::Limit(limit.clone()), used(UsedState::Window { start: 1, current: 2, previous: 3 })),
        (Key::Limit(limit), used(UsedState::Bucket { full_at: u64::MAX })),
        (Key::Sheet(name("daily")), Row::Sheet(8)),
        (Key::Day((name("daily"), Day(20_000))), Row::Day(vec![0, 3])),
        (Key::Chunk(ChunkKey { sheet: name("daily"), day: Day(20_000), chunk: 3 }), Row::Chunk(bits.clone())),
        (
            Key::Attendee((name("daily"), subject.clone())),
            Row::Attendee(Attendee { number: 7, days: bits, forgotten: Bits::default() }),
        ),
        (Key::Board(name("weekly")), Row::Board(Board { seasons: vec![Timestamp(0), at], dense: true })),
        (Key::Score(ScoreKey { board, member: subject.clone() }), Row::Score(Score { score: -4, reached: Stamp(9) })),
        (Key::Sequence(SequenceKey { home: "sale".into(), name: "queue".into() }), Row::Sequence(NUMBER_MAX)),
        (Key::Entry(EntryKey { room: name("sale"), subject, token: "}".into() }), Row::Entry(Seq::Given(7))),
    ];
    let (settings, recent) = (Arc::new(RoomSettings::default()), Box::new(Recent::default()));
    let declared = Some(settings.clone());
    let (secret, seed) = ("s".to_owned(), "\"e\"".to_owned());
    let room = |declared, early| {
        let (settings, secret, seed) = (settings.clone(), secret.clone(), seed.clone());
        Row::Room(Room { settings, declared, secret, seed, phase: Phase::Open, early, awake: true, created_at: at })
    };
    let gate =
        |passed| Gate { passed, budget: 1, budget_at: at, due_at: at, is_full: true, swept: 2, recent: recent.clone() };
    let minute = Minute { joined: 1, admitted: 2, left: 3, expired: 4, longest_wait_ms: 5, due_at: at };
    all.extend([
        (Key::Room(name("sale")), room(None, None)),
        (Key::Room(name("sale")), room(declared, Some(7))),
        (Key::Gate(name("sale")), Row::Gate(gate(Seq::Given(3)))),
        (
            Key::Gone(GoneKey { room: name("sale"), number: Seq::Given(3) }),
            Row::Gone(Gone { places: vec![3, 9], due_at: at }),
        ),
        (Key::Minute(MinuteKey { room: name("sale"), minute: at }), Row::Minute(minute)),
    ]);
    let in_line = |seq| Key::Ticket(TicketKey { room: name("sale"), seq: Seq::Given(seq) });
    all.extend(TicketState::ALL.into_iter().zip(7..).map(|(state, seq)| (in_line(seq), ticket(state))));
    all
}

#[test]
fn every_kind_of_row_has_the_columns_that_are_declared_and_comes_back() {
    let mut seen = BTreeSet::new();
    for (key, row) in samples() {
        let declared = key.kind().declared();
        assert_eq!((declared.kind, row.kind()), (key.kind(), key.kind()));
        seen.insert(key.kind());
        let fits = |cells: &[Cell<'_>], columns: &[Column], may_be_null: bool| {
            assert_eq!(cells.len(), columns.len(), "{key:?}");
            for (cell, (name, of)) in cells.iter().zip(columns) {
                assert!(cell.of_type().map_or(may_be_null, |held| held == *of), "{name} of {key:?} holds {cell:?}");
            }
        };
        fits(&key.to_cells(), declared.key, false);
        fits(&row.to_cells(), declared.columns, true);
        assert_eq!(Key::from_cells(key.kind(), &mut Cells::new(key.to_cells())).as_ref(), Some(&key));
        assert_eq!(Row::from_cells(key.kind(), &mut Cells::new(row.to_cells())).as_ref(), Some(&row));
        assert_eq!(row.due().is_some(), declared.due.is_some(), "{key:?}");
    }
    assert_eq!(seen.len(), RowKind::COUNT, "a kind without a sample");
}

/// Stores find rows in order by their columns, and places from the rows.
#[test]
fn rows_stand_where_their_columns_say_and_places_lead_back_to_them() {
    let mut standing = BTreeSet::new();
    for (key, row) in samples() {
        let declared = key.kind().declared();
        let (parts, cells) = (key.to_cells(), row.to_cells());
        let columns = declared.key.iter().chain(declared.columns).map(|(name, _)| *name);
        let held = |wanted: &str| columns.clone().zip(parts.iter().chain(&cells)).find(|(name, _)| *name == wanted);
        let text = |wanted: &str| held(wanted).unwrap_or_else(|| panic!("no column {wanted}")).1.to_string();
        let stands = declared.order.filter(|by| by.only.is_none_or(|(column, value)| text(column) == value));
        assert_eq!(key.order().is_some(), declared.order.is_some(), "{key:?}");
        let Some((order, place)) = row.stands(&key) else {
            assert_eq!(stands, None, "{key:?} {row:?}");
            continue;
        };
        standing.insert(key.kind());
        let by = stands.unwrap();
        assert_eq!(Some(&order), key.order().as_ref());
        assert_eq!(place.score.to_string(), by.score.map_or("0".to_owned(), text));
        assert_eq!(place.reached.to_string(), text(by.reached));
        let (last, before) = parts.split_last().unwrap();
        assert_eq!((order.kind(), order.to_cells().as_slice()), (key.kind(), before));
        assert_eq!(OrderKey::from_cells(key.kind(), &mut Cells::new(before.to_vec())).as_ref(), Some(&order));
        assert_eq!(*place.id, *last.to_string());
        assert_eq!(order.key(&place.id).as_ref(), Some(&key));
        assert_eq!(order.row(&place), key.kind().is_its_place().then_some(row), "{key:?}");
    }
    let declared = RowKind::ALL.into_iter().filter(|kind| kind.stands());
    assert_eq!(standing, declared.collect(), "a kind without a sample that stands");
}

#[test]
fn a_row_moves_when_it_begins_to_stand_and_when_it_ceases_to() {
    let key = Key::Ticket(TicketKey { room: name("sale"), seq: Seq::Given(7) });
    let tickets: Vec<Row> =
        samples().into_iter().map(|(_, row)| row).filter(|row| row.kind() == RowKind::Ticket).collect();
    let (early, waiting, ready) = (&tickets[0], &tickets[1], &tickets[2]);
    let moves = |before: Option<&Row>, after: Option<&Row>| {
        let moved = Change { before: before.cloned(), after: after.cloned() }.moves(&key)?;
        Some((moved.before.is_some(), moved.after.is_some()))
    };
    for (before, after, expected) in [
        (None, Some(early), None),
        (Some(early), Some(waiting), Some((false, true))),
        (None, Some(waiting), Some((false, true))),
        (Some(waiting), Some(waiting), None),
        (Some(waiting), Some(ready), Some((true, false))),
        (Some(waiting), None, Some((true, false))),
        (Some(ready), None, None),
    ] {
        assert_eq!(moves(before, after), expected, "{before:?} {after:?}");
    }
}

#[test]
fn every_value_comes_back_from_json_and_from_text() {
    for (key, row) in samples() {
        let declared = key.kind().declared();
        let (key_cells, cells) = (key.to_cells(), row.to_cells());
        for (cell, (name, of)) in key_cells.iter().chain(&cells).zip(declared.key.iter().chain(declared.columns)) {
            let json = serde_json::to_string(cell).unwrap();
            assert_eq!(Cell::from_json(*of, &json).as_ref(), Some(cell), "{name} as {json}");
        }
        for (cell, (_, of)) in key_cells.iter().zip(declared.key) {
            assert_eq!(Cell::from_text(*of, &cell.to_string()).as_ref(), Some(cell));
        }
    }
}

#[test]
fn what_is_not_of_its_type_is_no_row() {
    for (key, row) in samples() {
        let cells = row.to_cells();
        for place in 0..cells.len() {
            let mut wrong = cells.clone();
            wrong[place] = Cell::Json("nonsense".into());
            assert_eq!(Row::from_cells(key.kind(), &mut Cells::new(wrong)), None, "column {place} of {key:?}");
        }
        assert_eq!(Row::from_cells(key.kind(), &mut Cells::new(cells[1..].to_vec())), None, "{key:?}");
    }
}

#[test]
fn kinds_are_declared_in_order_and_their_names_do_not_meet() {
    let (mut letters, mut names) = (BTreeSet::new(), BTreeSet::new());
    for kind in RowKind::ALL {
        let declared = kind.declared();
        assert_eq!(declared.kind, kind);
        assert!(letters.insert(declared.letter) && names.insert(declared.name), "{kind:?}");
        let holds = |due: Due| declared.columns.contains(&(due.column(), Type::Time));
        assert!(declared.due.is_none_or(holds), "{kind:?}");
        if let Home::With(column) = declared.home {
            assert_eq!(declared.key[column].1, Type::Text, "{kind:?}");
        }
        let with_its_order = matches!(declared.home, Home::With(column) if column + 1 < declared.key.len());
        assert!(!kind.stands() || with_its_order, "{kind:?}");
    }
}

/// A kind that is read by verifications has something to say in them, and no other says anything.
#[test]
fn rows_that_claim_tell_or_own_anything_are_of_a_kind_that_is_audited() {
    let (mut audited, mut known) = (BTreeSet::new(), Known::default());
    for (key, row) in samples() {
        let mut claimed = 0;
        row.claims(&key, &known, &mut Claims(&mut |_, _| claimed += 1));
        row.tells(&key, &mut known);
        assert_eq!(row.owns(&key).is_some(), key.kind().is_owner(), "{key:?}");
        if claimed > 0 || key.kind() == RowKind::Board {
            audited.insert(key.kind());
        }
    }
    assert_eq!(audited, RowKind::ALL.into_iter().filter(|kind| kind.implies()).collect());
    assert_eq!(known.dense(&name("weekly")), Some(true), "a board tells");
}

/// Jobs keep keys as JSON.
#[test]
fn keys_are_written_as_ever() {
    for (key, expected) in [
        (Key::Names, json!("Names")),
        (Key::Job(JobId(7)), json!({"Job": 7})),
        (Key::Day((name("daily"), Day(0))), json!({"Day": ["daily", "1970-01-01"]})),
        (Key::Sheet(name("daily")), json!({"Sheet": "daily"})),
    ] {
        assert_eq!(serde_json::to_value(&key).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Key>(expected).unwrap(), key);
    }
}
