//! `limit_per_subject` is decided on the same rows as the edge: semantics 6.

use super::check;
use super::world::World;
use crate::command::Command;
use crate::decide::decide;
use crate::id::{Name, ObjectId, SubjectId};
use crate::rows::TotalKey;
use crate::time::Stamp;
use crate::view::{Stop, View};

#[test]
fn a_subject_has_at_most_its_limit() {
    check(
        r#"
        relate pin post:1 alice     -> active changed count=1
        relate pin post:2 alice     -> active changed count=1
        relate pin post:3 alice     -> limit_exceeded
        # What is there can be said again, and others have a limit of their own.
        relate pin post:2 alice     -> active count=1
        relate pin post:3 bob       -> active changed count=1
        unrelate pin post:1 alice   -> inactive changed count=0
        relate pin post:3 alice     -> active changed count=2
        relate pin post:1 alice     -> limit_exceeded
        total pin alice             -> 2
        "#,
    );
}

#[test]
fn lowering_a_limit_leaves_old_edges_readable_and_removable() {
    check(
        r#"
        relate pin post:1 alice     -> active changed count=1
        relate pin post:2 alice     -> active changed count=1
        limit pin 1
        objects pin alice           -> post:2 post:1
        relate pin post:1 alice     -> active count=1
        relate pin post:3 alice     -> limit_exceeded
        unrelate pin post:1 alice   -> inactive changed count=0
        # One is left, and one is what the limit now allows.
        relate pin post:3 alice     -> limit_exceeded
        unrelate pin post:2 alice   -> inactive changed count=0
        relate pin post:3 alice     -> active changed count=1
        "#,
    );
}

#[test]
fn a_limit_of_nothing_takes_nothing() {
    check(
        r#"
        limit pin 0
        relate pin post:1 alice     -> limit_exceeded
        unrelate pin post:1 alice   -> inactive count=0
        "#,
    );
}

#[test]
fn changing_the_kind_does_not_need_room() {
    check(
        r#"
        relate only post:1 alice kind=yes   -> active changed count=1 kind=yes
        relate only post:1 alice kind=no    -> active changed count=1 kind=no
        relate only post:2 alice kind=no    -> limit_exceeded
        "#,
    );
}

/// Two commits that both saw room must not both be taken, so the total that was decided on is
/// guarded. A like is decided on its edge alone, so its counts are not.
#[test]
fn only_a_limited_relation_stands_on_its_total() {
    for (relation, guarded) in [("pin", true), ("like", false)] {
        let world = World::new();
        let (name, subject) = (Name::new(relation).unwrap(), SubjectId::new("alice").unwrap());
        let object = ObjectId::new("post:1").unwrap();
        let total = TotalKey::Subject { subject: subject.clone(), relation: name.clone() };
        let command = Command::Relate { relation: name, object, subject, kind: None, meta: None };
        let call = crate::command::Call::system(command);
        let mut view = View::default();
        while decide(&call, Stamp(1), Stamp(1), 1, &world.catalog, &mut view) == Err(Stop::Miss) {
            let wants = view.take_missing();
            wants.rows.into_iter().for_each(|key| view.fill_row(key, None));
            wants.totals.into_iter().for_each(|key| view.fill_total(key, 0));
        }
        let seen: Vec<(TotalKey, i64)> = view.seen_totals().map(|(key, value)| (key.clone(), value)).collect();
        assert_eq!(seen, if guarded { vec![(total, 0)] } else { Vec::new() }, "{relation}");
    }
}
