//! When each answer of a batch is true.

use super::looks::Moment;
use super::{Reading, View};
use crate::id::{KeyId, Name, ObjectId, SubjectId};
use crate::rows::{CountKey, Key, Row, TotalKey};
use crate::time::{Stamp, Timestamp};

/// At the commit, without any rank.
const AT_COMMIT: Moment = Moment::Commit(Vec::new());

fn row(key: &str) -> Key {
    Key::Touched(count_key(key))
}

fn count_key(key: &str) -> CountKey {
    CountKey { name: Name::new("views").unwrap(), key: KeyId::new(key).unwrap() }
}

fn total(object: &str) -> TotalKey {
    TotalKey::Object { object: ObjectId::new(object).unwrap(), relation: Name::new("like").unwrap() }
}

fn some(at: u64) -> Option<Row> {
    Some(Row::Touched(Timestamp(at)))
}

/// A view with two rows and two totals of one load.
fn loaded(at_once: bool) -> View {
    let mut view = View::new(Reading::Lean, 2, 1);
    view.begin_load(at_once);
    for key in ["a", "b"] {
        view.fill_row(row(key), some(1));
        view.fill_total(total(&format!("post:{key}")), 5);
    }
    view.begin_round();
    view
}

/// One call.
fn call(view: &mut View, does: impl FnOnce(&mut View)) {
    let start = view.savepoint();
    does(view);
    view.end_command(start, true);
}

fn look(view: &mut View, key: &str) {
    view.row(&row(key)).unwrap();
    view.total(&total(&format!("post:{key}"))).unwrap();
}

fn write(view: &mut View, key: &str) {
    look(view, key);
    view.set(row(key), some(2)).unwrap();
}

fn guarded(view: &View) -> Vec<Key> {
    let mut keys: Vec<Key> = view.seen().map(|(key, _)| key.clone()).collect();
    keys.sort();
    keys
}

#[test]
fn what_changes_nothing_is_true_as_of_its_load() {
    let mut view = loaded(true);
    call(&mut view, |view| look(view, "a"));
    let judged = view.judge();
    assert_eq!(judged.moments, [Moment::Load(vec![])]);
    assert!(!judged.is_torn && !judged.needs_commit && guarded(&view).is_empty());
}

#[test]
fn what_is_written_stands_on_rows_that_are_checked_and_shows_totals_that_are_told() {
    let mut view = loaded(true);
    call(&mut view, |view| write(view, "a"));
    assert_eq!(view.judge().moments, [AT_COMMIT]);
    assert_eq!(guarded(&view), [row("a")]);
    assert_eq!(view.changes(Stamp(1)).adds, [(total("post:a"), 0)], "told, though nothing is added");
}

#[test]
fn a_total_that_others_of_the_batch_move_is_shown_as_it_was_loaded() {
    let mut view = loaded(true);
    call(&mut view, |view| {
        write(view, "b");
        view.add(&total("post:a"), 3).unwrap();
    });
    call(&mut view, |view| look(view, "a"));
    assert_eq!(view.judge().moments, [AT_COMMIT, Moment::Load(vec![(total("post:a"), -3)])]);
    assert_eq!(guarded(&view), [row("b")]);
}

#[test]
fn what_a_call_rehearses_stays_in_its_answer() {
    let mut view = loaded(true);
    call(&mut view, |view| {
        write(view, "b");
        view.add(&total("post:a"), 3).unwrap();
    });
    call(&mut view, |view| {
        let start = view.savepoint();
        for _ in 0..2 {
            view.add(&total("post:a"), 1).unwrap();
            look(view, "a");
        }
        view.rollback(start);
    });
    assert_eq!(view.judge().moments, [AT_COMMIT, Moment::Load(vec![(total("post:a"), -3)])]);
}

#[test]
fn who_saw_what_the_batch_wrote_stands_on_the_commit_as_well() {
    let mut view = loaded(true);
    call(&mut view, |view| write(view, "a"));
    call(&mut view, |view| {
        look(view, "a");
        look(view, "b");
    });
    assert_eq!(view.judge().moments, [AT_COMMIT, AT_COMMIT]);
    assert_eq!(guarded(&view), [row("a"), row("b")]);
}

/// The row of a and its total are of different loads.
fn of_two_loads() -> View {
    let mut view = loaded(true);
    view.begin_load(true);
    view.fill_total(total("post:a"), 6);
    view
}

#[test]
fn what_was_loaded_at_two_moments_is_no_answer() {
    let mut view = of_two_loads();
    call(&mut view, |view| look(view, "a"));
    assert!(view.judge().is_torn);
    let mut view = of_two_loads();
    call(&mut view, |view| look(view, "b"));
    call(&mut view, |view| _ = view.total(&total("post:a")).unwrap());
    assert!(!view.judge().is_torn, "each of them looked at one moment");
}

#[test]
fn what_was_loaded_at_two_moments_is_checked_by_a_commit_that_there_is_anyway() {
    let mut view = of_two_loads();
    call(&mut view, |view| look(view, "a"));
    call(&mut view, |view| write(view, "b"));
    let judged = view.judge();
    assert_eq!(judged.moments, [AT_COMMIT, AT_COMMIT]);
    assert!(!judged.is_torn);
    assert_eq!(guarded(&view), [row("a"), row("b")]);
    assert_eq!(view.changes(Stamp(1)).adds, [(total("post:a"), 0), (total("post:b"), 0)]);
}

#[test]
fn a_store_that_loads_in_parts_has_answers_checked_by_a_commit() {
    let mut view = loaded(false);
    call(&mut view, |view| look(view, "a"));
    let judged = view.judge();
    assert!(judged.needs_commit && !judged.is_torn);
    assert_eq!(guarded(&view), [row("a")]);
    let mut view = loaded(false);
    call(&mut view, |view| _ = view.row(&row("a")).unwrap());
    let judged = view.judge();
    assert!(!judged.needs_commit && !judged.is_torn, "one row is of one moment");
}

#[test]
fn what_is_written_and_taken_back_in_one_batch_stands_on_one_load() {
    let there_and_back = |mut view: View| {
        call(&mut view, |view| write(view, "a"));
        call(&mut view, |view| {
            look(view, "a");
            view.set(row("a"), some(1)).unwrap();
        });
        view.judge()
    };
    let judged = there_and_back(loaded(true));
    assert_eq!(judged.moments, [Moment::Load(vec![]), Moment::Load(vec![])]);
    assert!(there_and_back(of_two_loads()).needs_commit);
    assert!(there_and_back(loaded(false)).needs_commit);
}

#[test]
fn a_total_that_nobody_will_tell_is_loaded_with_the_rows_of_who_shows_it() {
    let mut view = View::new(Reading::Counted, 2, 1);
    view.begin_load(true);
    view.fill_row(row("a"), some(1));
    view.begin_round();
    let counter = TotalKey::Counter(count_key("home"));
    // Blindly, there and back.
    call(&mut view, |view| {
        view.add(&counter, 1).unwrap();
        view.add(&counter, -1).unwrap();
    });
    call(&mut view, |view| {
        view.row(&row("a")).unwrap();
        view.total(&counter).unwrap();
    });
    let wants = view.take_missing();
    assert_eq!((wants.rows, wants.totals), (vec![row("a")], vec![counter]));
}

#[test]
fn an_answer_that_is_written_down_holds_its_totals() {
    let mut view = loaded(true);
    view.set_exact(true);
    call(&mut view, |view| write(view, "a"));
    view.judge();
    let held: Vec<(TotalKey, i64)> = view.seen_totals().map(|(key, value)| (key.clone(), value)).collect();
    assert_eq!(held, [(total("post:a"), 5)]);
    assert!(view.changes(Stamp(1)).adds.is_empty(), "it is held, so nobody has to tell it");
}

#[test]
fn a_refusal_stands_on_what_it_looked_at_and_shows_nothing() {
    let mut view = of_two_loads();
    let start = view.savepoint();
    look(&mut view, "a");
    view.end_command(start, false);
    assert!(!view.judge().is_torn, "one row, and a total that is in no answer");
    let mut view = of_two_loads();
    let start = view.savepoint();
    view.row(&row("a")).unwrap();
    view.total_decided(&total("post:a")).unwrap();
    view.end_command(start, false);
    assert!(view.judge().is_torn, "refused because of a total of another moment");
}

#[test]
fn a_store_that_is_near_holds_all_that_it_loaded() {
    let mut view = View::new(Reading::Whole, 2, 1);
    view.fill_row(Key::Subject(SubjectId::new("ann").unwrap()), None);
    assert_eq!(view.seen().count(), 1);
    assert!(view.judge().moments.is_empty());
}
