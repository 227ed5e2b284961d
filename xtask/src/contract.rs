//! The HTTP surface against its own OpenAPI document, by schemathesis: no 5xx, and every answer is
//! one that the document promises.

use crate::{install, shell};
use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A key for this run only; the server lives on loopback for a minute.
const ADMIN_KEY: &str = "contract-run-admin-key-0123456789abcdef";
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
const READY_TIMEOUT: Duration = Duration::from_secs(20);

/// Builds the server, starts it on a store of its own, and lets schemathesis at it.
pub(crate) fn run() -> Result<()> {
    let schemathesis = install::schemathesis()?;
    shell::run(shell::cargo().args(["build", "--quiet", "-p", "tally-cli"]))?;
    let server = Server::start()?;
    server.wait_until_ready()?;
    shell::run(
        Command::new(schemathesis)
            .arg("run")
            .arg(format!("http://{}/openapi.json", server.address))
            .args(["-H", &format!("Authorization: Bearer {ADMIN_KEY}")])
            .args(["--checks", CHECKS])
            .args(["--phases", "examples,coverage,fuzzing"])
            // One worker: Python's parser, which it calls, does not bear two threads at once.
            .args(["--max-examples", "60", "--workers", "1", "--request-timeout", "10"])
            // A fixed seed: a run that was green stays green until the code changes.
            .args(["--seed", "20260101", "--suppress-health-check", "all", "--warnings", "off"])
            // Streams that never end by themselves; they have tests of their own.
            .args(["--exclude-path-regex", "/(live|events)$"]),
    )
    .context("the HTTP surface does not keep its own contract: the failing calls are above, each with a curl line")?;
    server.still_alive()
}

struct Server {
    child: Child,
    address: SocketAddr,
    folder: PathBuf,
}

impl Server {
    fn start() -> Result<Self> {
        let program = shell::target_dir().join("debug/tally");
        if !program.is_file() {
            bail!("cargo built no {}: does tally-cli still have a binary called `tally`?", program.display());
        }
        let address = free_address()?;
        let folder = shell::target_dir().join(format!("contract-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let child = Command::new(&program)
            .arg("serve")
            .env("TALLY_STORE", format!("embedded:{}", folder.join("store").display()))
            .env("TALLY_LISTEN", address.to_string())
            .env("TALLY_ADMIN_KEY", ADMIN_KEY)
            .env("TALLY_LOG_LEVEL", "warn")
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("could not start {}", program.display()))?;
        Ok(Self { child, address, folder })
    }

    fn wait_until_ready(&self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < READY_TIMEOUT {
            if get_status(self.address, "/readyz").is_ok_and(|status| status == 200) {
                return Ok(());
            }
            // Nothing tells us when a process starts to listen, so this asks again.
            std::thread::sleep(Duration::from_millis(50));
        }
        bail!(
            "`tally serve` did not answer 200 on http://{}/readyz within {} s: it ended, or it does not read TALLY_LISTEN and TALLY_STORE",
            self.address,
            READY_TIMEOUT.as_secs()
        )
    }

    fn still_alive(mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the server ended by itself during the run ({status})"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Best effort: the child may have ended by itself, which `still_alive` reports.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn get_status(address: SocketAddr, path: &str) -> Result<u16> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut head = [0_u8; 12];
    stream.read_exact(&mut head)?;
    let code = std::str::from_utf8(&head[9..12])?;
    Ok(code.parse()?)
}
