//! The tables: fjall's tree of sorted files, filled in bulk and merged in the background.
//!
//! Every version of the tree is durable when `ingest` returns: the library syncs the tables, their folder,
//! the list of tables and the file that names the list, in this order.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::Bound,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use byteview::ByteView;
use lsm_tree::{
    AbstractTree, AnyTree, Cache, Config, SeqNo, SequenceNumberCounter, Slice,
    compaction::{CompactionFilter, Factory, ItemAccessor, Leveled, Verdict, filter::Context},
    config::{BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry},
};

use super::{
    error::{Doing, DoingTables, Result, StoreError},
    overlay::{Change, Range},
    versions,
};

/// Under this key, in the same bulk as the rows, stands how far the log has been moved into the tables.
/// Keys that start with a zero byte are the store's own.
pub(super) const INGESTED: &[u8] = b"\0ingested";
pub(super) const OWN_KEYS_END: &[u8] = b"\x01";

/// A moment to read at: [`LATEST`], or what [`Tables::pin`] gave.
pub(super) type Moment = SeqNo;

/// Reads what is newest when the read starts.
pub(super) const LATEST: Moment = SeqNo::MAX;

/// The tree and what its readers and its background work share.
pub(super) struct Tables {
    tree: AnyTree,
    path: PathBuf,
    /// What will be visible next: the version of the tree that a snapshot reads.
    visible: SequenceNumberCounter,
    pins: Mutex<BTreeMap<SeqNo, usize>>,
    /// Read by work that writes tables, written by the removal of what failed work left behind.
    writing: RwLock<()>,
    failed: Mutex<Failed>,
    stop: Arc<AtomicBool>,
}

/// What failed work may have left behind.
#[derive(Debug, Default)]
struct Failed {
    /// The first table that such work may have written. While it is set, the disk may name another list of tables
    /// than the one in memory.
    since: Option<u64>,
    /// Whether the list in memory was to be named on disk, and that is not known to have lasted.
    naming: bool,
    /// Tables that were part of the tree at some time: an older moment may still be read from them.
    installed: BTreeSet<u64>,
}

/// So many tables cannot come and go while one piece of work lasts.
const INSTALLED_MAX: usize = 10_000;

impl Tables {
    /// Opens or creates the tables.
    pub(super) fn open(path: &Path, cache_bytes: u64) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let seqno = SequenceNumberCounter::default();
        let visible = SequenceNumberCounter::default();
        let config = Config::new(path, seqno.clone(), visible.clone())
            .use_cache(Arc::new(Cache::with_capacity_bytes(cache_bytes)))
            .data_block_size_policy(BlockSizePolicy::new([4_096, 4_096, 8_192, 16_384]))
            .data_block_compression_policy(CompressionPolicy::all(lsm_tree::CompressionType::Lz4))
            .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0))))
            .with_compaction_filter_factory(Some(Arc::new(StopFactory(stop.clone()))));
        // The library trusts its files and panics where they are not what it wrote.
        let tree = catch_unwind(AssertUnwindSafe(|| config.open()))
            .map_err(|_| StoreError::damaged(path, "its files are not as they were written"))?
            .map_err(|error| match error {
                lsm_tree::Error::Io(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
                    Err::<(), _>(error).doing("open the tables in", path).expect_err("an error stays one")
                }
                error => StoreError::damaged(path, error.to_string()),
            })?;
        let next = tree.get_highest_seqno().map_or(1, |highest| highest + 1);
        seqno.fetch_max(next);
        visible.fetch_max(next);
        Ok(Self {
            tree,
            path: path.to_path_buf(),
            visible,
            pins: Mutex::default(),
            writing: RwLock::default(),
            failed: Mutex::default(),
            stop,
        })
    }

    /// How far the log has been moved into these tables.
    pub(super) fn ingested(&self) -> Result<u64> {
        let Some(value) = self.tree.get(INGESTED, LATEST).doing_tables("read")? else {
            return Ok(0);
        };
        let bytes = <[u8; 8]>::try_from(&*value)
            .map_err(|_| StoreError::damaged(&self.path, "the place where the log goes on is not readable"))?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(super) fn get(&self, key: &[u8], at: Moment) -> Result<Option<ByteView>> {
        let value = self.tree.get(key, at).doing_tables("read")?;
        Ok(value.map(ByteView::from))
    }

    /// The rows of a range at one moment: the one when this was called.
    pub(super) fn range(
        &self,
        range: Range<'_>,
        at: Moment,
        reverse: bool,
    ) -> Box<dyn Iterator<Item = Result<Change>> + Send> {
        let low = match range.0 {
            Bound::Included(key) if key >= OWN_KEYS_END => Bound::Included(key),
            Bound::Excluded(key) if key >= OWN_KEYS_END => Bound::Excluded(key),
            _ => Bound::Included(OWN_KEYS_END),
        };
        let rows = self.tree.range::<&[u8], _>((low, range.1), at, None);
        let row = |guard: lsm_tree::IterGuardImpl| {
            use lsm_tree::Guard;
            let (key, value) = guard.into_inner().doing_tables("read")?;
            Ok((ByteView::from(key), Some(ByteView::from(value))))
        };
        if reverse { Box::new(rows.rev().map(row)) } else { Box::new(rows.map(row)) }
    }

    /// Adds sorted changes, all or nothing, durable when it returns.
    pub(super) fn ingest(&self, changes: impl Iterator<Item = Result<Change>>, ingested: u64) -> Result<()> {
        self.work(|| {
            let mut ingestion = self.tree.ingestion().doing_tables("write")?;
            ingestion.write(INGESTED, ingested.to_le_bytes()).doing_tables("write")?;
            for change in changes {
                match change? {
                    (key, Some(value)) => ingestion.write(Slice::from(key), Slice::from(value)),
                    (key, None) => ingestion.write_tombstone(Slice::from(key)),
                }
                .doing_tables("write")?;
                if self.stop.load(Ordering::Relaxed) {
                    return Err(StoreError::Closed);
                }
            }
            ingestion.finish().doing_tables("write")
        })
    }

    /// Merges tables once, if that is due. Says whether anything was done.
    pub(super) fn compact(&self) -> Result<bool> {
        self.work(|| {
            let before = self.tree.current_version().id();
            self.tree.compact(Arc::new(Leveled::default()), self.watermark()).doing_tables("merge")?;
            Ok(self.tree.current_version().id() != before)
        })
    }

    /// Up to here nobody reads older rows any more.
    fn watermark(&self) -> SeqNo {
        // Under the lock: whoever pins afterwards pins no earlier moment than the one read here.
        let pins = self.pins();
        let oldest = pins.keys().next().copied();
        oldest.unwrap_or_else(|| self.visible.get()).saturating_sub(1)
    }

    /// Work that writes tables. If it fails anywhere, even by a panic of the library, the next work first puts
    /// right what is on disk.
    fn work<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let _writing = loop {
            let writing = self.writing.read().expect("no holder of this lock panics");
            if self.failed().since.is_none() {
                break writing;
            }
            drop(writing);
            self.put_right()?;
        };
        let since = self.tree.next_table_id();
        let done = catch_unwind(AssertUnwindSafe(work));
        let mut failed = self.failed();
        match done {
            Ok(Ok(done)) => {
                failed.installed.extend(self.tree.current_version().iter_tables().map(lsm_tree::Table::id));
                while failed.installed.len() > INSTALLED_MAX {
                    failed.installed.pop_first();
                }
                Ok(done)
            }
            failure => {
                failed.since = Some(failed.since.map_or(since, |earlier| earlier.min(since)));
                failure.unwrap_or_else(|_| {
                    Err(StoreError::Tables {
                        doing: "work on",
                        why: "an invariant of the tables is broken; run a check, or restore a backup".into(),
                    })
                })
            }
        }
    }

    /// After work that failed: the disk names the tables that are in use here, and what the work wrote is removed,
    /// which on a full disk would keep it full. In this order: until the first is durable, a crash may open either.
    pub(super) fn put_right(&self) -> Result<()> {
        let _idle = self.writing.write().expect("no holder of this lock panics");
        let mut failed = self.failed();
        let Some(since) = failed.since else { return Ok(()) };
        let again = std::mem::replace(&mut failed.naming, true);
        versions::name(&self.path, self.tree.current_version().id(), again)?;
        failed.naming = false;
        let used: Vec<u64> = self.tree.current_version().iter_tables().map(lsm_tree::Table::id).collect();
        let tables = self.path.join("tables");
        for file in fs::read_dir(&tables).doing("list", &tables)?.flatten() {
            let id = file.file_name().to_str().and_then(|name| name.parse().ok());
            if id.is_some_and(|id| id >= since && !used.contains(&id) && !failed.installed.contains(&id)) {
                drop(fs::remove_file(file.path()));
            }
        }
        failed.since = None;
        Ok(())
    }

    fn failed(&self) -> MutexGuard<'_, Failed> {
        self.failed.lock().expect("no holder of this lock panics")
    }

    /// Every table file in use, and what its bytes should hash to.
    pub(super) fn checksums(&self) -> Vec<TableChecksum> {
        self.tree
            .current_version()
            .iter_tables()
            .map(|table| TableChecksum { path: table.path.to_path_buf(), expected: table.checksum().into_u128() })
            .collect()
    }

    /// How many unmerged bulks there are: every read looks into each of them.
    pub(super) fn unmerged(&self) -> usize {
        self.tree.l0_run_count()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.tree.disk_space()
    }

    /// Ends background work soon; what it was writing is thrown away.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Keeps this moment readable until it is unpinned.
    pub(super) fn pin(&self) -> Moment {
        let mut pins = self.pins();
        let seqno = self.visible.get();
        *pins.entry(seqno).or_default() += 1;
        seqno
    }

    pub(super) fn unpin(&self, seqno: Moment) {
        let mut pins = self.pins();
        if let Some(count) = pins.get_mut(&seqno) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&seqno);
            }
        }
    }

    fn pins(&self) -> MutexGuard<'_, BTreeMap<SeqNo, usize>> {
        self.pins.lock().expect("no holder of this lock panics")
    }
}

pub(super) struct TableChecksum {
    pub(super) path: PathBuf,
    pub(super) expected: u128,
}

/// Ends a merge when the store closes. A merge can take many seconds, and only a filter can end it.
struct StopFactory(Arc<AtomicBool>);
struct StopFilter(Arc<AtomicBool>);

impl Factory for StopFactory {
    fn name(&self) -> &str {
        "stop"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(StopFilter(self.0.clone()))
    }
}

impl CompactionFilter for StopFilter {
    fn filter_item(&mut self, _: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        if self.0.load(Ordering::Relaxed) {
            return Err(lsm_tree::Error::Io(std::io::ErrorKind::Interrupted.into()));
        }
        Ok(Verdict::Keep)
    }
}
