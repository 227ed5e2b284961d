//! The rows of attendance: bitmaps of days, and the days of every subject.

use std::fmt;
use std::sync::Arc;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::audit;
use crate::day::Day;
use crate::id::{Name, SubjectId};
use crate::rows::{Kind, NumberOf, TotalKey, as_base64, columns, declare, in_bytes, kind};
use crate::verify::Audit;

/// A set of small numbers: a compressed bitmap.
#[derive(Clone, Default)]
pub struct Bits {
    bitmap: Arc<RoaringBitmap>,
    /// As it was read, so that a store that compares bytes sees the same ones again.
    read: Option<Arc<[u8]>>,
}

impl PartialEq for Bits {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.bitmap, &other.bitmap) || self.bitmap == other.bitmap
    }
}

impl Eq for Bits {}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bits({} of them)", self.bitmap.len())
    }
}

impl Bits {
    /// The bitmap itself.
    pub fn bitmap(&self) -> &RoaringBitmap {
        &self.bitmap
    }

    /// Whether a number is in it.
    pub fn contains(&self, number: u32) -> bool {
        self.bitmap.contains(number)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bitmap.is_empty()
    }

    /// What is in one of them.
    pub fn union(&self, other: &Self) -> Self {
        Self { bitmap: Arc::new(self.bitmap() | other.bitmap()), read: None }
    }

    /// Puts a number in, or takes it out.
    pub fn set(&mut self, number: u32, there: bool) {
        self.read = None;
        let bitmap = Arc::make_mut(&mut self.bitmap);
        if there {
            bitmap.insert(number)
        } else {
            bitmap.remove(number)
        };
    }

    /// As bytes, in the format that bitmaps have everywhere.
    pub fn to_bytes(&self) -> Vec<u8> {
        if let Some(bytes) = &self.read {
            return bytes.to_vec();
        }
        let mut bitmap = RoaringBitmap::clone(&self.bitmap);
        bitmap.optimize();
        let mut bytes = Vec::with_capacity(bitmap.serialized_size());
        // Writing into memory does not fail.
        let _ = bitmap.serialize_into(&mut bytes);
        bytes
    }

    /// From its bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bitmap = Arc::new(RoaringBitmap::deserialize_from(bytes).ok()?);
        Some(Self { bitmap, read: Some(bytes.into()) })
    }
}

as_base64!(Bits);

/// Numbers in one chunk of a day's bitmap.
pub const CHUNK_BITS: u32 = 13;

/// Names 8,192 bits of a day.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ChunkKey {
    /// The sheet.
    pub sheet: Name,
    /// The day.
    pub day: Day,
    /// Which: the upper part of the numbers in it.
    pub chunk: u64,
}

/// A subject on a sheet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attendee {
    /// Its number in the bitmaps.
    pub number: u64,
    /// The days on which it was there.
    pub days: Bits,
    /// Days that were forgotten and wait to be taken back: they still count for the day, not for the subject.
    #[serde(default, skip_serializing_if = "Bits::is_empty")]
    pub forgotten: Bits,
}

impl Attendee {
    /// The days that count it: on each of them its bit is set.
    pub fn counted(&self) -> Bits {
        if self.forgotten.is_empty() { self.days.clone() } else { self.forgotten.union(&self.days) }
    }
}

/// How many were there on each day, as totals.
pub(crate) const PRESENT: NumberOf =
    NumberOf { table: "attendance_present", letter: b'P', mark: "@", with_key: false, listed: None };

in_bytes!(Bits);
columns!(ChunkKey { sheet, day, chunk });
columns!(Attendee { number, days, forgotten });

impl Kind for kind::Sheet {
    declare!(Sheet = b'h' "attendance_sheet" in "attendance"
        ("sheet" Text) => ("next_number" Number)
        Absent With(0));
}

impl Kind for kind::Day {
    declare!(Day = b'g' "attendance_day" in "attendance"
        ("sheet" Text, "day" Day) => ("chunks" Numbers)
        Absent With(0));

    const AUDIT: Option<Audit<Self>> = Some(Audit { claims: Some(audit::day), ..Audit::NOTHING });
}

impl Kind for kind::Chunk {
    declare!(Chunk = b'i' "attendance_chunk" in "attendance"
        ("sheet" Text, "day" Day, "chunk" Number) => ("bits" Bytes)
        Absent With(0));

    const AUDIT: Option<Audit<Self>> = Some(Audit { claims: Some(audit::chunk), ..Audit::NOTHING });
}

impl Kind for kind::Attendee {
    declare!(Attendee = b'f' "attendee" in "attendance"
        ("sheet" Text, "subject" Text) => ("number" Number, "days" Bytes, "forgotten" Bytes)
        Absent With(0));

    const AUDIT: Option<Audit<Self>> =
        Some(Audit { claims: Some(audit::attendee), owns: Some(audit::owner), ..Audit::NOTHING });

    fn counts((sheet, _): &(Name, SubjectId), attendee: &Attendee, mut add: impl FnMut(TotalKey, i64)) {
        for day in attendee.counted().bitmap() {
            add(TotalKey::Present { sheet: sheet.clone(), day: Day(day) }, 1);
        }
    }
}
