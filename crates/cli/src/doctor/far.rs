//! What is looked at in every store that is reached over a network.

use std::path::PathBuf;

use super::Report;
use super::store::recount;
use crate::target::Local;

/// More than a network can explain.
pub(super) const CLOCK_APART_MS_MAX: i64 = 2_000;

/// It does not answer.
pub(super) fn unreachable(name: &str, error: &impl ToString, report: &mut Report) {
    let advice = format!("check the URL, the network, the password, and that {name} takes connections from here");
    report.fail("reach", error.to_string(), advice);
}

/// Whether what is said on the way can be read. `advice` tells how to change that.
pub(super) fn encryption(is_encrypted: bool, is_far: bool, advice: &str, report: &mut Report) {
    match (is_encrypted, is_far) {
        (true, _) => report.ok("encryption", "TLS"),
        (false, false) => report.ok("encryption", "none, and none is needed on one machine"),
        (false, true) => report.warn("encryption", "none: passwords and data can be read on the way", advice),
    }
}

/// Whether its clock is right; `whose` clock it is.
pub(super) fn clock(whose: &str, ahead_ms: i64, report: &mut Report) {
    if ahead_ms.abs() > CLOCK_APART_MS_MAX {
        let found = format!("{whose} clock is {ahead_ms:+} ms from this machine's");
        report.warn("clock", found, format!("set both, such as by NTP; {whose} stamps, this one's judges tokens"));
    } else {
        report.ok("clock", format!("{whose} agrees with this machine's"));
    }
}

/// Opens it, and recounts everything.
pub(super) async fn every_row(url: &str, config: Option<PathBuf>, report: &mut Report) {
    match Local::open(url, config).await {
        Ok(local) => {
            recount(&local, report).await;
            local.close().await;
        }
        Err(error) => report.fail("open", error.text(), "do what it says"),
    }
}
