//! `tally room watch`: a room, once a second.

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tally::core::Name;
use tally::core::query::{MinutesQuery, RoomQuery};
use tally::core::room::read::{MinutesAnswer, RoomAnswer};
use tokio::time::MissedTickBehavior;

use super::words::{about, word};
use crate::failure::Failure;
use crate::output::{say, table};
use crate::target::{self, Target, TargetArgs};

const EVERY: Duration = Duration::from_secs(1);
const MINUTE_MS: u64 = 60_000;

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The room
    #[arg(value_parser = Name::new)]
    room: Name,
    /// Look once, and end
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: WatchArgs) -> Result<(), Failure> {
    let WatchArgs { room, once, target: to } = args;
    let watching = target::with(&to, async |target| {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let screen = (!once && !to.json && std::io::stdout().is_terminal()).then(screen);
        loop {
            ticks.tick().await;
            let answer = target.read(&RoomQuery { room: room.clone() }).await?;
            if to.json {
                answer.show(true, |_: RoomAnswer| String::new())?;
            } else {
                let now: RoomAnswer = answer.read()?;
                let let_in = last_minute(target, &now).await?;
                match &screen {
                    Some(screen) => screen.set_message(drawn(&now, let_in)),
                    None if once => say(&drawn(&now, let_in))?,
                    None => say(&line(&now, let_in))?,
                }
            }
            if once {
                return Ok(());
            }
        }
    });
    tokio::select! {
        watched = watching => watched,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

/// Where the table is drawn again and again.
fn screen() -> ProgressBar {
    let style = ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
    bar.set_style(style);
    bar
}

/// How many were let in during the last whole minute: the one that runs is written down when it is over.
async fn last_minute(target: &Target, now: &RoomAnswer) -> Result<u64, Failure> {
    let minute = tally::core::Timestamp((now.as_of.0 / MINUTE_MS).saturating_sub(1) * MINUTE_MS);
    let ask = MinutesQuery { room: now.room.clone(), from: Some(minute), to: Some(minute) };
    let minutes: MinutesAnswer = target.read(&ask).await?.read()?;
    Ok(minutes.items.iter().map(|item| item.admitted).sum())
}

fn drawn(now: &RoomAnswer, let_in: u64) -> String {
    let row = [
        now.room.to_string(),
        word(now.settings.mode),
        now.waiting.to_string(),
        now.ready.to_string(),
        format!("{} of {}", now.admitted, now.settings.capacity),
        format!("{:.1} a second of {}", let_in as f64 / 60.0, now.settings.rate_per_s.per_s()),
        about(now.eta_ms),
        now.as_of.to_string(),
    ];
    let header = ["room", "mode", "waiting", "ready", "admitted", "last minute", "wait of a newcomer", "as of"];
    table(header, vec![row])
}

fn line(now: &RoomAnswer, let_in: u64) -> String {
    format!(
        "{} {}: {} waiting, {} ready, {} of {} admitted, {let_in} let in last minute, wait {}, mode {}",
        now.as_of,
        now.room,
        now.waiting,
        now.ready,
        now.admitted,
        now.settings.capacity,
        about(now.eta_ms),
        word(now.settings.mode),
    )
}
