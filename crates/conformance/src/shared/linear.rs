//! Says whether answers that were given at the same time can have been given one after another.
//!
//! Wing and Gong: pick an operation that nothing unpicked was answered before, see whether its answer
//! fits, go on; come back when none fits. What was tried is remembered, as the set of operations that
//! are picked and the state that they lead to.

use std::collections::HashSet;

use tally_core::Name;

/// An edge as it is at one moment.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// It is not there.
    Absent,
    /// It is there, perhaps of a kind.
    Present(Option<Name>),
}

/// What is done to an edge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// It is made, perhaps of a kind.
    Relate(Option<Name>),
    /// It is taken away.
    Unrelate,
    /// It is turned into the opposite of what it is.
    Toggle(Option<Name>),
    /// It is looked at.
    Read,
}

/// What was answered: how the edge is afterwards, and whether that is news.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// How it is.
    pub state: State,
    /// Whether that is news.
    pub changed: bool,
}

/// An operation on one edge. Moments are numbers that only grow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Op {
    /// When it was asked.
    pub asked: u64,
    /// When it was answered, and what. Without an answer it has happened at any time, or never.
    pub answered: Option<(u64, Answer)>,
    /// What was asked.
    pub action: Action,
}

/// What the rules answer in this state.
fn act(action: &Action, state: &State) -> Answer {
    let after = match (action, state) {
        (Action::Read, state) => state.clone(),
        (Action::Relate(kind), _) | (Action::Toggle(kind), State::Absent) => State::Present(kind.clone()),
        (Action::Unrelate, _) | (Action::Toggle(_), State::Present(_)) => State::Absent,
    };
    Answer { changed: after != *state, state: after }
}

/// Whether there is an order in which every answer is right, for an edge that was absent at first.
pub fn is_linearizable(ops: &[Op]) -> bool {
    assert!(ops.len() <= 128, "{} operations on one edge are more than fit in a set of bits", ops.len());
    let mut tried = HashSet::new();
    let mut next = vec![(0_u128, State::Absent)];
    while let Some((picked, state)) = next.pop() {
        if !tried.insert((picked, state.clone())) {
            continue;
        }
        let open = || ops.iter().enumerate().filter(|(number, _)| picked & (1 << number) == 0);
        // What has no answer need not happen, so nothing else need happen any more.
        let Some(first_answer) = open().filter_map(|(_, op)| Some(op.answered.as_ref()?.0)).min() else { return true };
        let mut fitting = Vec::new();
        for (number, op) in open().filter(|(_, op)| op.asked < first_answer) {
            let after = act(&op.action, &state);
            match &op.answered {
                Some((_, answer)) if *answer != after => {}
                // What fits and leaves the state alone can come at once, whatever comes then.
                Some(_) if after.state == state => {
                    fitting = vec![(picked | 1 << number, after.state)];
                    break;
                }
                _ => fitting.push((picked | 1 << number, after.state)),
            }
        }
        next.append(&mut fitting);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::name;

    fn present() -> State {
        State::Present(None)
    }

    fn op(asked: u64, at: u64, action: Action, state: State, changed: bool) -> Op {
        Op { asked, answered: Some((at, Answer { state, changed })), action }
    }

    fn relate(asked: u64, at: u64, changed: bool) -> Op {
        op(asked, at, Action::Relate(None), present(), changed)
    }

    fn unrelate(asked: u64, at: u64, changed: bool) -> Op {
        op(asked, at, Action::Unrelate, State::Absent, changed)
    }

    fn toggle(asked: u64, at: u64, state: State) -> Op {
        op(asked, at, Action::Toggle(None), state, true)
    }

    fn read(asked: u64, at: u64, state: State) -> Op {
        op(asked, at, Action::Read, state, false)
    }

    fn react(asked: u64, at: u64, kind: &str, changed: bool) -> Op {
        let kind = Some(name(kind));
        op(asked, at, Action::Relate(kind.clone()), State::Present(kind), changed)
    }

    fn lost(asked: u64, action: Action) -> Op {
        Op { asked, answered: None, action }
    }

    #[test]
    fn histories_that_can_have_happened() {
        for (why, ops) in [
            ("nothing", vec![]),
            ("one after another", vec![relate(1, 2, true), relate(3, 4, false), unrelate(5, 6, true)]),
            ("a read beside a write sees it", vec![relate(1, 4, true), read(2, 3, present())]),
            ("a read beside a write does not see it", vec![relate(1, 4, true), read(2, 3, State::Absent)]),
            ("the later one came first", vec![relate(1, 5, false), relate(2, 4, true)]),
            ("an unrelate between two relates", vec![relate(1, 9, true), unrelate(2, 8, true), relate(3, 7, true)]),
            (
                "two toggles at once, both orders",
                vec![toggle(1, 4, State::Absent), toggle(2, 3, present()), read(5, 6, State::Absent)],
            ),
            ("kinds in turn", vec![react(1, 6, "like", true), react(2, 5, "wow", true), react(3, 4, "like", true)]),
            ("lost, and it happened", vec![lost(1, Action::Relate(None)), read(2, 3, present())]),
            ("lost, and it did not", vec![lost(1, Action::Relate(None)), relate(2, 3, true), relate(4, 5, false)]),
            (
                "lost, and it happened late",
                vec![lost(1, Action::Unrelate), relate(2, 3, true), read(4, 5, present()), read(6, 7, State::Absent)],
            ),
        ] {
            assert!(is_linearizable(&ops), "{why}");
        }
    }

    #[test]
    fn histories_that_cannot_have_happened() {
        for (why, ops) in [
            ("a stale read", vec![relate(1, 2, true), read(3, 4, State::Absent)]),
            ("a stale answer", vec![relate(1, 2, true), unrelate(3, 4, false)]),
            (
                "back in time",
                vec![relate(1, 10, true), read(2, 3, present()), read(4, 5, State::Absent), unrelate(11, 12, true)],
            ),
            ("a lost update", vec![relate(1, 4, true), relate(2, 3, true)]),
            ("made twice, later", vec![relate(1, 2, true), relate(3, 4, true)]),
            ("removed twice", vec![relate(1, 2, true), unrelate(3, 6, true), unrelate(4, 5, true)]),
            ("never made", vec![unrelate(1, 2, true)]),
            ("two toggles that do not see each other", vec![toggle(1, 4, present()), toggle(2, 3, present())]),
            ("news that is none", vec![react(1, 2, "like", true), react(3, 4, "like", true)]),
            ("no news, of another kind", vec![react(1, 2, "like", true), react(3, 4, "wow", false)]),
            ("another kind is read", vec![react(1, 2, "like", true), read(3, 4, State::Present(Some(name("wow"))))]),
            (
                "lost, and it happened twice",
                vec![lost(1, Action::Relate(None)), read(2, 3, present()), unrelate(4, 5, true), read(6, 7, present())],
            ),
            ("lost, and it happened before it was asked", vec![read(1, 2, present()), lost(3, Action::Relate(None))]),
        ] {
            assert!(!is_linearizable(&ops), "{why}");
        }
    }

    /// Many at once, and one thing wrong at the end: every order is tried, and each state once.
    #[test]
    fn a_wide_history_is_refused_in_time() {
        let mut ops: Vec<Op> = (0..5).map(|n| lost(n, Action::Toggle(None))).collect();
        ops.extend((0..6).map(|n| toggle(20 + n, 100 + n, if n % 2 == 0 { present() } else { State::Absent })));
        assert!(is_linearizable(&ops));
        ops.push(op(200, 201, Action::Read, State::Present(Some(name("wow"))), false));
        assert!(!is_linearizable(&ops));
    }
}
