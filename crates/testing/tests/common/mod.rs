//! What the tests of every service need.

use std::path::Path;
use std::process::{Command, Stdio};

/// Waits for a path to go, in another process, with an end.
pub(crate) fn wait_until_gone(path: &Path) {
    let script = "while [ -e \"$0\" ]; do sleep 0.02; done";
    let status = Command::new("timeout").args(["60", "sh", "-c", script]).arg(path).status().unwrap();
    assert!(status.success(), "{} is still there", path.display());
}

/// A script that runs while the services that tests share do.
pub(crate) fn with_services(script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_with-services"));
    command.args(["sh", "-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}
