//! The files of a PostgreSQL, and the programs that make them.

use crate::folder::Folder;
use anyhow::{Context, Result, anyhow, bail};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Who may connect, and how.
const ACCESS: &str = "host all secret 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n";
const ROLES: &str = "CREATE ROLE secret SUPERUSER LOGIN PASSWORD 'secret'\n";

/// A cluster that was made and never started. Copying one is quicker than making one.
pub struct Template(Folder);

impl Template {
    /// Makes it; it is removed with the value.
    pub fn make() -> Result<Self> {
        let folder = Folder::in_memory("postgres-template")?;
        make(&programs()?, &Owner::find(folder.path())?, folder.path(), false)?;
        Ok(Self(folder))
    }

    /// Where it is, for [`crate::Options::template`].
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Makes a cluster in `folder/data`.
pub(super) fn make(programs: &Path, owner: &Owner, folder: &Path, fsync: bool) -> Result<()> {
    let data = folder.join("data");
    let mut initdb = Command::new(programs.join("initdb"));
    initdb.arg("-D").arg(&data).args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]);
    if !fsync {
        // A small log file is made and copied sooner.
        initdb.args(["--no-sync", "--wal-segsize=1"]);
    }
    succeed(owner.applied(&mut initdb).current_dir(folder), "")?;
    // The server reads a statement a line from its input, without a port that somebody could see.
    let mut single = Command::new(programs.join("postgres"));
    single.args(["--single", "-F", "-D"]).arg(&data).arg("postgres");
    let said = succeed(owner.applied(&mut single).current_dir(folder), ROLES)?;
    if said.contains("ERROR") {
        bail!("could not make roles: {said}");
    }
    Ok(std::fs::write(data.join("pg_hba.conf"), ACCESS)?)
}

/// Copies a template to `folder/data`.
pub(super) fn copy(template: &Path, folder: &Path) -> Result<()> {
    succeed(Command::new("cp").arg("-a").arg(template.join("data")).arg(folder).current_dir(folder), "")?;
    Ok(())
}

/// Runs a command to its end and gives what it said to standard error.
fn succeed(command: &mut Command, input: &str) -> Result<String> {
    let program = command.get_program().to_owned();
    let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("could not start {program:?}"))?;
    child.stdin.take().context("it has an input")?.write_all(input.as_bytes())?;
    let out = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    if !out.status.success() {
        bail!("{program:?} failed ({}): {said}", out.status);
    }
    Ok(said)
}

/// Whether the server with this process id takes connections, as its own lock file says.
pub(super) fn check_ready(data: &Path, pid: u32) -> Result<()> {
    let lock = std::fs::read_to_string(data.join("postmaster.pid"))?;
    let mut lines = lock.lines();
    // A server that was killed left its file behind.
    if lines.next() != Some(pid.to_string().as_str()) {
        bail!("it did not begin yet");
    }
    match lines.nth(6).map(str::trim) {
        Some("ready") => Ok(()),
        other => bail!("its state is {other:?}"),
    }
}

/// Gives back the shared memory of a server that was killed; one that ends by itself does so itself.
pub(super) fn release_memory(data: &Path) {
    let lock = std::fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    if let Some(id) = lock.lines().nth(6).and_then(|line| line.split_whitespace().nth(1)) {
        // Best effort: it is a few bytes, and there is nobody left to tell.
        let _ = Command::new("ipcrm").args(["-m", id]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Debian keeps the programs off PATH, in a folder per version.
pub(super) fn programs() -> Result<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        debian.map(|entry| entry.path().join("bin")).filter(|it| holds_postgres(it)).collect();
    found.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let newest = found.pop().or_else(|| std::env::split_paths(&path).find(|it| holds_postgres(it)));
    newest.ok_or_else(|| {
        anyhow!("PostgreSQL is not installed: `cargo xtask test` installs it, or: apt-get install postgresql")
    })
}

fn holds_postgres(folder: &Path) -> bool {
    folder.join("postgres").is_file()
}

/// Who the server runs as: PostgreSQL refuses to run as root.
pub(super) struct Owner(Option<(u32, u32)>);

impl Owner {
    /// Finds out, and gives the folder to that user.
    pub(super) fn find(folder: &Path) -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self(None));
        }
        let users = std::fs::read_to_string("/etc/passwd")?;
        let fields =
            users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == "postgres");
        let fields = fields.context("PostgreSQL refuses to run as root, and there is no user `postgres`")?;
        let (uid, gid) = (fields[2].parse()?, fields[3].parse()?);
        std::os::unix::fs::chown(folder, Some(uid), Some(gid))?;
        Ok(Self(Some((uid, gid))))
    }

    pub(super) fn applied<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        if let Some((uid, gid)) = self.0 {
            command.uid(uid).gid(gid);
        }
        command
    }
}
