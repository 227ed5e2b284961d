//! A settings file: accepted, or explained; never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::sync::LazyLock;
use tally_settings::Unjudged;

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("tally-fuzz-{}.toml", std::process::id())));

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*FILE, bytes).expect("the temporary folder can be written");
    for problem in tally_settings::check(&FILE, &Unjudged) {
        let text = problem.to_string();
        assert!(!text.is_empty());
    }
});
