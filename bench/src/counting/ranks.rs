//! Ranks on a board of ten million, on the embedded store, in process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tally::core::command::{Auth, Batch, Call, ChangeScore, Command, ScoreChange};
use tally::core::query::StandingQuery;
use tally::core::{Name, SubjectId};
use tally::{Options, Tally};
use tally_testing::{Folder, memory_bytes};

use super::asks::first_score;
use crate::progress::Progress;
use crate::report::Report;

const BATCH: u32 = 500;
const READS: u32 = 20_000;

/// Fills a board, and measures ranks; then again after the store was opened anew.
pub(super) async fn measure(report: &mut Report, members: u32) -> Result<()> {
    let folder = Folder::new("ranks")?;
    let url = format!("embedded:{}", folder.path().join("store").display());
    let before = memory_bytes(std::process::id());
    let tally = Tally::open(&url, Options::default()).await?;
    let progress = Arc::new(Progress::counted("a large board", members.into()));
    let begun = Instant::now();
    let mut filling = tokio::task::JoinSet::new();
    for task in 0..4 {
        let (tally, progress) = (tally.clone(), progress.clone());
        filling.spawn(async move {
            let mut first = task * BATCH;
            while first < members {
                let batch = (first..members.min(first + BATCH)).map(|member| score(member, first_score(member)));
                let commands = batch.collect::<Result<Vec<_>>>()?;
                let many = commands.len() as u64;
                tally.apply(Call::system(Command::from(Batch { atomic: false, commands }))).await?.reply?;
                progress.add(many);
                first += 4 * BATCH;
            }
            anyhow::Ok(())
        });
    }
    while let Some(filled) = filling.join_next().await {
        filled??;
    }
    drop(progress);
    let filled = begun.elapsed();
    report.figure(
        "board.fill",
        &format!("scores a second, filling a board of {members} in batches"),
        f64::from(members) / filled.as_secs_f64(),
        "/s",
    );
    let memory = memory_bytes(std::process::id()).saturating_sub(before);
    report.figure("board.memory", &format!("memory with a board of {members} members"), memory as f64 / 1e6, "MB");
    let rank = ranks(&tally, members).await?;
    report.figure(
        "board.rank",
        &format!("a rank among {members} members, in process"),
        rank.as_nanos() as f64 / 1e3,
        "µs",
    );
    let change = changes(&tally, members).await?;
    report.figure(
        "board.change",
        "a score changed, with its new rank, in process, alone",
        change.as_nanos() as f64 / 1e3,
        "µs",
    );
    tally.close().await;
    drop(tally);
    let begun = Instant::now();
    let tally = Tally::open(&url, Options::default()).await?;
    let opened = begun.elapsed();
    rank_of(&tally, 7).await?;
    let first = begun.elapsed();
    report.figure("board.open", &format!("opening the store with {members} members"), opened.as_secs_f64(), "s");
    report.figure("board.first", "and until the first rank was answered", first.as_secs_f64(), "s");
    tally.close().await;
    Ok(())
}

fn score(member: u32, to: u32) -> Result<Command> {
    let (board, member) = (Name::new("points")?, SubjectId::new(&format!("u{member}"))?);
    Ok(Command::from(ChangeScore { board, member, change: ScoreChange::To(to.into()) }))
}

async fn rank_of(tally: &Tally, member: u32) -> Result<u64> {
    let member = SubjectId::new(&format!("u{member}"))?;
    let query = StandingQuery { board: Name::new("points")?, season: None, member, around: 0 };
    tally.query(&query, &Auth::default()).await?.rank.context("no rank")
}

/// The time of one.
async fn ranks(tally: &Tally, members: u32) -> Result<Duration> {
    let begun = Instant::now();
    for read in 0..READS {
        rank_of(tally, read.wrapping_mul(2_654_435_761) % members).await?;
    }
    Ok(begun.elapsed() / READS)
}

async fn changes(tally: &Tally, members: u32) -> Result<Duration> {
    const CHANGES: u32 = 1_000;
    let begun = Instant::now();
    for change in 0..CHANGES {
        let member = change.wrapping_mul(2_654_435_761) % members;
        tally.apply(Call::system(score(member, 100_000 + change)?)).await?.reply?;
    }
    Ok(begun.elapsed() / CHANGES)
}
