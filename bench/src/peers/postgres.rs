//! PostgreSQL 15 as a peer: a cluster made here, loaded here, gone afterwards.

use super::{SEED, SharedWorkload, lock};
use crate::child::{Server, free_address, memory_bytes, temporary_folder};
use crate::load::{self, Load, Measured};
use crate::workload::{Shape, Workload};
use anyhow::{Context, Result, anyhow, bail};
use rustix::process::Signal;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

/// A running PostgreSQL.
pub(crate) struct Postgres {
    server: Server,
    /// Held for its drop: the cluster is removed with it, after the server ended.
    _folder: TempDir,
    address: SocketAddr,
    pub(crate) workload: SharedWorkload,
}

/// How this peer is set up, for the report.
pub(crate) const SETUP: &str = "PostgreSQL 15, bigint ids (smaller than Tally's strings), edge table with its key and an index for each direction, \
count table with fillfactor 50, C locale, shared_buffers 1 GB, max_wal_size 8 GB, fsync and synchronous_commit on as by default; \
a like is one prepared statement (a CTE: insert, then count), a transaction of its own in one round trip, which beat BEGIN … COMMIT";

const TABLES: &str = "
CREATE TABLE edge (relation smallint NOT NULL, object bigint NOT NULL, subject bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE total (relation smallint NOT NULL, object bigint NOT NULL, n bigint NOT NULL, PRIMARY KEY (relation, object)) WITH (fillfactor = 50);";

/// Made after the load, which is how one loads PostgreSQL; the counts come from the edges.
const INDEXES: &str = "
ALTER TABLE edge ADD PRIMARY KEY (relation, object, subject);
CREATE INDEX edge_by_object ON edge (relation, object, created_at DESC, subject);
CREATE INDEX edge_by_subject ON edge (relation, subject, created_at DESC, object);
INSERT INTO total SELECT relation, object, count(*) FROM edge GROUP BY relation, object;
VACUUM ANALYZE edge;
VACUUM ANALYZE total;
CHECKPOINT;";

const LIKE: &str = "
WITH added AS (
  INSERT INTO edge (relation, object, subject) VALUES (1, $1, $2) ON CONFLICT DO NOTHING RETURNING 1
)
INSERT INTO total (relation, object, n) SELECT 1, $1, 1 FROM added
ON CONFLICT (relation, object) DO UPDATE SET n = total.n + 1
RETURNING n";

/// In key order, so that two calls never lock the same rows in two orders.
const LIKE_MANY: &str = "
WITH added AS (
  INSERT INTO edge (relation, object, subject)
  SELECT 1, object, subject FROM unnest($1::bigint[], $2::bigint[]) AS asked (object, subject) ORDER BY 2, 3
  ON CONFLICT DO NOTHING RETURNING object
)
INSERT INTO total (relation, object, n) SELECT 1, object, count(*) FROM added GROUP BY object ORDER BY object
ON CONFLICT (relation, object) DO UPDATE SET n = total.n + excluded.n
RETURNING object, n";

impl Postgres {
    pub(crate) async fn start() -> Result<Self> {
        let folder = temporary_folder("postgres")?;
        let programs = programs()?;
        let owner = Owner::find(folder.path())?;
        let data = folder.path().join("data");
        let mut initdb = Command::new(programs.join("initdb"));
        initdb.arg("-D").arg(&data).args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]);
        let made = owner.applied(&mut initdb).current_dir(folder.path()).output().context("could not start initdb")?;
        if !made.status.success() {
            bail!("initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        }

        let address = free_address()?;
        let mut postgres = Command::new(programs.join("postgres"));
        postgres.arg("-D").arg(&data).current_dir(folder.path());
        for setting in [
            format!("port={}", address.port()),
            "listen_addresses=127.0.0.1".into(),
            "unix_socket_directories=".into(),
            "max_connections=300".into(),
            "shared_buffers=1GB".into(),
            "max_wal_size=8GB".into(),
            "checkpoint_timeout=30min".into(),
        ] {
            postgres.args(["-c", &setting]);
        }
        // SIGQUIT ends every backend at once; its data is thrown away.
        let mut server = Server::start("postgres", owner.applied(&mut postgres), folder.path(), Signal::QUIT)?;
        let client = server.wait_until(Duration::from_secs(30), async || connect(address).await).await?;
        client.batch_execute(TABLES).await?;
        let workload = Arc::new(Mutex::new(Workload::new(SEED)));
        Ok(Self { server, _folder: folder, address, workload })
    }

    pub(crate) async fn connect(&self) -> Result<Client> {
        connect(self.address).await
    }

    /// Loads edges of one relation into the tables without indexes.
    pub(crate) async fn preload(
        &self,
        relation: i16,
        mut edges: impl Iterator<Item = (u32, u32)>,
        mut progress: impl FnMut(u64),
    ) -> Result<()> {
        let client = self.connect().await?;
        let insert = client
            .prepare(
                "INSERT INTO edge SELECT $1, object, subject, clock_timestamp() FROM unnest($2::bigint[], $3::bigint[]) AS asked (object, subject)",
            )
            .await?;
        loop {
            let (objects, subjects): (Vec<i64>, Vec<i64>) =
                edges.by_ref().take(20_000).map(|(object, subject)| (i64::from(object), i64::from(subject))).unzip();
            if objects.is_empty() {
                return Ok(());
            }
            client.execute(&insert, &[&relation, &objects, &subjects]).await?;
            progress(objects.len() as u64);
        }
    }

    /// Indexes and counts over what was loaded.
    pub(crate) async fn finish_preload(&self) -> Result<()> {
        let client = self.connect().await?;
        // One by one: VACUUM does not run inside the transaction of a multi-statement string.
        for statement in INDEXES.split(';').filter(|text| !text.trim().is_empty()) {
            client.batch_execute(statement).await.with_context(|| statement.to_owned())?;
        }
        Ok(())
    }

    /// A transaction per like.
    pub(crate) async fn likes(&self, load: Load, shape: Shape) -> Result<Measured> {
        let (address, workload) = (self.address, self.workload.clone());
        load::run(load, async move |_, recorder| {
            let client = connect(address).await?;
            let like = client.prepare(LIKE).await?;
            loop {
                let edge = lock(&workload).next(shape);
                let asked = Instant::now();
                client.query(&like, &[&i64::from(edge.object), &i64::from(edge.subject)]).await?;
                if !recorder.answered(asked, 1) {
                    return Ok(());
                }
            }
        })
        .await
    }

    /// Many likes in one statement.
    pub(crate) async fn likes_batched(&self, load: Load, shape: Shape, batch: usize) -> Result<Measured> {
        let (address, workload) = (self.address, self.workload.clone());
        load::run(load, async move |_, recorder| {
            let client = connect(address).await?;
            let like_many = client.prepare(LIKE_MANY).await?;
            let (mut objects, mut subjects) = (Vec::<i64>::new(), Vec::<i64>::new());
            loop {
                objects.clear();
                subjects.clear();
                for _ in 0..batch {
                    let edge = lock(&workload).next(shape);
                    objects.push(i64::from(edge.object));
                    subjects.push(i64::from(edge.subject));
                }
                let asked = Instant::now();
                client.query(&like_many, &[&objects, &subjects]).await?;
                if !recorder.answered(asked, batch as u64) {
                    return Ok(());
                }
            }
        })
        .await
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        memory_bytes(self.server.pid())
    }

    /// Tables and indexes, without the log.
    pub(crate) async fn disk_bytes(&self) -> Result<u64> {
        let sql = "SELECT pg_total_relation_size('edge') + pg_total_relation_size('total')";
        let bytes: i64 = self.connect().await?.query_one(sql, &[]).await?.get(0);
        Ok(bytes.unsigned_abs())
    }
}

/// A connection whose background task runs on the current thread.
pub(crate) async fn connect(address: SocketAddr) -> Result<Client> {
    let settings = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", address.port());
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await?;
    // Ends when the client is dropped; an error shows at the client's next call.
    tokio::spawn(connection);
    Ok(client)
}

/// Debian keeps the programs off PATH, in a folder per version.
fn programs() -> Result<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .filter(|folder| folder.join("postgres").is_file())
        .collect();
    found.sort();
    found.pop().ok_or_else(|| {
        anyhow!("PostgreSQL is not installed: `cargo xtask test` installs it, or: apt-get install postgresql")
    })
}

/// Who the server runs as: PostgreSQL refuses to run as root.
struct Owner(Option<(u32, u32)>);

impl Owner {
    fn find(folder: &Path) -> Result<Self> {
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

    fn applied<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        if let Some((uid, gid)) = self.0 {
            command.uid(uid).gid(gid);
        }
        command
    }
}
