//! What rows of attendance say about each other: a day's total is its bits, a day lists the chunks that are there, and a bit is
//! set for whom the day counts by the days of their own.

use super::rule::{NUMBERED_FROM, mark};
use crate::day::Day;
use crate::id::{Name, SubjectId};
use crate::rows::{Attendee, Bits, CHUNK_BITS, ChunkKey, Key, Row, RowKind, TotalKey};
use crate::verify::{self, Claims, Judged, Known, Owner, Said};
use crate::view::{Stop, View};

/// What is said twice.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fact {
    /// The day lists a chunk, and the chunk is there.
    Listed(ChunkKey),
    /// A bit of a day is set, and the days of whoever has the number say so.
    Bit {
        /// The sheet.
        sheet: Name,
        /// The day.
        day: Day,
        /// The number.
        number: u64,
    },
    /// The total of a day is its bits.
    Present {
        /// The sheet.
        sheet: Name,
        /// The day.
        day: Day,
    },
}

/// The number that a subject has on a sheet: no other has it.
pub(super) fn owner((sheet, _): &(Name, SubjectId), attendee: &Attendee) -> Owner {
    Owner { kind: RowKind::Attendee, within: sheet.clone(), number: attendee.number }
}

/// What a day's list says.
pub(super) fn day((sheet, day): &(Name, Day), chunks: &Vec<u64>, _known: &Known, claims: &mut Claims<'_>) {
    for chunk in chunks {
        claims.said(listed(ChunkKey { sheet: sheet.clone(), day: *day, chunk: *chunk }), 1);
    }
}

/// What a part of a day's bitmap says.
pub(super) fn chunk(key: &ChunkKey, bits: &Bits, _known: &Known, claims: &mut Claims<'_>) {
    claims.counted(present(&key.sheet, key.day), bits.bitmap().len().cast_signed());
    // One without bits counts as not there, as the rule has it.
    claims.counted(listed(key.clone()), i64::from(!bits.is_empty()));
    for number in bits.bitmap() {
        claims.said(bit(&key.sheet, key.day, key.chunk << CHUNK_BITS | u64::from(number)), 1);
    }
}

/// What the days of a subject say.
pub(super) fn attendee((sheet, _): &(Name, SubjectId), attendee: &Attendee, _known: &Known, claims: &mut Claims<'_>) {
    for day in attendee.counted().bitmap() {
        claims.counted(bit(sheet, Day(day), attendee.number), 1);
    }
}

fn total(sheet: &Name, day: Day) -> TotalKey {
    TotalKey::Present { sheet: sheet.clone(), day }
}

/// The total of a day as a fact.
pub(crate) fn present(sheet: &Name, day: Day) -> verify::Fact {
    Fact::Present { sheet: sheet.clone(), day }.into()
}

fn listed(key: ChunkKey) -> verify::Fact {
    Fact::Listed(key).into()
}

fn bit(sheet: &Name, day: Day, number: u64) -> verify::Fact {
    Fact::Bit { sheet: sheet.clone(), day, number }.into()
}

/// A day's total and its bits, of the chunks that it lists.
fn look_at_day(sheet: &Name, day: Day, view: &mut View) -> Result<Judged, Stop> {
    let chunks = list_of(sheet, day, view)?;
    let keys: Vec<Key> =
        chunks.into_iter().map(|chunk| Key::Chunk(ChunkKey { sheet: sheet.clone(), day, chunk })).collect();
    view.want(&keys, &[])?;
    let mut counted = 0;
    for key in &keys {
        if let Some(Row::Chunk(bits)) = view.row_uncounted(key)? {
            counted += bits.bitmap().len().cast_signed();
        }
    }
    Ok(Judged { said: view.total_decided(&total(sheet, day))?, counted })
}

fn list_of(sheet: &Name, day: Day, view: &mut View) -> Result<Vec<u64>, Stop> {
    Ok(match view.row_uncounted(&Key::Day((sheet.clone(), day)))? {
        Some(Row::Day(chunks)) => chunks,
        _ => Vec::new(),
    })
}

impl Said for Fact {
    fn comes_first(&self) -> bool {
        matches!(self, Self::Listed(_))
    }

    fn owner(&self) -> Option<Owner> {
        match self {
            Self::Bit { sheet, number, .. } => {
                Some(Owner { kind: RowKind::Attendee, within: sheet.clone(), number: *number })
            }
            Self::Listed(_) | Self::Present { .. } => None,
        }
    }

    fn who(&self) -> Option<Key> {
        match self {
            Self::Bit { sheet, number, .. } => {
                let subject = SubjectId::new(&number.to_string()).ok().filter(|_| *number < NUMBERED_FROM);
                subject.map(|subject| Key::Attendee((sheet.clone(), subject)))
            }
            Self::Listed(_) | Self::Present { .. } => None,
        }
    }

    fn total(&self) -> Option<TotalKey> {
        match self {
            Self::Present { sheet, day } => Some(total(sheet, *day)),
            Self::Listed(_) | Self::Bit { .. } => None,
        }
    }

    /// The total of a day cannot be looked at as long as its list is wrong.
    fn unsettles(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Listed(key), Self::Present { sheet, day }) => (sheet, *day) == (&key.sheet, key.day),
            (Self::Listed(_) | Self::Bit { .. } | Self::Present { .. }, _) => false,
        }
    }

    fn look(&self, who: Option<&Key>, view: &mut View) -> Result<Judged, Stop> {
        match self {
            Self::Listed(key) => {
                let rows = [Key::Chunk(key.clone()), Key::Day((key.sheet.clone(), key.day))];
                view.want(&rows, &[])?;
                let times = list_of(&key.sheet, key.day, view)?.iter().filter(|chunk| **chunk == key.chunk).count();
                let is_there = matches!(view.row_uncounted(&rows[0])?, Some(Row::Chunk(bits)) if !bits.is_empty());
                Ok(Judged { said: times as i64, counted: i64::from(is_there) })
            }
            Self::Bit { sheet, day, number } => {
                let chunk = Key::Chunk(ChunkKey { sheet: sheet.clone(), day: *day, chunk: number >> CHUNK_BITS });
                let rows: Vec<Key> = [chunk.clone()].into_iter().chain(who.cloned()).collect();
                view.want(&rows, &[])?;
                let lower = (number & ((1 << CHUNK_BITS) - 1)) as u32;
                let set = matches!(view.row_uncounted(&chunk)?, Some(Row::Chunk(bits)) if bits.contains(lower));
                let mut counts = false;
                if let Some(who) = who
                    && let Some(Row::Attendee(attendee)) = view.row_uncounted(who)?
                {
                    counts = attendee.number == *number && attendee.counted().contains(day.0);
                }
                Ok(Judged { said: i64::from(set), counted: i64::from(counts) })
            }
            Self::Present { sheet, day } => look_at_day(sheet, *day, view),
        }
    }

    /// Makes the list, or the bit and the total with it, what the rows behind them say.
    fn put_right(&self, who: Option<&Key>, view: &mut View) -> Result<bool, Stop> {
        let Judged { said, counted } = self.look(who, view)?;
        if said == counted {
            return Ok(false);
        }
        match self {
            Self::Listed(key) => {
                let mut chunks = list_of(&key.sheet, key.day, view)?;
                chunks.retain(|chunk| *chunk != key.chunk);
                if counted == 1 {
                    chunks.insert(chunks.partition_point(|chunk| *chunk < key.chunk), key.chunk);
                }
                let list = Key::Day((key.sheet.clone(), key.day));
                view.set_uncounted(list, (!chunks.is_empty()).then_some(Row::Day(chunks)))?;
            }
            Self::Bit { sheet, day, number } => {
                mark(sheet, *day, *number, counted == 1, view)?;
                view.add(&total(sheet, *day), counted - said)?;
            }
            Self::Present { sheet, day } => _ = view.add(&total(sheet, *day), counted - said)?,
        }
        Ok(true)
    }

    fn words(&self, judged: Judged, who: Option<&Key>) -> String {
        let whose =
            if let Some(Key::Attendee((_, subject))) = who { format!("{subject}, number") } else { "number".into() };
        match self {
            Self::Listed(key) => {
                let (sheet, day, chunk) = (&key.sheet, key.day, key.chunk);
                match judged.counted {
                    0 => format!("attendance {sheet} on {day}: its list names chunk {chunk}, which is not there"),
                    _ => format!(
                        "attendance {sheet} on {day}: chunk {chunk} is there, and the list names it {} times",
                        judged.said
                    ),
                }
            }
            Self::Bit { sheet, day, number } if judged.said == 0 => format!(
                "attendance {sheet} on {day}: {whose} {number} was there by the days of their own, and the day's bitmap says not"
            ),
            Self::Bit { sheet, day, number } => format!(
                "attendance {sheet} on {day}: {whose} {number} was there by the day's bitmap, and by the days of {} subjects",
                judged.counted
            ),
            Self::Present { sheet, day } => total(sheet, *day).words(judged),
        }
    }
}
