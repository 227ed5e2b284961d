//! A running server: does it answer, is it ready, is it of this release, does it know us.

use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount};
use tally::VerifyReport;
use tally_client::{Answer, Call, Client, Error};

use super::{Report, rooms};
use crate::failure::Failure;
use crate::progress;
use crate::target::{Remote, TargetArgs};
use crate::verify::is_sound;

const TIMEOUT: Duration = Duration::from_secs(10);
/// More is not the network any more.
const CLOCK_APART_S_MAX: i64 = 30;

/// Looks at a server.
pub(super) async fn examine(target: &TargetArgs, full: bool, report: &mut Report) -> Result<(), Failure> {
    let remote = Remote::new(target)?;
    let client = remote.client();
    if !reach(client, report).await? {
        return Ok(());
    }
    match get(client.readyz()).await {
        Ok(_) => report.ok("store", "answers and takes writes"),
        Err(error) => report.fail("store", error.text(), "see the server's log, and its disk"),
    }
    version(client, report).await;
    let is_admin = key(client, report).await;
    if is_admin {
        figures(client, report).await;
        rooms::examine(client, report).await;
    }
    if full && is_admin {
        let bar = progress::rows("recounting");
        let verified = remote.verify(false, |rows| bar.set_position(rows)).await;
        bar.finish_and_clear();
        counts(verified, report);
    } else if full {
        report.warn("counts", "not recounted", "give an admin key");
    }
    Ok(())
}

/// What a recount found.
pub(super) fn counts(verified: Result<VerifyReport, Failure>, report: &mut Report) {
    match verified {
        Ok(found) if is_sound(&found) => {
            let (totals, edges) = (HumanCount(found.totals), HumanCount(found.edges));
            report.ok("counts", format!("{totals} totals equal their {edges} edges"));
        }
        Ok(found) => {
            let text = format!("{} totals drifted, {} lists do not agree", found.drifted, found.strays.len());
            report.fail("counts", text, "see `tally verify`, and mend with `tally verify --repair`");
        }
        Err(error) => report.fail("counts", error.text(), "try again"),
    }
}

async fn get<T>(call: Call<T>) -> Result<Answer, Failure> {
    Ok(call.timeout(TIMEOUT).answer().await?)
}

async fn reach(client: &Client, report: &mut Report) -> Result<bool, Failure> {
    let started = Instant::now();
    let answer = match get(client.healthz()).await {
        Ok(answer) => answer,
        Err(error) => {
            report.fail("reach", error.text(), "start the server, or correct the URL");
            return Ok(false);
        }
    };
    report.ok("reach", format!("{} answers in {} ms", client.base(), started.elapsed().as_millis()));
    if !client.is_encrypted() && !client.is_loopback() {
        let advice = "use https: set [tls], or put a TLS proxy in front";
        report.warn("encryption", "plain HTTP over the network: keys and tokens can be read on the way", advice);
    }
    if let Some(apart) = answer.header("date").and_then(clocks_apart_s) {
        if apart.abs() > CLOCK_APART_S_MAX {
            report.warn(
                "clock",
                format!("the server's clock is {apart:+} s from this one"),
                "set both, such as by NTP",
            );
        } else {
            report.ok("clock", "the server's agrees with this one");
        }
    }
    Ok(true)
}

fn clocks_apart_s(date: &str) -> Option<i64> {
    let theirs = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
    Some(theirs.as_second() - jiff::Timestamp::now().as_second())
}

async fn version(client: &Client, report: &mut Report) {
    let own = env!("CARGO_PKG_VERSION");
    let text = match get(client.openapi()).await {
        Ok(answer) => answer.into_text(),
        Err(error) => return report.fail("version", error.text(), "is it a Tally server?"),
    };
    let contract: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    match contract["info"]["version"].as_str() {
        Some(theirs) if theirs == own => report.ok("version", theirs),
        Some(theirs) => report.warn("version", format!("{theirs}, and this is {own}"), "use one release for both"),
        None => report.fail("version", "unknown", "is it a Tally server?"),
    }
}

async fn key(client: &Client, report: &mut Report) -> bool {
    match client.keys().await {
        Ok(_) => {
            report.ok("key", "an admin's");
            return true;
        }
        Err(Error::Problem(problem)) if problem.code == "forbidden" => {
            report.warn("key", "accepted, but not an admin's", "figures and counts need an admin key");
        }
        Err(error) => report.fail("key", Failure::from(error).text(), "give a key with --key or TALLY_KEY"),
    }
    false
}

/// Reads what matters here from the server's metrics.
async fn figures(client: &Client, report: &mut Report) {
    let Ok(answer) = get(client.metrics()).await else {
        return report.warn("figures", "the metrics do not answer", "see the server's log");
    };
    let text = answer.text();
    let value = |name: &str| {
        let line = text.lines().find(|line| line.split([' ', '{']).next() == Some(name))?;
        line.rsplit(' ').next()?.parse::<f64>().ok()
    };
    let bytes = |name| value(name).map(|bytes| HumanBytes(bytes as u64).to_string());
    if let (Some(disk), Some(log)) = (bytes("tally_store_disk_bytes"), bytes("tally_store_log_bytes")) {
        report.ok("size", format!("{disk} on disk, {log} of it log"));
    }
    if let Some(times) = value("tally_browser_keys_total").filter(|times| *times > 0.0) {
        let advice = "use users' tokens in pages; the log names the keys: revoke them";
        report.warn("pages", format!("an API key came from a page in a browser, {times} times"), advice);
    }
    match value("tally_broken_decisions_total") {
        Some(broken) if broken > 0.0 => {
            report.fail("decisions", format!("{broken} failed an internal check"), "run `tally verify`, and report it");
        }
        _ => report.ok("decisions", "none failed an internal check"),
    }
}
