//! The built binary, as a child process with a folder of its own.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::client::Client;
use super::wait::until;

/// The admin key that every server of the tests is started with.
pub const ADMIN_KEY: &str = "an-admin-key-for-tests";

/// A running server. It dies with the value.
pub struct Server {
    child: Child,
    base: String,
    place: Place,
}

/// Where a server lives, whether or not it runs.
struct Place {
    home: TempDir,
    store: PathBuf,
    url: String,
    config: String,
    args: Vec<String>,
    runs: u32,
}

impl Place {
    fn log(&self) -> PathBuf {
        self.home.path().join(format!("log-{}", self.runs))
    }

    fn spawn(&mut self) -> Child {
        self.runs += 1;
        let config = self.home.path().join("tally.toml");
        std::fs::write(&config, &self.config).unwrap();
        let mut command = binary();
        command
            .arg("serve")
            .args(["--listen", "127.0.0.1:0"])
            .args(["--store", &self.url])
            .arg("--config")
            .arg(&config)
            .args(&self.args)
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(self.log()).unwrap());
        command.spawn().unwrap()
    }

    fn log_text(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.log()).unwrap_or_default()).into_owned()
    }
}

/// The binary with an environment that nothing leaks into.
pub fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tally"));
    let inherited = std::env::vars_os().map(|(name, _)| name);
    for name in inherited.filter(|name| name.as_encoded_bytes().starts_with(b"TALLY_")) {
        command.env_remove(name);
    }
    command.env("TALLY_ADMIN_KEY", ADMIN_KEY).env("NO_COLOR", "1").env_remove("RUST_LOG");
    command
}

impl Server {
    /// Starts a server with these settings on a fresh store, and waits until it is ready.
    pub async fn start(config: &str) -> Self {
        Self::start_with(config, &[], None).await
    }

    /// Starts one with more flags, and perhaps a store that is somewhere else.
    pub async fn start_with(config: &str, args: &[&str], store: Option<&Path>) -> Self {
        let mut server = Self::spawned(config, args, store);
        server.ready().await;
        server
    }

    /// Starts one on a store that it may refuse: `Err` with what it said when it did.
    pub async fn try_start_on(store: &Path) -> Result<Self, String> {
        let mut server = Self::spawned("", &[], Some(store));
        server.started_or_refused().await.map(|()| server)
    }

    /// Starts one on a store that is not a folder.
    pub async fn start_on(url: &str, config: &str) -> Self {
        let home = TempDir::new().unwrap();
        let store = home.path().join("store");
        let (url, config) = (url.to_owned(), config.to_owned());
        let mut server = Self::spawn(Place { home, store, url, config, args: Vec::new(), runs: 0 });
        server.ready().await;
        server
    }

    fn spawned(config: &str, args: &[&str], store: Option<&Path>) -> Self {
        let home = TempDir::new().unwrap();
        let store = store.map_or_else(|| home.path().join("store"), Path::to_path_buf);
        let url = format!("embedded:{}", store.display());
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Self::spawn(Place { home, store, url, config: config.to_owned(), args, runs: 0 })
    }

    fn spawn(mut place: Place) -> Self {
        let child = place.spawn();
        Self { child, base: String::new(), place }
    }

    async fn ready(&mut self) {
        self.base = until("the server says where it listens", async || {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the server ended with {status}:\n{}", self.log());
            }
            address(&self.log())
        })
        .await;
        let client = self.client();
        until("the server is ready", async || {
            let answer = client.get("/readyz").try_send().await.ok()?;
            (answer.status == 200).then_some(())
        })
        .await;
    }

    /// A client with the admin key.
    pub fn client(&self) -> Client {
        Client::new(&self.base, Some(ADMIN_KEY))
    }

    /// A client with another credential, or none.
    pub fn client_as(&self, token: Option<&str>) -> Client {
        Client::new(&self.base, token)
    }

    /// `127.0.0.1:port`.
    pub fn address(&self) -> &str {
        self.base.trim_start_matches("http://").trim_start_matches("https://")
    }

    /// Where its data is.
    pub fn store(&self) -> &Path {
        &self.place.store
    }

    /// A folder that goes when the server does.
    pub fn home(&self) -> &Path {
        self.place.home.path()
    }

    /// What it has written to standard error in this run.
    pub fn log(&self) -> String {
        self.place.log_text()
    }

    /// Ends it with no chance to tidy up.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
        assert!(!self.log().contains("panicked at"), "{}", self.log());
    }

    /// Holds it still, or lets it go on.
    pub fn pause(&self, paused: bool) {
        let signal = if paused { Signal::STOP } else { Signal::CONT };
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Asks it to stop, without waiting.
    pub fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> ExitStatus {
        until("the server ends", async || self.child.try_wait().unwrap()).await
    }

    /// Asks it to stop and waits until it has.
    pub async fn stop(&mut self) {
        self.terminate();
        let status = self.ended().await;
        assert!(status.success() && status.signal().is_none(), "{status}:\n{}", self.log());
    }

    /// Starts it again on the same store. It must have ended.
    pub async fn restart(&mut self) {
        self.child = self.place.spawn();
        self.ready().await;
    }

    /// Starts it again with other settings.
    pub async fn restart_with(&mut self, config: &str) {
        self.place.config = config.to_owned();
        self.restart().await;
    }

    /// Starts it again without a flag that it had.
    pub async fn restart_without(&mut self, flag: &str) {
        self.place.args.retain(|arg| arg != flag);
        self.restart().await;
    }

    async fn started_or_refused(&mut self) -> Result<(), String> {
        let ended = until("the server starts or refuses", async || match self.child.try_wait().unwrap() {
            Some(_) => Some(true),
            None => address(&self.log()).map(|_| false),
        })
        .await;
        if ended {
            return Err(self.log());
        }
        self.ready().await;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(30).collect();
            eprintln!("--- the server's log, newest first ---\n{}", tail.join("\n"));
        }
    }
}

/// Starts a server that is expected to refuse, and gives what it said. It may have found its store or not.
pub async fn refused_start(args: &[&str]) -> String {
    refusal(args).await.1
}

/// The same, with how it ended.
pub async fn refusal(args: &[&str]) -> (ExitStatus, String) {
    let home = TempDir::new().unwrap();
    let log = home.path().join("log");
    let mut command = binary();
    command.arg("serve").args(args).current_dir(home.path()).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
    let text = || String::from_utf8_lossy(&std::fs::read(&log).unwrap_or_default()).into_owned();
    let status = until("the server refuses to start", async || {
        if address(&text()).is_some() {
            let _ = child.kill();
            panic!("the server started:\n{}", text());
        }
        child.try_wait().unwrap()
    })
    .await;
    assert!(!status.success(), "{status}");
    (status, text())
}

/// Where a log says that the server listens.
pub fn address(log: &str) -> Option<String> {
    let at = log.find("serving on http")? + "serving on ".len();
    let rest = &log[at..];
    let end = rest.find(|char: char| char.is_whitespace() || char == '"')?;
    Some(rest[..end].to_owned())
}
