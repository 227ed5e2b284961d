//! The rows of counting: sketches, bitmaps, scores, limits.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use datasketches::hll::{HllSketch, HllType, HllUnion};
use roaring::RoaringBitmap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::day::Day;
use crate::id::{KeyId, Name, SubjectId};
use crate::time::{Stamp, Timestamp};

/// Names a counter or a unique count: a declared name, and what is counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct CountKey {
    /// The declared name.
    pub name: Name,
    /// What is counted.
    pub key: KeyId,
}

/// Names what has been used of a limit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct LimitKey {
    /// A declared limit, or the capability that has one, such as `relations.like`.
    pub name: String,
    /// Whose use it is: a digest of a subject, an object or an address.
    pub key: String,
}

/// Registers are 2 to the power of this: 16,384 of four bits each.
const SKETCH_LG_K: u8 = 14;

/// The error that is stated: the standard error of a union. That of a single key is smaller.
pub const SKETCH_ERROR: f64 = 0.0081;

/// How many different ones, in at most 12 KB: a HyperLogLog sketch that begins as a list.
#[derive(Clone)]
pub struct Sketch {
    sketch: Arc<HllSketch>,
    /// As it was read: a store that compares bytes is to see the same ones again.
    read: Option<Arc<[u8]>>,
}

impl PartialEq for Sketch {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.sketch, &other.sketch) || self.sketch == other.sketch
    }
}

// There is no number in a sketch that is not equal to itself.
impl Eq for Sketch {}

impl fmt::Debug for Sketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sketch({})", self.estimate())
    }
}

impl Default for Sketch {
    fn default() -> Self {
        let sketch = HllSketch::new(SKETCH_LG_K, HllType::Hll4).expect("the size is a valid one");
        Self { sketch: Arc::new(sketch), read: None }
    }
}

impl Sketch {
    /// Notes a member; the same one again changes nothing.
    pub fn add(&mut self, member: &str) {
        self.read = None;
        Arc::make_mut(&mut self.sketch).update(member);
    }

    /// About how many different members were added.
    pub fn estimate(&self) -> u64 {
        self.sketch.estimate().round() as u64
    }

    /// About how many different members were added to any of these.
    pub fn union_estimate<'a>(sketches: impl Iterator<Item = &'a Self>) -> u64 {
        let mut union = HllUnion::new(SKETCH_LG_K).expect("the size is a valid one");
        sketches.for_each(|sketch| union.update(&sketch.sketch));
        union.estimate().round() as u64
    }

    /// As bytes, the same in every store.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.read.as_ref().map_or_else(|| self.sketch.serialize(), |bytes| bytes.to_vec())
    }

    /// From its bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let sketch = Arc::new(HllSketch::deserialize(bytes).ok()?);
        Some(Self { sketch, read: Some(bytes.into()) })
    }
}

/// A set of small numbers: a compressed bitmap.
#[derive(Clone, Default)]
pub struct Bits {
    bitmap: Arc<RoaringBitmap>,
    /// As it was read, see [`Sketch`].
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

/// Bytes in a row that is written as JSON.
macro_rules! as_base64 {
    ($name:ident) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&STANDARD.encode(self.to_bytes()))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = String::deserialize(from)?;
                let bytes = STANDARD.decode(text).map_err(de::Error::custom)?;
                Self::from_bytes(&bytes).ok_or_else(|| de::Error::custom("these bytes cannot be read"))
            }
        }
    };
}
as_base64!(Sketch);
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

/// Names a board in one of its seasons.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct BoardKey {
    /// The board.
    pub board: Name,
    /// When the season began; 0 for a board without seasons.
    pub season: Timestamp,
    /// Not the members but the different scores that they have, each once: what `dense` ranks count.
    pub levels: bool,
}

/// What is known of a board beyond its scores.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Board {
    /// When each season began, the newest last.
    pub seasons: Vec<Timestamp>,
    /// Whether the different scores are counted beside the members, as `dense` ranks need it. From the first score on.
    pub dense: bool,
}

/// Names a member's score.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ScoreKey {
    /// The board.
    pub board: BoardKey,
    /// The member.
    pub member: SubjectId,
}

/// A member's score. Higher ones stand first; of equal ones, those that were reached first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Score {
    /// The score, between plus and minus [`crate::limits::SCORE_MAX`].
    pub score: i64,
    /// When it was reached. In a board of levels: how many members have it.
    pub reached: Stamp,
}

/// A place in the order of a board. A store is asked how many members stand before it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Standing {
    /// The board.
    pub board: BoardKey,
    /// The score.
    pub score: i64,
    /// Where among those with this score.
    pub among: Among,
}

/// A place among members with one score.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Among {
    /// Before all of them.
    First,
    /// Behind all of them.
    Last,
    /// Where this one stands, or would.
    At {
        /// When it reached the score.
        reached: Stamp,
        /// The member.
        member: SubjectId,
    },
}

impl Standing {
    /// Where a member stands.
    pub fn of(key: &ScoreKey, score: Score) -> Self {
        let among = Among::At { reached: score.reached, member: key.member.clone() };
        Self { board: key.board.clone(), score: score.score, among }
    }

    /// Whether a member stands before this place.
    pub fn is_behind(&self, member: &SubjectId, score: Score) -> bool {
        match score.score.cmp(&self.score) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => match &self.among {
                Among::First => false,
                Among::Last => true,
                Among::At { reached, member: other } => (score.reached, member) < (*reached, other),
            },
        }
    }
}

/// What has been used of a limit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Used {
    /// How much, in the way of its algorithm.
    pub state: UsedState,
    /// When to look whether the row may go. Not later than that, and not moved with every use.
    pub look_at: Timestamp,
}

/// The memory of each algorithm. Times are microseconds since 1970.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsedState {
    /// When each use was, and what it cost; oldest first.
    Log(Vec<(u64, u64)>),
    /// What was used in the window that began then, and in the one before it.
    Window {
        /// When the window began.
        start: u64,
        /// Used in it.
        current: u64,
        /// Used in the one before.
        previous: u64,
    },
    /// When the bucket will be full again, in nanoseconds since 1970.
    Bucket {
        /// The time.
        full_at: u64,
    },
}
