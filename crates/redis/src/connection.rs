//! Connections, and questions on them. Every script may be sent again: it does its work once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, SingleNodeRoutingInfo, SlotAddr};
use redis::{Client, Cmd, ErrorKind, Pipeline, RedisError, ServerErrorKind, TlsCertificates, Value};
use tally_engine::StoreError;
use tokio::sync::OnceCell;

use crate::options::Options;

/// Connections to a node while answers wait for replicas: whatever is behind such a wait, waits too.
const CONNECTIONS_THAT_WAIT: usize = 8;
/// And otherwise: one that commits while another one loads.
const CONNECTIONS: usize = 2;

/// A way to Redis.
pub(crate) struct Link {
    options: Options,
    next: AtomicUsize,
    one: Vec<OnceCell<ConnectionManager>>,
    cluster: Vec<OnceCell<ClusterConnection>>,
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Certainly not done.
    Refused(StoreError),
    /// Refused before it was looked at. A client of a Cluster sends again by itself, and this is what came of
    /// the last time: an earlier one may have been done.
    Unsure(StoreError),
    /// Perhaps done.
    Lost(StoreError),
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(error) | Fault::Unsure(error) | Fault::Lost(error) => error,
        }
    }
}

/// A script, known to Redis by its hash.
pub(crate) struct Script {
    source: String,
    hash: String,
    writes: bool,
}

impl Script {
    pub(crate) fn new(source: String, writes: bool) -> Self {
        let hash = redis::Script::new(&source).get_hash().to_owned();
        Self { source, hash, writes }
    }

    /// The command that runs it on these keys; more words may follow.
    fn command(&self, ask: &Ask, whole: bool) -> Cmd {
        let name = match (whole, self.writes) {
            (false, true) => "EVALSHA",
            (false, false) => "EVALSHA_RO",
            (true, true) => "EVAL",
            (true, false) => "EVAL_RO",
        };
        let mut command =
            Cmd::with_capacity(ask.keys.len() + ask.words.ends.len() + 3, ask.words.bytes.len() + 64 * ask.keys.len());
        command.arg(name).arg(if whole { &self.source } else { &self.hash }).arg(ask.keys.len());
        for key in &ask.keys {
            command.arg(key.as_bytes());
        }
        ask.words.iter().for_each(|word| _ = command.arg(word));
        command
    }
}

/// Words for a script, one behind the other.
#[derive(Clone, Default)]
pub(crate) struct Words {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Words {
    pub(crate) fn push(&mut self, word: impl AsRef<[u8]>) {
        self.bytes.extend_from_slice(word.as_ref());
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn number(&mut self, number: usize) {
        use std::io::Write;
        let _ = write!(self.bytes, "{number}");
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn append(&mut self, other: &Self) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| start + end));
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}

/// What a script is asked: all keys it touches, and words.
#[derive(Clone, Default)]
pub(crate) struct Ask {
    pub(crate) keys: Vec<String>,
    pub(crate) words: Words,
}

impl Ask {
    pub(crate) fn new(keys: impl IntoIterator<Item = String>, words: &[&str]) -> Self {
        let mut ask = Self { keys: keys.into_iter().collect(), words: Words::default() };
        words.iter().for_each(|word| ask.words.push(word));
        ask
    }
}

impl Link {
    pub(crate) fn new(options: Options) -> Self {
        let count = if options.waits() { CONNECTIONS_THAT_WAIT } else { CONNECTIONS };
        Self {
            options,
            next: AtomicUsize::new(0),
            one: (0..count).map(|_| OnceCell::new()).collect(),
            cluster: (0..count).map(|_| OnceCell::new()).collect(),
        }
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    fn certificates(&self) -> Result<TlsCertificates, StoreError> {
        let read = |path: &String| {
            std::fs::read(path).map_err(|error| StoreError::Broken(format!("`{path}` cannot be read: {error}")))
        };
        let root_cert = self.options.root_certificate.as_ref().map(read).transpose()?;
        Ok(TlsCertificates { client_tls: None, root_cert })
    }

    /// A client of one of the nodes, counted round.
    pub(crate) fn client(&self, number: usize) -> Result<Client, StoreError> {
        let node = self.options.nodes[number % self.options.nodes.len()].clone();
        let client = match self.options.root_certificate {
            Some(_) => Client::build_with_tls(node, self.certificates()?),
            None => Client::open(node),
        };
        client.map_err(|error| unavailable(&error))
    }

    async fn one(&self, number: usize) -> Result<ConnectionManager, Fault> {
        let connect = || async {
            let config = ConnectionManagerConfig::new()
                .set_connection_timeout(Some(self.options.timeout))
                .set_response_timeout(Some(self.options.timeout))
                .set_number_of_retries(1)
                .set_min_delay(Duration::from_millis(20))
                .set_max_delay(Duration::from_millis(200));
            let client = self.client(0).map_err(Fault::Refused)?;
            ConnectionManager::new_lazy_with_config(client, config).map_err(|error| fault(&error))
        };
        Ok(self.one[number % self.one.len()].get_or_try_init(connect).await?.clone())
    }

    async fn cluster(&self, number: usize) -> Result<ClusterConnection, Fault> {
        let connect = || async {
            let mut builder = ClusterClientBuilder::new(self.options.nodes.clone())
                .connection_timeout(self.options.timeout)
                .response_timeout(self.options.timeout)
                .overall_response_timeout(Some(self.options.timeout))
                .tcp_settings(redis::io::tcp::TcpSettings::default().set_nodelay(true))
                .retries(8)
                .min_retry_wait(5)
                .max_retry_wait(100);
            if self.options.root_certificate.is_some() {
                builder = builder.certs(self.certificates().map_err(Fault::Refused)?);
            }
            let client = builder.build().map_err(|error| fault(&error))?;
            let connecting = tokio::time::timeout(self.options.timeout, client.get_async_connection());
            let connected = connecting.await.map_err(|_| Fault::Refused(too_slow(self.options.timeout)))?;
            connected.map_err(|error| Fault::Refused(unavailable(&error)))
        };
        Ok(self.cluster[number % self.cluster.len()].get_or_try_init(connect).await?.clone())
    }

    fn next(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// One command.
    pub(crate) async fn send(&self, command: &Cmd) -> Result<Value, Fault> {
        let answer = if self.options.cluster {
            self.cluster(self.next()).await?.req_packed_command(command).await
        } else {
            self.one(self.next()).await?.req_packed_command(command).await
        };
        answer.and_then(Value::extract_error).map_err(|error| fault(&error))
    }

    /// Many commands, each on its own.
    pub(crate) async fn send_many(&self, commands: Vec<Cmd>) -> Result<Vec<Value>, Fault> {
        if self.options.cluster {
            return futures_util::future::try_join_all(commands.iter().map(|command| self.send(command))).await;
        }
        let mut pipeline = Pipeline::with_capacity(commands.len());
        let count = commands.len();
        commands.into_iter().for_each(|command| _ = pipeline.add_command(command));
        let answers = self.one(self.next()).await?.req_packed_commands(&pipeline, 0, count).await;
        let answers = answers.map_err(|error| fault(&error))?.into_iter();
        answers.map(|answer| answer.extract_error().map_err(|error| fault(&error))).collect()
    }

    /// A command on the node that is named. For a Cluster.
    pub(crate) async fn send_to(&self, command: Cmd, to: redis::cluster_routing::RoutingInfo) -> Result<Value, Fault> {
        let mut connection = self.cluster(self.next()).await?;
        connection.route_command(command, to).await.and_then(Value::extract_error).map_err(|error| fault(&error))
    }

    /// Runs a script; one that the node does not know yet is sent whole.
    pub(crate) async fn run(&self, script: &Script, ask: &Ask) -> Result<Value, Fault> {
        match self.send(&script.command(ask, false)).await {
            Err(Fault::Refused(StoreError::Broken(why))) if why == NO_SCRIPT => {
                self.send(&script.command(ask, true)).await
            }
            answer => answer,
        }
    }

    /// Runs a script that writes, and waits as the options ask until what it wrote is safe.
    pub(crate) async fn run_safely(&self, script: &Script, ask: &Ask) -> Result<Value, Fault> {
        if !self.options.waits() {
            return self.run(script, ask).await;
        }
        match self.run_and_wait(script.command(ask, false), &ask.keys[0]).await {
            Err(Fault::Refused(StoreError::Broken(why))) if why == NO_SCRIPT => {
                self.run_and_wait(script.command(ask, true), &ask.keys[0]).await
            }
            answer => answer,
        }
    }

    async fn run_and_wait(&self, command: Cmd, key: &str) -> Result<Value, Fault> {
        // Waiting ends before the answer would count as lost.
        let wait_ms = (self.options.timeout * 3 / 4).as_millis() as u64;
        let mut pipeline = Pipeline::new();
        pipeline.add_command(command);
        if self.options.wait_replicas > 0 {
            pipeline.cmd("WAIT").arg(self.options.wait_replicas).arg(wait_ms);
        }
        if self.options.wait_aof {
            pipeline.cmd("WAITAOF").arg(1).arg(0).arg(wait_ms);
        }
        let count = pipeline.len();
        let answers = if self.options.cluster {
            let route = SingleNodeRoutingInfo::SpecificNode(Route::with_key(key, SlotAddr::Master));
            self.cluster(self.next()).await?.route_pipeline(pipeline, 0, count, route).await
        } else {
            self.one(self.next()).await?.req_packed_commands(&pipeline, 0, count).await
        };
        let mut answers = answers.map_err(|error| fault(&error))?.into_iter();
        let answer = answers.next().unwrap_or(Value::Nil).extract_error().map_err(|error| fault(&error))?;
        for waited in answers {
            let waited = waited.extract_error().map_err(|error| Fault::Lost(unavailable(&error)))?;
            let (safe, asked) = match &waited {
                Value::Int(replicas) => (*replicas >= i64::from(self.options.wait_replicas), "replicas"),
                Value::Array(both) => (matches!(both.first(), Some(Value::Int(1..))), "the append-only file"),
                _ => (false, "Redis"),
            };
            if !safe {
                let why = format!("the write is not in as many of {asked} in time as the store's URL asks for");
                return Err(Fault::Lost(StoreError::Unavailable(why)));
            }
        }
        Ok(answer)
    }
}

const NO_SCRIPT: &str = "NOSCRIPT";

pub(crate) fn too_slow(timeout: Duration) -> StoreError {
    StoreError::Unavailable(format!("Redis did not answer within {} ms", timeout.as_millis()))
}

pub(crate) fn unavailable(error: &RedisError) -> StoreError {
    StoreError::Unavailable(format!("Redis: {error}"))
}

/// What an error says about the command.
fn fault(error: &RedisError) -> Fault {
    let unavailable = |why: &str| Fault::Unsure(StoreError::Unavailable(why.into()));
    let refused = |why: &str| Fault::Refused(StoreError::Unavailable(why.into()));
    match error.kind() {
        ErrorKind::Server(ServerErrorKind::NoScript) => Fault::Refused(StoreError::Broken(NO_SCRIPT.into())),
        ErrorKind::Server(ServerErrorKind::BusyLoading) => unavailable("Redis is still loading its data"),
        ErrorKind::Server(ServerErrorKind::ReadOnly) => {
            unavailable("this Redis is a read-only replica now, or takes no writes")
        }
        ErrorKind::Server(
            ServerErrorKind::Moved
            | ServerErrorKind::Ask
            | ServerErrorKind::TryAgain
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::MasterDown,
        ) => unavailable(&format!("the Cluster is changing: {error}")),
        ErrorKind::AuthenticationFailed => unavailable(&format!("Redis refuses the name or the password: {error}")),
        ErrorKind::ClusterConnectionNotFound | ErrorKind::InvalidClientConfig | ErrorKind::Client => {
            Fault::Unsure(self::unavailable(error))
        }
        _ => match error.code() {
            Some("OOM") => refused("Redis has no memory left (maxmemory)"),
            Some("BUSY") => unavailable("Redis is busy with a script"),
            Some("MISCONF") => refused("Redis cannot save to its disk, and takes no writes (MISCONF)"),
            Some("NOREPLICAS") => refused("Redis has fewer replicas than it wants for writes (NOREPLICAS)"),
            Some("NOAUTH" | "WRONGPASS" | "NOPERM") => {
                unavailable(&format!("Redis refuses the name, the password or the permission: {error}"))
            }
            Some("WRONGTYPE") => Fault::Refused(StoreError::Broken(format!(
                "a key under Tally's prefix holds something that Tally did not write: {error}"
            ))),
            Some("UNBLOCKED") => unavailable("this Redis has become a replica"),
            _ if error.to_string().contains("max number of clients") => {
                unavailable("Redis takes no more connections (maxclients)")
            }
            _ if error.is_connection_refusal() => Fault::Unsure(self::unavailable(error)),
            _ if error.is_io_error() => Fault::Lost(self::unavailable(error)),
            Some(_) => Fault::Refused(StoreError::Broken(format!("Redis: {error}"))),
            None => Fault::Lost(self::unavailable(error)),
        },
    }
}
