//! The days of a subject that goes: they only count for their days from the request on, until the job takes them back.

use super::Command;
use super::rule::{forget, forget_step};
use crate::id::SubjectId;
use crate::subject::{Counted, Going, each};
use crate::view::{Stop, View};

impl Counted for Command {
    fn forget_at_once(going: &Going<'_, SubjectId>, view: &mut View) -> Result<bool, Stop> {
        each(going.names.sheets.iter().map(|sheet| forget(sheet, going.who, view)))
    }

    fn forget_step(going: &Going<'_, SubjectId>, view: &mut View) -> Result<bool, Stop> {
        each(going.names.sheets.iter().map(|sheet| forget_step(sheet, going.who, view)))
    }
}
