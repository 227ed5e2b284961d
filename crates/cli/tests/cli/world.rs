//! A folder of its own for each test, the binary run in it, and a server that dies with its value.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tally::Tally;
use tempfile::TempDir;

/// Longer than anything here takes; only a hang gets there.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const KEY: &str = "short";

/// One test's own folder.
pub(crate) struct World {
    home: TempDir,
}

/// What a command left behind.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Its standard output as JSON, after it succeeded.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self}");
        self.any_json()
    }

    /// Its standard output as JSON, whatever its exit code.
    pub(crate) fn any_json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Asserts how it failed, and that a person is told so in one line.
    pub(crate) fn fails(&self, code: i32, words: &str) {
        assert_eq!(self.code, code, "{self}");
        assert!(self.err.starts_with("tally: ") && self.err.contains(words), "no `{words}` in: {self}");
        assert_eq!(self.err.trim_end().lines().count(), 1, "{self}");
        assert!(self.out.is_empty(), "{self}");
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit {}\n--- out\n{}\n--- err\n{}", self.code, self.out, self.err)
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self { home: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// A folder as a store's URL.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("embedded:{}", self.path(name).display())
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The binary in this folder, with an environment that nothing leaks into.
    pub(crate) fn tally(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tally"));
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"TALLY_") {
                command.env_remove(name);
            }
        }
        command.current_dir(self.home.path()).stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        ran(self.tally().args(args))
    }

    /// Opens a folder of this world with the library, works on it and closes it.
    pub(crate) fn with_store<T>(&self, name: &str, work: impl AsyncFnOnce(&Tally) -> T) -> T {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let tally = Tally::open(&self.url(name), tally::Options::default()).await.unwrap();
            let outcome = work(&tally).await;
            tally.close().await;
            outcome
        })
    }

    /// A store with a few likes.
    pub(crate) fn seed(&self, name: &str, likes: &[(&str, &str)]) {
        self.with_store(name, async |tally| {
            for (object, subject) in likes {
                tally.relate("like", object, subject).await.unwrap();
            }
        });
    }

    /// Starts a server on the folder `data` with the usual key.
    pub(crate) fn serve(&self) -> Served {
        self.serve_with(&[], Some(KEY))
    }

    /// Starts a server on the folder `data`, and waits until it listens.
    pub(crate) fn serve_with(&self, args: &[&str], key: Option<&str>) -> Served {
        self.served(&self.url("data"), args, key)
    }

    /// Starts a server on another store with the usual key.
    pub(crate) fn serve_on(&self, store: &str) -> Served {
        self.served(store, &[], Some(KEY))
    }

    fn served(&self, store: &str, args: &[&str], key: Option<&str>) -> Served {
        let (out, log) = (self.path("serve.out"), self.path("serve.log"));
        let mut command = self.tally();
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", store]).args(args);
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&log).unwrap());
        if let Some(key) = key {
            command.env("TALLY_ADMIN_KEY", key);
        }
        let mut served = Served { child: command.spawn().unwrap(), base: String::new(), out, log };
        served.base = until("the server listens", || {
            if let Some(status) = served.child.try_wait().unwrap() {
                panic!("the server ended with {status}: {}", served.log());
            }
            let log = served.log();
            let (_, rest) = log.split_once("serving on ")?;
            Some(rest.split([' ', '"', '\n']).next()?.to_owned()).filter(|_| rest.contains('\n'))
        });
        served
    }
}

/// Runs a command to its end.
pub(crate) fn ran(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Looks until there is something to see.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(started.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A running server.
pub(crate) struct Served {
    child: Child,
    pub(crate) base: String,
    out: PathBuf,
    log: PathBuf,
}

impl Served {
    /// Runs a command against it, with its key.
    pub(crate) fn run(&self, world: &World, args: &[&str]) -> Ran {
        self.run_as(world, KEY, args)
    }

    /// The same with another key.
    pub(crate) fn run_as(&self, world: &World, key: &str, args: &[&str]) -> Ran {
        ran(world.tally().args(args).env("TALLY_URL", &self.base).env("TALLY_KEY", key))
    }

    pub(crate) fn out(&self) -> String {
        read(&self.out)
    }

    pub(crate) fn log(&self) -> String {
        read(&self.log)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// How it ended.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        until("the server ends", || self.child.try_wait().unwrap())
    }

    /// Stops it as an operator does.
    pub(crate) fn stop(mut self) {
        self.signal(Signal::TERM);
        assert!(self.ended().success(), "{}", self.log());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
}
