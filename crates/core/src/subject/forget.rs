//! What was counted of a subject or an object that goes. Each capability says what it does about that: see [`Counted`].
//!
//! The request itself takes what can still be added to, so that whatever comes afterwards begins anew; the job takes the
//! rest, step by step.

use crate::capability;
use crate::decide::Context;
use crate::id::{KeyId, SubjectId};
use crate::names;
use crate::rows::{Key, Names};
use crate::time::Stamp;
use crate::view::{Stop, View};

/// What a capability does about what it has counted of whom is forgotten, in all that is or was declared (`names`). One that
/// counts nothing says so where it lists its operations.
pub(crate) trait Counted {
    /// Takes what a subject could still add to. Says whether there was anything.
    fn forget_at_once(
        _subject: &SubjectId,
        _names: &Names,
        _context: &Context<'_>,
        _view: &mut View,
    ) -> Result<bool, Stop> {
        Ok(false)
    }

    /// Takes back some of what a subject left before a time. Says whether there is more.
    fn forget_step(
        _subject: &SubjectId,
        _before: Stamp,
        _names: &Names,
        _context: &Context<'_>,
        _view: &mut View,
    ) -> Result<bool, Stop> {
        Ok(false)
    }

    /// Takes back what was counted of an object. Says whether there was anything.
    fn forget_object(_key: &KeyId, _names: &Names, _context: &Context<'_>, _view: &mut View) -> Result<bool, Stop> {
        Ok(false)
    }
}

/// Runs all of them, even if one misses rows: so that one load brings what all of them miss.
pub(crate) fn each(outcomes: impl IntoIterator<Item = Result<bool, Stop>>) -> Result<bool, Stop> {
    let (mut any, mut missed) = (false, false);
    for outcome in outcomes {
        match outcome {
            Ok(one) => any |= one,
            Err(Stop::Miss) => missed = true,
            Err(stop) => return Err(stop),
        }
    }
    if missed { Err(Stop::Miss) } else { Ok(any) }
}

/// Takes what a subject could still add to.
pub(crate) fn at_once(subject: &SubjectId, context: &Context<'_>, view: &mut View) -> Result<(), Stop> {
    let names = names::all(context, view)?;
    capability::forget_at_once(subject, &names, context, view).map(drop)
}

/// Takes back what was counted of a subject, in all that is or was declared. Says whether there is more.
pub(crate) fn counted(
    subject: &SubjectId,
    before: Stamp,
    context: &Context<'_>,
    view: &mut View,
) -> Result<bool, Stop> {
    let names = names::all(context, view)?;
    capability::forget_step(subject, before, &names, context, view)
}

/// Takes back what was counted of an object, in all that is or was declared.
pub(crate) fn counted_of(id: &str, context: &Context<'_>, view: &mut View) -> Result<(), Stop> {
    let Ok(key) = KeyId::new(id) else { return Ok(()) };
    let names = names::all(context, view)?;
    capability::forget_object(&key, &names, context, view).map(drop)
}

/// Takes a row away. Says whether it was there.
pub(crate) fn take_row(row: Key, view: &mut View) -> Result<bool, Stop> {
    let is_there = view.row_uncounted(&row)?.is_some();
    if is_there {
        view.set_uncounted(row, None)?;
    }
    Ok(is_there)
}
