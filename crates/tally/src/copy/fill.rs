//! The target while it is being filled.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tally_core::rows::{Change, Changes, Job, JobId, Key, Names, Row, TotalKey, Work};
use tally_core::time::Stamp;
use tally_core::view::{View, Wants};
use tally_engine::{Clock, CommitError, Engine, Mark, Page, Range, Seen, StoreError, SystemClock};

use super::sum::{Fingerprint, Sum};
use super::{CopyError, CopyPhase, CopyProgress, Tell};
use crate::Error;

/// A commit is cut short at about so many bytes of rows.
const COMMIT_BYTES_MAX: usize = 4 << 20;
/// How long a copy waits for what a copy before it left under way, and how often it looks.
const CATCH_UP_WITHIN: Duration = Duration::from_secs(60);
const CATCH_UP_EVERY: Duration = Duration::from_millis(100);

/// Why a page was not written.
enum Trouble {
    /// The place reached is another one than was thought, or something is still held: look again.
    Behind,
    /// It cannot be.
    Failed(Error),
}

impl<T: Into<Error>> From<T> for Trouble {
    fn from(error: T) -> Self {
        Self::Failed(error.into())
    }
}

/// A store that is being filled, and the place reached.
pub(super) struct Filling<'a, E> {
    to: &'a E,
    name: String,
    /// The source's newest stamp when the copy began.
    stamp: Stamp,
    /// The newest of both.
    newest: Stamp,
    after: Option<Key>,
    rows: u64,
    digest: u64,
    /// The row that says all of this, as it is in the store.
    stored: Option<Job>,
    mark: Mark,
}

impl<'a, E: Engine> Filling<'a, E> {
    /// Begins, or finds the place where it was stopped. `None` when the target is in use already.
    pub(super) async fn begin(name: &str, to: &'a E, stamp: Stamp, reached: Stamp) -> Result<Option<Self>, Error> {
        let newest = stamp.max(reached);
        let mut filling = Self {
            to,
            name: name.to_owned(),
            stamp,
            newest,
            after: None,
            rows: 0,
            digest: 0,
            stored: None,
            mark: Mark::default(),
        };
        if filling.find_place().await? {
            return Ok(Some(filling));
        }
        let page = to.scan(&Range::Rows { after: None }, 2).await?;
        // What was declared is written down when a store is first opened: it holds nothing all the same.
        let is_empty = page.items.iter().all(|(key, _)| *key == Key::Names);
        // The first commit of a copy that was killed may have arrived in between.
        match is_empty || filling.find_place().await? {
            true => Ok(Some(filling)),
            // Only the newest stamp tells a copy that has ended from a store of its own.
            false if reached == stamp => Ok(None),
            false => Err(CopyError::NotEmpty.into()),
        }
    }

    /// Reads the place reached. False where there is none.
    async fn find_place(&mut self) -> Result<bool, Error> {
        let loaded = self.to.load(&Wants::rows(vec![Key::Job(JobId::COPY)])).await?;
        self.mark = loaded.mark;
        let Some(Some(Row::Job(job))) = loaded.rows.into_iter().next() else { return Ok(false) };
        let Work::Copy { from, after, rows, digest } = &job.work else { return Ok(false) };
        if *from != self.name {
            return Err(CopyError::OtherSource { from: from.clone() }.into());
        }
        if job.before != self.stamp {
            return Err(CopyError::SourceChanged.into());
        }
        (self.after, self.rows, self.digest) = (after.clone(), *rows, *digest);
        self.stored = Some(job);
        Ok(true)
    }

    /// Rows that are here.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// The newest stamp of the source when the copy began.
    pub(super) fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Whether these are the rows that were written.
    pub(super) fn is_all_of(&self, sum: &Sum) -> bool {
        (sum.rows, sum.digest) == (self.rows, self.digest)
    }

    /// Writes every row of the source that is not here yet. A copy that was killed may have left its last commit
    /// under way: it ends one way or the other while we look, and from there we go on.
    pub(super) async fn fill<A: Engine>(&mut self, from: &A, page_rows: usize, tell: Tell<'_>) -> Result<(), Error> {
        let mut since = Instant::now();
        loop {
            let place = self.rows;
            match self.fill_on(from, page_rows, tell).await {
                Ok(()) => return Ok(()),
                Err(Trouble::Failed(error)) => return Err(error),
                Err(Trouble::Behind) => {}
            }
            let began = self.find_place().await?;
            if self.rows != place {
                since = Instant::now();
            } else if since.elapsed() > CATCH_UP_WITHIN || (place > 0 && !began) {
                return Err(CopyError::TargetChanged.into());
            }
            tokio::time::sleep(CATCH_UP_EVERY).await;
        }
    }

    async fn fill_on<A: Engine>(&mut self, from: &A, page_rows: usize, tell: Tell<'_>) -> Result<(), Trouble> {
        let mut page = read(from, self.after.clone(), page_rows).await?;
        // The first commit is made even of nothing: it takes the stamp over, and the target.
        loop {
            let after = page.items.last().map(|(key, _)| key.clone());
            let next = async {
                match page.more {
                    true => read(from, after, page_rows).await.map(Some),
                    false => Ok(None),
                }
            };
            // The next page is read while this one is written.
            let (written, next) = tokio::join!(self.write(page.items), next);
            written?;
            tell(CopyProgress { phase: CopyPhase::Copying, rows: self.rows });
            match next? {
                Some(next) => page = next,
                None => return Ok(()),
            }
        }
    }

    /// Writes a page, in more than one commit only if its rows are very large.
    async fn write(&mut self, rows: Vec<(Key, Row)>) -> Result<(), Trouble> {
        let (mut part, mut bytes) = (Vec::new(), 0);
        // What was declared goes along at the end, beside what is declared there.
        for (key, row) in rows.into_iter().filter(|(key, _)| *key != Key::Names) {
            if key == Key::Job(JobId::COPY) {
                // Ids are random; somebody made this one.
                return Err(StoreError::Broken("the store to copy from has a job with the id of a copy".into()).into());
            }
            let print = Fingerprint::of(&key, &row)?;
            bytes += print.bytes;
            part.push((key, row, print.value));
            if bytes >= COMMIT_BYTES_MAX {
                self.commit(std::mem::take(&mut part)).await?;
                bytes = 0;
            }
        }
        if part.is_empty() && self.stored.is_some() { Ok(()) } else { self.commit(part).await }
    }

    /// New rows, what their edges add to the totals, and the place reached: all or nothing.
    async fn commit(&mut self, rows: Vec<(Key, Row, u64)>) -> Result<(), Trouble> {
        let view = self.look(rows.iter().map(|(key, ..)| key.clone())).await?;
        let mut adds: BTreeMap<TotalKey, i64> = BTreeMap::new();
        let (mut after, mut digest, count) = (self.after.clone(), self.digest, self.rows + rows.len() as u64);
        let mut changes = Changes { stamp: self.newest, ..Changes::default() };
        for (key, row, print) in rows {
            row.counts(&key, |total, by| *adds.entry(total).or_default() += by);
            digest = digest.wrapping_add(print);
            after = Some(key.clone());
            if !key.kind().is_total() {
                changes.rows.push((key, Change { before: None, after: Some(row) }));
            }
        }
        changes.adds = adds.into_iter().collect();
        let job = Job {
            work: Work::Copy { from: self.name.clone(), after: after.clone(), rows: count, digest },
            before: self.stamp,
            edges: 0,
            created_at: self.stored.as_ref().map_or_else(|| SystemClock.now(), |job| job.created_at),
            finished_at: None,
        };
        self.put(&view, changes, Some(job)).await?;
        (self.after, self.rows, self.digest) = (after, count, digest);
        Ok(())
    }

    /// Opens the store to everybody. It knows the names that were declared in the other as well.
    pub(super) async fn end(&mut self, names: Names) -> Result<(), Error> {
        let ending = async {
            let mut view = self.look([]).await?;
            let before = names_of(self.to).await?;
            let row = |names: Names| (names != Names::default()).then_some(Row::Names(names));
            let mut changes = Changes { stamp: self.newest, ..Changes::default() };
            let after = before.clone().and(names);
            if after != before {
                changes.rows.push((Key::Names, Change { before: row(before.clone()), after: row(after) }));
                view.fill_row(Key::Names, row(before));
            }
            self.put(&view, changes, None).await
        };
        match ending.await {
            Ok(()) => Ok(self.to.settle(self.mark).await?),
            Err(Trouble::Failed(error)) => Err(error),
            Err(Trouble::Behind) => Err(CopyError::TargetChanged.into()),
        }
    }

    /// Loads what a commit stands on: the place reached is ours, and the rows are not there.
    async fn look(&mut self, keys: impl IntoIterator<Item = Key>) -> Result<View, Trouble> {
        // Whoever adds to a total does not ask what it was.
        let keys = keys.into_iter().filter(|key| !key.kind().is_total());
        let keys = std::iter::once(Key::Job(JobId::COPY)).chain(keys);
        let wants = Wants::rows(keys.collect());
        let loaded = self.to.load(&wants).await?;
        if loaded.rows.first() != Some(&self.stored.clone().map(Row::Job)) {
            return Err(Trouble::Behind);
        }
        if loaded.rows.iter().skip(1).any(Option::is_some) {
            return Err(CopyError::TargetChanged.into());
        }
        self.mark = loaded.mark;
        let mut view = View::default();
        for (key, row) in wants.rows.into_iter().zip(loaded.rows) {
            view.fill_row(key, row);
        }
        Ok(view)
    }

    async fn put(&mut self, view: &View, mut changes: Changes, job: Option<Job>) -> Result<(), Trouble> {
        let (before, after) = (self.stored.clone().map(Row::Job), job.clone().map(Row::Job));
        changes.rows.push((Key::Job(JobId::COPY), Change { before, after }));
        match self.to.commit(Seen { mark: self.mark, view }, &changes).await {
            Ok(committed) => {
                self.mark = committed.mark;
                self.stored = job;
                Ok(())
            }
            Err(CommitError::Conflict) => Err(Trouble::Behind),
            Err(CommitError::Store(error)) => Err(error.into()),
        }
    }
}

/// What was ever declared in a store.
pub(super) async fn names_of<E: Engine>(engine: &E) -> Result<Names, StoreError> {
    let found = engine.load(&Wants::rows(vec![Key::Names])).await?.rows.pop().flatten();
    Ok(if let Some(Row::Names(names)) = found { names } else { Names::default() })
}

async fn read<A: Engine>(from: &A, after: Option<Key>, page_rows: usize) -> Result<Page, StoreError> {
    from.scan(&Range::Rows { after }, page_rows).await
}
