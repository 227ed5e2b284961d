//! A settings file: accepted, or explained; never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::sync::LazyLock;

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("tally-fuzz-{}.toml", std::process::id())));

fuzz_target!(|bytes: &[u8]| {
    // A file that a setting names would be read, and some never end.
    if bytes.windows(4).any(|window| window == b"/dev") {
        return;
    }
    std::fs::write(&*FILE, bytes).expect("the temporary folder can be written");
    for problem in tally_server::config::check(&FILE) {
        let text = problem.to_string();
        assert!(!text.is_empty());
    }
});
