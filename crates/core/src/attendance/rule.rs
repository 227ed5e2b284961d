//! Who was there on which day: a bitmap for each day, and the days of each subject.

use roaring::RoaringBitmap;

use super::{Attend, AttendReply};
use crate::catalog::SheetDef;
use crate::day::Day;
use crate::decide::Context;
use crate::error::Refusal;
use crate::id::{Name, SubjectId};
use crate::limit;
use crate::rows::{Attendee, Bits, CHUNK_BITS, ChunkKey, Key, Row, TotalKey};
use crate::time::Timestamp;
use crate::view::{Stop, View};

/// Ids that are numbers below this are their own bits; all others are numbered from here on.
/// Numbers far apart would each have a chunk of their own, so only small ones are taken as they are.
pub(super) const NUMBERED_FROM: u64 = 1 << 26;
/// Days that one step of forgetting takes back.
const DAYS_PER_STEP: usize = 100;

/// The day that it is now where the sheet's days end.
pub fn today(def: &SheetDef, now: Timestamp) -> Day {
    Day::of(now, &def.time_zone)
}

/// Says that a subject was there on a day, or was not.
pub(crate) fn attend(command: &Attend, context: &Context<'_>, view: &mut View) -> Result<AttendReply, Stop> {
    let Attend { sheet, day, subject, present } = command;
    let present = *present;
    let def = context.catalog.sheet(sheet)?;
    let day = day.unwrap_or_else(|| today(def, context.now()));
    let row = Key::Attendee((sheet.clone(), subject.clone()));
    let total = TotalKey::Present { sheet: sheet.clone(), day };
    let mut rows = vec![row.clone()];
    match own_number(subject) {
        Some(number) => rows.push(Key::Chunk(chunk_key(sheet, day, number))),
        None => rows.push(Key::Sheet(sheet.clone())),
    }
    rows.extend(limit::row(def.rate_limit.as_ref(), Some(subject), ""));
    view.want(&rows, std::slice::from_ref(&total))?;
    let known = view.kept_counted(&row, Row::into_attendee)?;
    let was = known.as_ref().is_some_and(|attendee| attendee.days.contains(day.0));
    let days = known.as_ref().map(|attendee| attendee.days.clone()).unwrap_or_default();
    let days = if was == present {
        days
    } else {
        limit::pass(def.rate_limit.as_ref(), Some(subject), "", context, view)?;
        change(sheet, day, subject, known, present, view)?
    };
    Ok(AttendReply {
        sheet: sheet.clone(),
        day,
        subject: subject.clone(),
        present,
        changed: was != present,
        count: view.total(&total)?,
        streak: run_up_to(days.bitmap(), day),
    })
}

/// Changes a day of a subject in all of its places. Gives the days that it has afterwards.
pub(super) fn change(
    sheet: &Name,
    day: Day,
    subject: &SubjectId,
    known: Option<Attendee>,
    present: bool,
    view: &mut View,
) -> Result<Bits, Stop> {
    let mut attendee = match known {
        Some(attendee) => attendee,
        None => {
            let (days, forgotten) = (Bits::default(), Bits::default());
            Attendee { number: number(sheet, subject, view)?, days, forgotten }
        }
    };
    if attendee.forgotten.contains(day.0) {
        // It was forgotten and comes anew: one taken back, one added.
        attendee.forgotten.set(day.0, false);
    } else {
        mark(sheet, day, attendee.number, present, view)?;
        view.add(&TotalKey::Present { sheet: sheet.clone(), day }, if present { 1 } else { -1 })?;
    }
    view.charge_total();
    attendee.days.set(day.0, present);
    let days = attendee.days.clone();
    // A number is given once, so who has one keeps it.
    let stays = !days.is_empty() || !attendee.forgotten.is_empty() || attendee.number >= NUMBERED_FROM;
    view.set(Key::Attendee((sheet.clone(), subject.clone())), stays.then_some(Row::Attendee(attendee)))?;
    Ok(days)
}

/// Makes a subject's days count no more for itself. Says whether it had any. See [`take_back`].
pub(super) fn forget(sheet: &Name, subject: &SubjectId, view: &mut View) -> Result<bool, Stop> {
    let row = Key::Attendee((sheet.clone(), subject.clone()));
    let Some(Row::Attendee(mut attendee)) = view.row_uncounted(&row)? else { return Ok(false) };
    if attendee.days.is_empty() && attendee.forgotten.is_empty() {
        view.set_uncounted(row, None)?;
        return Ok(false);
    }
    attendee.forgotten = attendee.counted();
    attendee.days = Bits::default();
    view.set_uncounted(row, Some(Row::Attendee(attendee)))?;
    Ok(true)
}

/// Takes back some of the days that were forgotten. Says whether there are more.
pub(super) fn forget_step(sheet: &Name, subject: &SubjectId, view: &mut View) -> Result<bool, Stop> {
    let row = Key::Attendee((sheet.clone(), subject.clone()));
    let Some(mut attendee) = view.kept(&row, Row::into_attendee)? else { return Ok(false) };
    let days: Vec<u32> = attendee.forgotten.bitmap().iter().take(DAYS_PER_STEP + 1).collect();
    let now = days.iter().take(DAYS_PER_STEP);
    crate::subject::each(now.map(|day| take_back(sheet, Day(*day), attendee.number, view).map(|()| false)))?;
    if days.is_empty() {
        return Ok(false);
    }
    days.iter().take(DAYS_PER_STEP).for_each(|day| attendee.forgotten.set(*day, false));
    // Its number is not given to anybody else; but who had it is forgotten.
    let stays = !attendee.days.is_empty() || !attendee.forgotten.is_empty();
    view.set_uncounted(row, stays.then_some(Row::Attendee(attendee)))?;
    Ok(days.len() > DAYS_PER_STEP)
}

/// Takes a forgotten day back from the day itself.
pub(crate) fn take_back(sheet: &Name, day: Day, number: u64, view: &mut View) -> Result<(), Stop> {
    mark(sheet, day, number, false, view)?;
    view.add(&TotalKey::Present { sheet: sheet.clone(), day }, -1).map(|_| ())
}

/// An id that is a plain number.
fn own_number(subject: &SubjectId) -> Option<u64> {
    let text = subject.as_str();
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|number| plain && *number < NUMBERED_FROM)
}

/// The subject's number on a sheet: its own, or the next one.
fn number(sheet: &Name, subject: &SubjectId, view: &mut View) -> Result<u64, Stop> {
    if let Some(number) = own_number(subject) {
        return Ok(number);
    }
    let row = Key::Sheet(sheet.clone());
    let next = view.kept(&row, Row::into_sheet)?.unwrap_or(NUMBERED_FROM);
    view.set_uncounted(row, Some(Row::Sheet(next + 1)))?;
    Ok(next)
}

fn chunk_key(sheet: &Name, day: Day, number: u64) -> ChunkKey {
    ChunkKey { sheet: sheet.clone(), day, chunk: number >> CHUNK_BITS }
}

/// Sets or clears a bit of a day, and keeps the list of the day's chunks, which hardly ever changes.
pub(super) fn mark(sheet: &Name, day: Day, number: u64, present: bool, view: &mut View) -> Result<(), Stop> {
    let (chunk, list) = (chunk_key(sheet, day, number), Key::Day((sheet.clone(), day)));
    let (row, chunk) = (Key::Chunk(chunk.clone()), chunk.chunk);
    let mut bits = view.kept(&row, Row::into_chunk)?.unwrap_or_default();
    let was_empty = bits.is_empty();
    let bit = (number & ((1 << CHUNK_BITS) - 1)) as u32;
    if bits.contains(bit) == present {
        return Err(Refusal::Broken(format!("{sheet} {day}: bit {number} is not as the subject's days say")).into());
    }
    bits.set(bit, present);
    let is_empty = bits.is_empty();
    view.set_uncounted(row, (!is_empty).then_some(Row::Chunk(bits)))?;
    if was_empty == is_empty {
        return Ok(());
    }
    let mut chunks = view.kept(&list, Row::into_day)?.unwrap_or_default();
    match chunks.binary_search(&chunk) {
        Ok(place) if is_empty => _ = chunks.remove(place),
        Err(place) if was_empty => chunks.insert(place, chunk),
        _ => return Err(Refusal::Broken(format!("{sheet} {day}: its list of chunks is wrong")).into()),
    }
    view.set_uncounted(list, (!chunks.is_empty()).then_some(Row::Day(chunks)))
}

/// How many days in a row end with this one.
pub fn run_up_to(days: &RoaringBitmap, day: Day) -> u32 {
    let mut run = 0;
    while run <= day.0 && days.contains(day.0 - run) {
        run += 1;
    }
    run
}

/// The streak as of a day: that one may be missing still, since it is not over.
pub fn current_streak(days: &RoaringBitmap, today: Day) -> u32 {
    match run_up_to(days, today) {
        0 if today.0 > 0 => run_up_to(days, Day(today.0 - 1)),
        run => run,
    }
}

/// The longest run of days in a row.
pub fn longest_streak(days: impl Iterator<Item = u32>) -> u32 {
    let (mut longest, mut run, mut next) = (0, 0, None);
    for day in days {
        run = if next == Some(day) { run + 1 } else { 1 };
        next = day.checked_add(1);
        longest = longest.max(run);
    }
    longest
}
