//! Connections, and questions on them. Every script may be sent again: it does its work once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, SingleNodeRoutingInfo, SlotAddr};
use redis::{Client, Cmd, ErrorKind, Pipeline, RedisError, ServerErrorKind, TlsCertificates, Value};
use tally_engine::StoreError;
use tokio::sync::{Mutex, OnceCell};

use crate::options::Options;
use crate::words::Ask;

/// Connections to a node while answers wait for replicas: whatever is behind such a wait, waits too.
const CONNECTIONS_THAT_WAIT: usize = 8;
/// And otherwise: one that commits while another one loads.
const CONNECTIONS: usize = 2;
/// So many questions in a row without any answer, and a connection to a Cluster is made anew: after the death of a node one
/// may wait for it forever.
const SILENT_MAX: usize = 3;

/// A way to Redis.
pub(crate) struct Link {
    options: Options,
    next: AtomicUsize,
    one: Vec<OnceCell<ConnectionManager>>,
    cluster: Vec<Place>,
}

/// Where a connection to a Cluster is kept.
#[derive(Default)]
struct Place {
    connection: Mutex<Option<ClusterConnection>>,
    /// Questions since the last answer of any kind.
    silent: AtomicUsize,
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
            Cmd::with_capacity(ask.keys.len() + ask.words.len() + 3, ask.keys.bytes() + ask.words.bytes() + 64);
        command.arg(name).arg(if whole { &self.source } else { &self.hash }).arg(ask.keys.len());
        ask.keys.iter().for_each(|key| _ = command.arg(key));
        ask.words.iter().for_each(|word| _ = command.arg(word));
        command
    }
}

impl Link {
    pub(crate) fn new(options: Options) -> Self {
        let count = if options.waits() { CONNECTIONS_THAT_WAIT } else { CONNECTIONS };
        Self {
            options,
            next: AtomicUsize::new(0),
            one: (0..count).map(|_| OnceCell::new()).collect(),
            cluster: (0..count).map(|_| Place::default()).collect(),
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
        let place = &self.cluster[number % self.cluster.len()];
        let mut kept = place.connection.lock().await;
        if let Some(connection) = &*kept {
            return Ok(connection.clone());
        }
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
        let connection: ClusterConnection = connect().await?;
        place.silent.store(0, Ordering::Relaxed);
        *kept = Some(connection.clone());
        Ok(connection)
    }

    /// Notes whether a connection to a Cluster answered, and gives up one that is silent, or that knows no node any
    /// more: it would never look for one again.
    fn note(&self, number: usize, error: Option<&RedisError>) {
        let place = &self.cluster[number % self.cluster.len()];
        let lost = error.is_some_and(|error| error.kind() == ErrorKind::ClusterConnectionNotFound);
        if !lost && !error.is_some_and(RedisError::is_timeout) {
            place.silent.store(0, Ordering::Relaxed);
        } else if (place.silent.fetch_add(1, Ordering::Relaxed) + 1 >= SILENT_MAX || lost)
            // Who holds it is connecting already.
            && let Ok(mut kept) = place.connection.try_lock()
            && kept.take().is_some()
        {
            tracing::warn!(lost, "a connection to the Cluster is of no use any more, and is made anew");
        }
    }

    fn next(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// One command.
    pub(crate) async fn send(&self, command: &Cmd) -> Result<Value, Fault> {
        let answer = if self.options.cluster {
            let number = self.next();
            let answer = self.cluster(number).await?.req_packed_command(command).await;
            self.note(number, answer.as_ref().err());
            answer
        } else {
            self.one(self.next()).await?.req_packed_command(command).await
        };
        answer.and_then(Value::extract_error).map_err(|error| fault(&error))
    }

    /// Many commands, each on its own.
    pub(crate) async fn send_many(&self, commands: Vec<Cmd>) -> Result<Vec<Value>, Fault> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
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
        let number = self.next();
        let answer = self.cluster(number).await?.route_command(command, to).await;
        self.note(number, answer.as_ref().err());
        answer.and_then(Value::extract_error).map_err(|error| fault(&error))
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
        match self.run_and_wait(script.command(ask, false), ask.first_key()).await {
            Err(Fault::Refused(StoreError::Broken(why))) if why == NO_SCRIPT => {
                self.run_and_wait(script.command(ask, true), ask.first_key()).await
            }
            answer => answer,
        }
    }

    async fn run_and_wait(&self, command: Cmd, key: &[u8]) -> Result<Value, Fault> {
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
            let number = self.next();
            let answers = self.cluster(number).await?.route_pipeline(pipeline, 0, count, route).await;
            self.note(number, answers.as_ref().err());
            answers
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
