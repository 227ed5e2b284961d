//! Lists follow what happened, not what a server takes the time to be.

use tally_core::rows::Side;

use super::servers::{Clocks, SERVERS, Servers};
use crate::EngineFactory;
use crate::sample::{list, relate};
use crate::stand::Stand;
use crate::universe::Universe;
use crate::walk;

/// The first server's clock is minutes ahead of the second's, and that one's ahead of the third's.
pub(super) async fn a_later_like_is_listed_first_whatever_the_clocks_say<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::OfTheStore).await;
    let subjects: Vec<String> = (0..4 * SERVERS).map(|n| format!("s{n:02}")).collect();
    let names: Vec<&str> = subjects.iter().map(String::as_str).collect();
    let universe = Universe::new(&names, &["post:1"], &["like"]);
    // Each is answered before the next one is asked. Some servers answer twice in a row.
    for (number, who) in names.iter().enumerate() {
        servers.run(number * number, relate("like", "post:1", who)).await;
    }
    servers.stand.drain(servers.engine(0)).await;
    let listed = walk::others(&**servers.engine(0), &list(Side::Object, "post:1", Some("like"), false)).await;
    let newest_first: Vec<String> = subjects.into_iter().rev().collect();
    assert_eq!(listed, newest_first);
    servers.stop(&universe).await;
}
