//! How the old Redis is reached: one server, or a cluster by any of its nodes.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo};
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind};
use tally_server::tls::install_crypto;

use super::source::{Link, Shard, Source};
use crate::failure::Failure;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

impl Source {
    /// Connects, and finds out whether it is a cluster.
    pub(crate) async fn open(url: &str) -> Result<Self, Failure> {
        install_crypto();
        // A socket's URL has its password in the query.
        let shown = tally::redacted(url).split('?').next().unwrap_or_default().to_owned();
        let nodes = nodes(url);
        let wrong = |_| {
            Failure::usage(format!("`{shown}` is not the URL of a Redis, such as redis://user:password@host:6379/0"))
        };
        let clients: Vec<Client> =
            nodes.iter().map(|node| Client::open(node.as_str())).collect::<Result<_, _>>().map_err(wrong)?;
        let told = |error| failure(&shown, &error);
        let mut node = first_of(&clients).await.map_err(told)?;
        let about = match about().query_async::<String>(&mut node).await {
            // Not everybody may ask. Then nothing is known of it, and an import begins anew each time.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm) => String::new(),
            other => other.map_err(told)?,
        };
        if field(&about, "redis_mode") != Some("cluster") {
            let shards = vec![Shard { address: None, run: run_of(&about) }];
            return Ok(Self { link: Link::Node(node), shown, shards });
        }
        let builder = ClusterClient::builder(nodes).connection_timeout(CONNECT_TIMEOUT);
        let cluster = builder.response_timeout(ANSWER_TIMEOUT).build().map_err(told)?;
        let mut cluster = cluster.get_async_connection().await.map_err(told)?;
        let shards = masters(&mut cluster).await.map_err(told)?;
        Ok(Self { link: Link::Cluster(cluster), shown, shards })
    }
}

/// The servers that a URL names: several where it is written as that of a store in a cluster.
fn nodes(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("+cluster://") else { return vec![url.to_owned()] };
    let (user, addresses) =
        rest.rsplit_once('@').map_or((String::new(), rest), |(user, rest)| (format!("{user}@"), rest));
    addresses.split(',').map(|address| format!("{scheme}://{user}{address}")).collect()
}

/// A connection to the first that answers; otherwise what was wrong with the last.
async fn first_of(clients: &[Client]) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(ANSWER_TIMEOUT));
    let mut wrong = RedisError::from((ErrorKind::InvalidClientConfig, "no server is named"));
    for client in clients {
        match client.get_multiplexed_async_connection_with_config(&config).await {
            Ok(connection) => return Ok(connection),
            Err(error) => wrong = error,
        }
    }
    Err(wrong)
}

/// The masters, in the order of their addresses, so that a second run finds the same order.
async fn masters(cluster: &mut ClusterConnection) -> RedisResult<Vec<Shard>> {
    let route = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
    let answers = cluster.route_command(about(), route).await?;
    let mut answers: Vec<(String, String)> = redis::from_redis_value(answers)?;
    answers.sort();
    let shard = |(address, about): (String, String)| {
        let (host, port) = address.rsplit_once(':')?;
        Some(Shard { address: Some((host.to_owned(), port.parse().ok()?)), run: run_of(&about) })
    };
    let found: Option<Vec<Shard>> = answers.into_iter().map(shard).collect();
    found.ok_or_else(|| (ErrorKind::Client, "the cluster's addresses could not be read").into())
}

fn about() -> Cmd {
    redis::cmd("INFO").arg("server").to_owned()
}

fn run_of(about: &str) -> Option<String> {
    field(about, "run_id").map(str::to_owned)
}

fn field<'a>(about: &'a str, name: &str) -> Option<&'a str> {
    about.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// What went wrong, for a person.
pub(super) fn failure(shown: &str, error: &RedisError) -> Failure {
    let said = match (error.code(), error.detail()) {
        _ if error.kind() == ErrorKind::AuthenticationFailed => "user or password is wrong".to_owned(),
        (Some(code), Some(detail)) => format!("{code} {}", detail.trim_end_matches('.')),
        _ => error.to_string(),
    };
    if error.kind() == ErrorKind::AuthenticationFailed || matches!(error.code(), Some("WRONGPASS" | "NOAUTH")) {
        let advice = "give user and password in the URL, redis://user:password@host";
        return Failure::new(format!("{shown} does not let us in: {said}; {advice}"));
    }
    if error.is_timeout() {
        return Failure::new(format!("{shown} did not answer in time"));
    }
    if error.is_io_error() {
        return Failure::new(format!("cannot reach {shown}: {said}"));
    }
    Failure::new(format!("{shown} says: {said}"))
}
