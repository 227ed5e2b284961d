//! A million members, random increments: every rank is that of a plain sort, with each policy of ties.

use std::collections::HashMap;

use anyhow::{Result, bail};
use tally::core::catalog::{BoardDef, Ties};
use tally::core::command::{Auth, Batch, Call, ChangeScore, Command, ScoreChange};
use tally::core::limits::PAGE_ITEMS_MAX;
use tally::core::query::BoardQuery;
use tally::core::reply::Reply;
use tally::core::{Catalog, Name, SubjectId};
use tally::{Options, Tally};
use tally_testing::Folder;

use crate::progress::Progress;
use crate::report::Report;

const BATCH: u64 = 500;
/// Pages that are compared, spread over the whole board.
const PAGES: u64 = 2_000;

const POLICIES: [(&str, Ties); 3] =
    [("first_to_reach", Ties::FirstToReach), ("shared", Ties::Shared), ("dense", Ties::Dense)];

/// Fills a board of each policy, and compares answers and pages with a model.
pub(super) async fn ranks(report: &mut Report, members: u64) -> Result<()> {
    let folder = Folder::new("checked")?;
    let url = format!("embedded:{}", folder.path().join("store").display());
    let mut catalog = Catalog::default();
    for (text, ties) in POLICIES {
        let name = Name::new(text)?;
        catalog.declare_board(name.clone(), BoardDef { ties, ..BoardDef::new(name) });
    }
    let tally = Tally::open(&url, Options { catalog, ..Options::default() }).await?;
    let progress = Progress::counted("ranks next to a plain sort", members * POLICIES.len() as u64 * 6 / 5);
    for (board, ties) in POLICIES {
        let checked = one(&tally, board, ties, members, &progress).await?;
        let what = format!("ranks compared with a plain sort of {members} members, {board}; all equal");
        report.figure(&format!("board.checked.{board}"), &what, checked as f64, "");
    }
    tally.close().await;
    Ok(())
}

async fn one(tally: &Tally, board: &str, ties: Ties, members: u64, progress: &Progress) -> Result<u64> {
    let name = Name::new(board)?;
    // Score and turn by member, as the answers say; a fifth of the members score twice.
    let mut scores: HashMap<u64, (i64, u64)> = HashMap::new();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let total = members * 6 / 5;
    for first in (0..total).step_by(BATCH as usize) {
        let mut commands = Vec::new();
        for turn in first..total.min(first + BATCH) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let member = if turn < members { turn } else { random % members };
            let by = (random >> 20) as i64 % 2_000 - 500;
            let now = scores.entry(member).or_insert((0, turn));
            if by != 0 {
                *now = (now.0 + by, turn);
            }
            let subject = SubjectId::new(&format!("u{member}"))?;
            commands.push(Command::from(ChangeScore {
                board: name.clone(),
                member: subject,
                change: ScoreChange::By(by),
            }));
        }
        progress.add(commands.len() as u64);
        match tally.apply(Call::system(Command::from(Batch { atomic: true, commands }))).await?.reply? {
            Reply::Batch(_) => {}
            other => bail!("another reply: {other:?}"),
        }
    }
    let mut sorted: Vec<(i64, u64, u64)> =
        scores.into_iter().map(|(member, (score, turn))| (-score, turn, member)).collect();
    sorted.sort_unstable();
    let ranks = naive(&sorted, ties);
    let mut checked = 0;
    let step = (members / PAGES).max(1);
    for first in (0..members).step_by(step as usize) {
        let query = BoardQuery {
            board: name.clone(),
            season: None,
            rank: Some(first + 1),
            limit: PAGE_ITEMS_MAX,
            cursor: None,
        };
        let page = tally.query(&query, &Auth::default()).await?;
        let expected = sorted.iter().zip(&ranks).skip(first as usize);
        for (item, ((score, _, member), rank)) in page.items.iter().zip(expected) {
            let found = (item.member.as_str(), item.score, item.rank);
            let expected = (format!("u{member}"), -score, *rank);
            if found != (expected.0.as_str(), expected.1, expected.2) {
                bail!("{board}: {found:?}, and a plain sort says {expected:?}");
            }
            checked += 1;
        }
    }
    Ok(checked)
}

fn naive(sorted: &[(i64, u64, u64)], ties: Ties) -> Vec<u64> {
    let (mut rank, mut last) = (0, None);
    let ranks = sorted.iter().zip(1..).map(|((score, ..), place)| {
        rank = match ties {
            Ties::FirstToReach => place,
            _ if last == Some(*score) => rank,
            Ties::Shared => place,
            Ties::Dense => rank + 1,
        };
        last = Some(*score);
        rank
    });
    ranks.collect()
}
