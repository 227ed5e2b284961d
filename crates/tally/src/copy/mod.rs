//! Moves a whole store to another, whatever the two are made of.
//!
//! Rows are read in pages and committed as new rows, together with the totals that their edges add up
//! to and with the place reached. So a copy that was stopped anywhere goes on exactly there, and a total
//! is never copied: it is counted. At the end both stores are read again and must agree.

mod error;
mod fill;
mod sum;

use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tally_core::rows::{JobId, Key, Row, Work};
use tally_core::view::Wants;
use tally_engine::{Engine, Finding, Lease, StoreError, Together};

pub use error::CopyError;
use fill::{Filling, names_of};
use sum::Sum;

use crate::{AnyEngine, Error, Opening, Options, redacted};

/// How long a store may be held by a server that is no more, and how often to look.
const SERVED_FOR: Duration = Duration::from_secs(13);
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Rows in one commit.
pub(crate) const PAGE_ROWS: usize = 1_000;

/// What was copied.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CopyReport {
    /// All rows.
    pub rows: u64,
    /// Edges among them.
    pub edges: u64,
    /// Registered objects.
    pub objects: u64,
    /// Suspended subjects.
    pub subjects: u64,
    /// Remembered answers.
    pub replays: u64,
    /// Jobs, open and ended.
    pub jobs: u64,
    /// API keys.
    pub api_keys: u64,
    /// Rows of counting: counters, unique counts, days, scores, limits.
    pub counting: u64,
    /// Totals that were counted anew.
    pub totals: u64,
    /// Rows that were there already, from a copy that was stopped.
    pub resumed_rows: u64,
}

/// What a copy is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyPhase {
    /// Reading the source and writing the target.
    Copying,
    /// Recounting the target's totals.
    Recounting,
    /// Reading both again.
    Comparing,
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyProgress {
    /// What it is doing.
    pub phase: CopyPhase,
    /// Rows so far in this phase.
    pub rows: u64,
}

/// Is told how far a copy is.
pub(crate) type Tell<'a> = &'a mut (dyn FnMut(CopyProgress) + Send);

/// Copies the store at one URL to the empty store at another, or goes on with it where it was stopped.
/// No server may have either of them open.
pub async fn copy(
    from: &str,
    to: &str,
    options: &Options,
    mut progress: impl FnMut(CopyProgress) + Send + 'static,
) -> Result<CopyReport, Error> {
    let (source, target) = (Opening::parse(from)?, Opening::parse(to)?);
    let name = name(from, &source);
    if name == self::name(to, &target) {
        return Err(CopyError::SameStore.into());
    }
    match (&source, &target) {
        (_, Opening::Memory) => return Err(Error::Open("`memory:` keeps nothing; copy to another store".into())),
        (Opening::Embedded(path), _) if !path.join("FORMAT").is_file() => {
            return Err(Error::Open(format!("there is no store in {}: check the path", path.display())));
        }
        _ => {}
    }
    let source = source.open(&options.embedded).await?;
    let target = match open_target(&source, target, options).await {
        Ok(target) => target,
        Err(error) => {
            source.close().await;
            return Err(error);
        }
    };
    // Reading a whole store is long work on the processor and the disk: not for the event loop.
    let runtime = tokio::runtime::Handle::current();
    let copying = tokio::task::spawn_blocking(move || {
        let copied = runtime.block_on(copy_rows(&name, &source, &target, PAGE_ROWS, &mut progress));
        runtime.block_on(async { (source.close().await, target.close().await) });
        copied
    });
    copying.await.map_err(|error| StoreError::Broken(format!("the copy stopped: {error}")))?
}

/// Opens the store to copy to. What speaks against the source is said before anything is made for the target.
async fn open_target(source: &AnyEngine, target: Opening, options: &Options) -> Result<AnyEngine, Error> {
    source.prepare().await?;
    if let Some(from) = unfinished(source).await? {
        return Err(CopyError::SourceUnfinished { from }.into());
    }
    let target = target.open(&options.embedded).await?;
    if let Err(error) = refuse_served(&target).await {
        target.close().await;
        return Err(error);
    }
    Ok(target)
}

/// Refuses a store that a server has open: one of them always carries its jobs. A server that was killed is waited
/// for until nobody takes it for alive any more.
async fn refuse_served(target: &AnyEngine) -> Result<(), Error> {
    if !target.is_shared() {
        return Ok(());
    }
    target.prepare().await?;
    let since = Instant::now();
    while !target.lease(Lease::Jobs).await? {
        if since.elapsed() > SERVED_FOR {
            return Err(CopyError::Served.into());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    // Given back at once, so that a copy that is killed keeps nobody waiting. Servers do not begin on a half-made copy.
    target.release(Lease::Jobs);
    Ok(())
}

/// The same over open engines. `name` says which store the source is, for the next time and without a
/// password.
pub async fn copy_rows<A: Engine, B: Engine>(
    name: &str,
    from: &A,
    to: &B,
    page_rows: usize,
    tell: Tell<'_>,
) -> Result<CopyReport, Error> {
    let stamp = from.prepare().await?;
    let reached = to.prepare().await?;
    if let Some(unfinished) = unfinished(from).await? {
        return Err(CopyError::SourceUnfinished { from: unfinished }.into());
    }
    let Some(mut filling) = Filling::begin(name, to, stamp, reached).await? else {
        // Its newest stamp is the source's: perhaps the copy has ended, and nobody was told.
        let (ours, theirs) = (Sum::of(from, page_rows, |_| {}).await?, Sum::of(to, page_rows, |_| {}).await?);
        if ours != theirs {
            return Err(CopyError::NotEmpty.into());
        }
        let totals = recount(to, tell).await?;
        return Ok(CopyReport { totals, resumed_rows: ours.rows, ..ours.report() });
    };
    let resumed_rows = filling.rows();
    filling.fill(from, page_rows, tell).await?;
    let totals = recount(to, tell).await?;
    let read = compare(from, to, &filling, page_rows, tell).await?;
    filling.end(names_of(from).await?).await?;
    Ok(CopyReport { totals, resumed_rows, ..read.report() })
}

/// Refuses a store that a copy has not filled yet.
pub(crate) async fn refuse_unfinished<E: Engine>(engine: &E) -> Result<(), Error> {
    engine.prepare().await?;
    match unfinished(engine).await? {
        Some(from) => Err(CopyError::HalfMade { from }.into()),
        None => Ok(()),
    }
}

/// Where the rows of a half-made store come from.
async fn unfinished<E: Engine>(engine: &E) -> Result<Option<String>, StoreError> {
    let wants = Wants::rows(vec![Key::Job(JobId::COPY)]);
    let found = engine.load(&wants).await?.rows.pop().flatten();
    Ok(match found {
        Some(Row::Job(job)) => match job.work {
            Work::Copy { from, .. } => Some(from),
            _ => None,
        },
        _ => None,
    })
}

/// Nothing is out of step in the target. Gives how many totals it has.
async fn recount<E: Engine>(to: &E, tell: Tell<'_>) -> Result<u64, Error> {
    let (mut drifted, mut strays) = (0, 0);
    let audited = to
        .audit(&mut |finding| match finding {
            Finding::Progress(rows) => tell(CopyProgress { phase: CopyPhase::Recounting, rows }),
            Finding::Drift { .. } => drifted += 1,
            Finding::Stray { .. } | Finding::Leftover { .. } | Finding::Order { .. } | Finding::Wrong(_) => strays += 1,
        })
        .await?;
    match (drifted, strays) {
        (0, 0) => Ok(audited.totals),
        _ => Err(CopyError::Unsound { drifted, strays }.into()),
    }
}

/// Both stores still are what was copied.
async fn compare<A: Engine, B: Engine>(
    from: &A,
    to: &B,
    filling: &Filling<'_, B>,
    page_rows: usize,
    tell: Tell<'_>,
) -> Result<Sum, Error> {
    let mut told = |rows| tell(CopyProgress { phase: CopyPhase::Comparing, rows });
    let source = Sum::of(from, page_rows, &mut told).await?;
    let target = Sum::of(to, page_rows, |rows| told(source.rows + rows)).await?;
    if !filling.is_all_of(&source) || from.prepare().await? != filling.stamp() {
        return Err(CopyError::SourceChanged.into());
    }
    if !filling.is_all_of(&target) {
        return Err(CopyError::TargetChanged.into());
    }
    Ok(source)
}

/// One name for one store, however its URL was written.
fn name(url: &str, opening: &Opening) -> String {
    match opening {
        Opening::Embedded(path) => format!("embedded:{}", absolute(path).display()),
        _ => redacted(url),
    }
}

/// The folder need not be there yet.
fn absolute(path: &Path) -> std::path::PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}
