//! The oracle itself is held to the suite.

use tally_conformance::{EngineFactory, run, trials};
use tally_engine::memory::Memory;

struct Fresh;

impl EngineFactory for Fresh {
    type Engine = Memory;
    type Place = ();

    fn place(&self) {}

    async fn open(&self, _place: &()) -> Memory {
        Memory::default()
    }

    fn reopens(&self) -> bool {
        false
    }
}

fn main() {
    run(trials("memory", Fresh))
}
