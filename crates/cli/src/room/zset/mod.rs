//! `tally room import-zset`: a queue that is a sorted set in Redis becomes a room's.

mod args;
mod copy;
mod pages;
mod report;
mod shadow;

use std::time::{Duration, Instant};

use tally::core::room::read::RoomAnswer;
use tally::core::room::{Mode, TOKEN_BYTES_MAX};
use tally_settings::duration_text;

use crate::failure::Failure;
use crate::import::Source;
use crate::output::say;
use crate::progress;
use crate::target::{self, Target};
use args::Way;
pub(super) use args::{AFTER_HELP, ZsetArgs};
use copy::Copying;
use report::Report;
use shadow::Shadow;

/// Less is soon over for people who do not know yet that they have a ticket.
const IDLE_TTL_MS_ADVISED: u64 = 3_600_000;

pub(super) async fn run(args: ZsetArgs) -> Result<(), Failure> {
    let into = args.into.target();
    let done = target::with(&into, async |target| import(&args, into.json, target).await).await;
    // Other commands name a server with --url, and its key with --key.
    done.map_err(|failure| {
        let text = failure.text().replace("with --url", "with --server").replace("with --key", "with --server-key");
        Failure::new(text).exiting(failure.exit)
    })
}

async fn import(args: &ZsetArgs, json: bool, target: &Target) -> Result<(), Failure> {
    let ZsetArgs { key, room, mode, dry_run, .. } = args;
    if *mode == Way::Off {
        return say(&format!(
            "Nothing is copied. To go back, have your servers use {key} again: nothing was taken from it. Who has joined \
             `{room}` since the switch is only there; see `tally room show {room}`. When nobody needs it any more: \
             tally room delete {room} --yes"
        ));
    }
    let token = format!("zset:{key}");
    if token.len() > TOKEN_BYTES_MAX {
        return Err(Failure::usage(format!("--key has at most {} bytes", TOKEN_BYTES_MAX - "zset:".len())));
    }
    let source = Source::open(&args.url).await?;
    let kind: String = source.asked(redis::cmd("TYPE").arg(key)).await?;
    match kind.as_str() {
        "zset" | "none" => {}
        other => return Err(Failure::new(format!("{key} in {} is a {other}, not a sorted set", source.shown()))),
    }
    warn(&super::found(target, room).await?);
    let started = Instant::now();
    let report =
        Report { room: room.to_string(), key: key.clone(), mode: *mode, dry_run: *dry_run, ..Report::default() };
    let bar = progress::rows(if *dry_run { "reading" } else { "joining" });
    let mut copying = Copying { source: &source, target, key, room, token, report, bar };
    let done = match mode {
        Way::Shadow if !*dry_run => Shadow::new(&mut copying, args.lasting, json).run().await,
        Way::Once | Way::Shadow | Way::Only | Way::Off => copying.pass().await,
    };
    copying.bar.finish_and_clear();
    done.map_err(|failure| {
        let text = format!("{}; the same command goes on, and gives nobody a second ticket", failure.text());
        Failure::new(text).exiting(failure.exit)
    })?;
    copying.report.elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    copying.report.show(json)?;
    if copying.report.refused == 0 { Ok(()) } else { Err(Failure::reported(1)) }
}

/// Says what is probably not meant.
fn warn(room: &RoomAnswer) {
    let (name, settings) = (&room.room, &room.settings);
    if settings.mode != Mode::Hold {
        eprintln!(
            "tally: `{name}` is not on hold: whoever joins it now stands before those who are not copied yet, and people may be \
             let in meanwhile; `tally room hold {name}` first"
        );
    }
    if settings.idle_ttl_ms < IDLE_TTL_MS_ADVISED {
        let idle = duration_text(Duration::from_millis(settings.idle_ttl_ms));
        eprintln!(
            "tally: a ticket without a sign of life is given up after {idle}: until people's apps ask Tally, set more, such as \
             `tally room set {name} --idle-ttl 24h`"
        );
    }
}
