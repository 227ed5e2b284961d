//! The process that works on a store and is killed, and what it was told.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use tally_embedded::store::{Batch, Options, State, Store, StoreError};
use tempfile::TempDir;

use crate::{
    store_common::{commit, rows},
    trace::{self, Event},
};

const ASKED: &str = "TALLY_STORE_FAULTS_CHILD";
/// How many attempts there were already.
const AFTER: &str = "TALLY_STORE_FAULTS_AFTER";
/// Whether the child ends at the first refusal, before the store had time to recover.
const HASTY: &str = "TALLY_STORE_FAULTS_HASTY";
/// Whether the child works for so long that segments that do not go are many.
const LONG: &str = "TALLY_STORE_FAULTS_LONG";
/// The store is below folders that are not there either, and so is the backup that is made of it in the end.
const DEEP: &str = "TALLY_STORE_FAULTS_DEEP";
const DEEP_STORE: &str = "some/where/else";
const DEEP_COPY: &str = "far/away/copy";
const ATTEMPTS: u64 = 18;
const ATTEMPTS_LONG: u64 = 100;
/// One in use, some that wait for the tables, and spares.
const SEGMENTS_MAX: u64 = 6;

/// Which call fails, and how.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) class: String,
    pub(crate) index: u32,
    pub(crate) kind: Kind,
}

/// How a call fails; the numbers are those of `shim.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Once = 0,
    HalfDone = 1,
    EverySyncFromThere = 2,
    EverythingFromThere = 3,
    Killed = 4,
    Twice = 5,
}

/// Everything so small that within a few batches segments rotate, overlays move and tables merge.
pub(crate) fn options() -> Options {
    Options { overlay_bytes_max: 150, segment_bytes: 512, cache_bytes: 1 << 20, ..Options::default() }
}

fn key(attempt: u64) -> Vec<u8> {
    format!("try-{attempt:04}").into_bytes()
}

fn value(attempt: u64) -> Vec<u8> {
    vec![attempt as u8; 20 + (attempt * 37 % 60) as usize]
}

/// Every third attempt deletes what an earlier one wrote.
fn deletes(attempt: u64) -> Option<u64> {
    (attempt.is_multiple_of(3) && attempt > 4).then(|| attempt - 4)
}

/// Does the child's work, if this process is one, and never returns then.
pub(crate) fn work_if_asked() {
    let Ok(root) = std::env::var(ASKED).map(PathBuf::from) else { return };
    let deep = std::env::var(DEEP).is_ok();
    let folder = if deep { root.join(DEEP_STORE) } else { root.clone() };
    let after: u64 = std::env::var(AFTER).map_or(0, |after| after.parse().unwrap());
    let hasty = std::env::var(HASTY).is_ok();
    let long = std::env::var(LONG).is_ok();
    let attempts = if long { ATTEMPTS_LONG } else { ATTEMPTS };
    let mut attempt = after;
    // Opened twice, so that opening what is there fails too.
    for until in [after + attempts / 2, after + attempts] {
        let opened = (0..2).find_map(|_| Store::open(&folder, options()).ok());
        let Some(store) = opened else { break };
        while attempt < until {
            attempt += 1;
            let mut batch = Batch::new();
            batch.put(&key(attempt), &value(attempt));
            batch.put(b"newest", &attempt.to_le_bytes());
            if let Some(deleted) = deletes(attempt) {
                batch.delete(&key(deleted));
            }
            say("begun", attempt);
            match commit(&store, &batch) {
                Ok(_) => say("done", attempt),
                Err(StoreError::Unsettled { .. }) => say("unsettled", attempt),
                Err(error) => {
                    assert!(error.is_transient() || matches!(error, StoreError::Closed), "{error}");
                    say("refused", attempt);
                    if hasty {
                        end();
                    }
                }
            }
            settle(&store);
        }
        // What the tables hold is let go of, whatever became of earlier tries.
        let segments = store.stats().log_segments;
        assert!(!long || segments <= SEGMENTS_MAX, "{segments} segments are kept");
        if deep && attempt == after + attempts {
            match store.backup(&root.join(DEEP_COPY), |_, _| {}) {
                Ok(_) => say("copied", attempt),
                Err(error) => assert!(!root.join(DEEP_COPY).exists(), "it failed and is there: {error}"),
            }
        }
    }
    end();
}

fn end() -> ! {
    let me = rustix::process::getpid();
    rustix::process::kill_process(me, rustix::process::Signal::KILL).unwrap();
    unreachable!("killed");
}

/// Waits until nothing is left to do behind the answers. A fault that is over is recovered from by itself; from one
/// that stays, nothing is to be waited for.
fn settle(store: &Store) {
    if std::env::var("SHIM_FAULT").is_ok_and(|fault| fault.ends_with(['2', '3'])) {
        return;
    }
    loop {
        let stats = store.stats();
        let idle = stats.overlays_frozen == 0 && stats.tables_unmerged < 4;
        if idle && stats.state == State::Running && stats.tables_failing.is_none() {
            return;
        }
        std::thread::yield_now();
    }
}

fn say(what: &str, attempt: u64) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{what} {attempt}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// What became of the attempts.
#[derive(Debug, Default)]
pub(crate) struct Told {
    done: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    unsettled: BTreeSet<u64>,
    begun: u64,
    pub(crate) copied: bool,
}

impl Told {
    pub(crate) fn of(trace: &[Event]) -> Self {
        let mut told = Self::default();
        for event in trace {
            let Event::Print(line) = event else { continue };
            let Some((what, Ok(attempt))) = line.split_once(' ').map(|(what, number)| (what, number.parse())) else {
                continue;
            };
            match what {
                "begun" => told.begun = attempt,
                "done" => _ = told.done.insert(attempt),
                "refused" => _ = told.refused.insert(attempt),
                "unsettled" => _ = told.unsettled.insert(attempt),
                "copied" => told.copied = true,
                _ => {}
            }
        }
        told
    }

    /// What is neither done nor refused may be there or not.
    pub(crate) fn check(&self, store: &Store, what: &str) {
        let unknown = |attempt: &u64| !self.done.contains(attempt) && !self.refused.contains(attempt);
        let found: BTreeMap<Vec<u8>, Vec<u8>> = rows(store);
        for attempt in 1..=self.begun {
            let there = found.get(&key(attempt));
            let deleters: Vec<u64> = (1..=self.begun).filter(|later| deletes(*later) == Some(attempt)).collect();
            let is_deleted = deleters.iter().any(|later| self.done.contains(later));
            let may_be_deleted = is_deleted || deleters.iter().any(unknown);
            if self.refused.contains(&attempt) || is_deleted {
                assert!(there.is_none(), "{what}: attempt {attempt} is there: {self:?}");
            } else if self.done.contains(&attempt) && !may_be_deleted {
                assert!(there == Some(&value(attempt)), "{what}: attempt {attempt} is lost: {self:?}");
            }
        }
        let newest = found.get(&b"newest"[..]).map_or(0, |bytes| u64::from_le_bytes(bytes[..].try_into().unwrap()));
        let last = self.done.last().copied().unwrap_or(0);
        let fits = newest == last || (newest > last && newest <= self.begun && unknown(&newest));
        assert!(fits, "{what}: the newest is {newest}: {self:?}");
        store.check(|_, _| {}).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

/// A child that has ended, and its folder.
pub(crate) struct Run {
    pub(crate) test: String,
    pub(crate) root: PathBuf,
    pub(crate) trace: Vec<Event>,
    told: Told,
    folder: TempDir,
    deep: bool,
}

impl Run {
    /// Runs this test as a child until it is killed.
    pub(crate) fn of(test: &str, fault: Option<&Fault>) -> Self {
        Self::with(test, fault, folder(), &[])
    }

    /// The same, and the child ends at the first refusal.
    pub(crate) fn hasty(test: &str, fault: &Fault) -> Self {
        Self::with(test, Some(fault), folder(), &[(HASTY, "1".into())])
    }

    /// The same, and the child works for longer and looks at what it keeps.
    pub(crate) fn long(test: &str, fault: &Fault) -> Self {
        Self::with(test, Some(fault), folder(), &[(LONG, "1".into())])
    }

    /// The same, far below what there is, with a backup at the end.
    pub(crate) fn deep(test: &str, fault: Option<&Fault>) -> Self {
        Self { deep: true, ..Self::with(test, fault, folder(), &[(DEEP, "1".into())]) }
    }

    /// Opens what a machine found below `root` when the power was back.
    pub(crate) fn check_image(&self, seen: &[Event], root: &Path, what: &str) {
        let told = Told::of(seen);
        let open = |path: &Path| Store::open(path, options()).unwrap_or_else(|error| panic!("{what}: {error}"));
        told.check(&open(&if self.deep { root.join(DEEP_STORE) } else { root.to_path_buf() }), what);
        if told.copied {
            told.check(&open(&root.join(DEEP_COPY)), what);
        }
    }

    /// Another child goes on where this one was killed.
    pub(crate) fn again(self) -> Self {
        let after = self.told.begun.to_string();
        Self::with(&self.test, None, self.folder, &[(AFTER, after)])
    }

    fn with(test: &str, fault: Option<&Fault>, folder: TempDir, more: &[(&str, String)]) -> Self {
        let (root, trace) = (folder.path().join("store"), folder.path().join("trace"));
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).envs(more.iter().cloned());
        command.env(ASKED, &root).env("LD_PRELOAD", shim()).env("SHIM_ROOT", &root).env("SHIM_TRACE", &trace);
        if let Some(Fault { class, index, kind }) = fault {
            command.env("SHIM_FAULT", format!("{class},{index},{}", *kind as u32));
        }
        let output = command.output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), None, "{fault:?}: the child is killed at its end: {out}{err}");
        let trace = trace::read(&std::fs::read_to_string(&trace).unwrap());
        let told = Told::of(&trace);
        Self { test: test.into(), root, trace, told, folder, deep: false }
    }

    /// Whatever was not made durable is gone after a mere crash of the process, as long as files can be written.
    pub(crate) fn refuses_unsettled(&mut self) {
        self.told.refused.append(&mut self.told.unsettled);
    }

    /// Opens what the child left.
    pub(crate) fn check(&self, what: &str) {
        let store = Store::open(&self.root, options()).unwrap_or_else(|error| panic!("{what}: {error}"));
        self.told.check(&store, what);
    }
}

/// A folder in memory where there is one: what a disk does is played here, and a real one would take its time.
pub(crate) fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.unwrap()
}

/// The shim, built once.
fn shim() -> &'static Path {
    static BUILT: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let build = || {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("shim.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/store_faults/shim.c");
        let built =
            Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).args([source, "-ldl"]).status();
        assert!(built.expect("this test needs the command `cc`").success());
        (folder, library)
    };
    &BUILT.get_or_init(build).1
}
