//! The rows of unique counts: sketches.

use std::fmt;
use std::sync::Arc;

use datasketches::hll::{HllSketch, HllType, HllUnion};

use crate::rows::{Kind, as_base64, declare, in_bytes, kind};

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

as_base64!(Sketch);

in_bytes!(Sketch);

impl Kind for kind::Unique {
    declare!(Unique = b'q' "unique_count" in "unique"
        ("unique_name" Text, "key" Text) => ("sketch" Bytes)
        Absent With(1));
}
