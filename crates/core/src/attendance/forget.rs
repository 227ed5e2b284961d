//! The days of a subject that goes: they only count for their days from the request on, until the job takes them back.

use super::Command;
use super::rule::{forget, forget_step};
use crate::decide::Context;
use crate::id::SubjectId;
use crate::rows::Names;
use crate::subject::{Counted, each};
use crate::time::Stamp;
use crate::view::{Stop, View};

impl Counted for Command {
    fn forget_at_once(
        subject: &SubjectId,
        names: &Names,
        _context: &Context<'_>,
        view: &mut View,
    ) -> Result<bool, Stop> {
        each(names.sheets.iter().map(|sheet| forget(sheet, subject, view)))
    }

    fn forget_step(
        subject: &SubjectId,
        _before: Stamp,
        names: &Names,
        _context: &Context<'_>,
        view: &mut View,
    ) -> Result<bool, Stop> {
        each(names.sheets.iter().map(|sheet| forget_step(sheet, subject, view)))
    }
}
