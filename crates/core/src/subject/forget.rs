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

/// Whom or what is forgotten, and where it may have been counted.
pub(crate) struct Going<'a, Who> {
    /// Whom, or what.
    pub(crate) who: &'a Who,
    /// Only what is older than this: what comes later is a new life.
    pub(crate) before: Stamp,
    /// All that is or was declared.
    pub(crate) names: &'a Names,
    /// When, and what is declared now.
    pub(crate) context: &'a Context<'a>,
}

/// What a capability does about what it has counted of whom is forgotten. One that counts nothing says so where it lists its
/// operations.
pub(crate) trait Counted {
    /// Takes what a subject could still add to. Says whether there was anything.
    fn forget_at_once(_going: &Going<'_, SubjectId>, _view: &mut View) -> Result<bool, Stop> {
        Ok(false)
    }

    /// Takes back some of what a subject left. Says whether there is more.
    fn forget_step(_going: &Going<'_, SubjectId>, _view: &mut View) -> Result<bool, Stop> {
        Ok(false)
    }

    /// Takes back what was counted of an object. Says whether there was anything.
    fn forget_object(_going: &Going<'_, KeyId>, _view: &mut View) -> Result<bool, Stop> {
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
    let (names, before) = (&names::all(context, view)?, Stamp(u64::MAX));
    capability::forget_at_once(&Going { who: subject, before, names, context }, view).map(drop)
}

/// Takes back what was counted of a subject, in all that is or was declared. Says whether there is more.
pub(crate) fn counted(
    subject: &SubjectId,
    before: Stamp,
    context: &Context<'_>,
    view: &mut View,
) -> Result<bool, Stop> {
    let names = &names::all(context, view)?;
    capability::forget_step(&Going { who: subject, before, names, context }, view)
}

/// Takes back what was counted of an object, in all that is or was declared.
pub(crate) fn counted_of(id: &str, context: &Context<'_>, view: &mut View) -> Result<(), Stop> {
    let Ok(key) = KeyId::new(id) else { return Ok(()) };
    let (names, before) = (&names::all(context, view)?, Stamp(u64::MAX));
    capability::forget_object(&Going { who: &key, before, names, context }, view).map(drop)
}

/// Takes a row away. Says whether it was there.
pub(crate) fn take_row(row: Key, view: &mut View) -> Result<bool, Stop> {
    let is_there = view.row_uncounted(&row)?.is_some();
    if is_there {
        view.set_uncounted(row, None)?;
    }
    Ok(is_there)
}
