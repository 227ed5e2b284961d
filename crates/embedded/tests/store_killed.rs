//! A process killed with SIGKILL under load, again and again: whatever it acknowledged is there.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod store_common;

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use store_common::{block_on, numbered, numbered_len, tiny};
use tally_embedded::store::{Batch, Options, Store};

const CHILD: &str = "TALLY_STORE_KILLED_CHILD";

#[test]
fn nothing_acknowledged_is_lost_to_a_kill() {
    if let Ok(folder) = std::env::var(CHILD) {
        write_until_killed(folder.as_ref());
    }
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for round in 0..12 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "nothing_acknowledged_is_lost_to_a_kill", "--nocapture"])
            .env(CHILD, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // A different moment each time: of rotation, freezing, moving, merging.
        let wanted = 40 + 37 * round;
        let mut seen = 0;
        while seen < wanted {
            let line = lines.next().expect("the child writes until it is killed").unwrap();
            if let Some(position) = line.strip_prefix("acknowledged ") {
                acknowledged = position.parse().unwrap();
                seen += 1;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it acknowledged and we had not read yet counts too.
        for line in lines.map_while(Result::ok) {
            if let Some(Ok(position)) = line.strip_prefix("acknowledged ").map(str::parse) {
                acknowledged = position;
            }
        }
        let store = Store::open(folder.path(), tiny()).unwrap();
        let there = numbered_len(&store);
        assert!(there >= acknowledged, "{acknowledged} were acknowledged, {there} are there");
    }
    assert!(acknowledged > 1_000);
}

fn write_until_killed(folder: &std::path::Path) -> ! {
    let options = Options { overlay_bytes_max: 8_000, segment_bytes: 16_384, ..tiny() };
    let store = Store::open(folder, options).unwrap();
    let mut batch = Batch::new();
    let mut flying = std::collections::VecDeque::new();
    let mut n = numbered_len(&store);
    loop {
        n += 1;
        numbered(&mut batch, n);
        block_on(store.ready()).unwrap();
        flying.push_back((n, store.apply(&batch).unwrap()));
        if flying.len() == 3 {
            let (n, position) = flying.pop_front().unwrap();
            block_on(store.wait(position)).unwrap();
            let mut out = std::io::stdout().lock();
            writeln!(out, "acknowledged {n}").unwrap();
            out.flush().unwrap();
        }
    }
}
