//! The embedded store is held to the suite: as it comes, and with an overlay so small that rows
//! move into the tables all the time.

use tally_conformance::{EngineFactory, run, trials};
use tally_embedded::{Embedded, Options};
use tempfile::TempDir;

struct Folder(Options);

impl EngineFactory for Folder {
    type Engine = Embedded;
    type Place = TempDir;

    fn place(&self) -> TempDir {
        tempfile::tempdir().expect("a temporary folder can be made")
    }

    async fn open(&self, place: &TempDir) -> Embedded {
        Embedded::open(place.path(), self.0.clone()).expect("a store opens in an empty folder or in its own")
    }
}

fn main() {
    // Hundreds of stores are opened; none of them needs a log of the usual size.
    let usual = Options { segment_bytes: 1 << 20, cache_bytes: 1 << 20, ..Options::default() };
    let small = Options { overlay_bytes_max: 4 << 10, ..usual.clone() };
    let mut all = trials("embedded", Folder(usual));
    // Where rows lie makes no difference to the steps at which the crash suite fails them, and that
    // suite spends its time waiting for the disk; once is enough.
    all.extend(trials("embedded-small", Folder(small)).into_iter().filter(|trial| !trial.name().contains("::crash::")));
    run(all)
}
