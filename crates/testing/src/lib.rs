//! Real servers for tests and benchmarks, and a network that fails on purpose.
//!
//! Every server is started here, on a free loopback port and in a temporary folder; one that was already
//! running is never touched. Nothing is left behind, not even by a test that is killed: see [`Folder`].
//! Nothing here knows what Tally is.

mod child;
mod clock;
mod folder;
pub mod postgres;
mod process;
pub mod proxy;
pub mod redis;
mod shared;
mod target;
mod waiting;

pub use child::{Server, free_address};
pub use folder::{Folder, disk_bytes};
pub use postgres::Postgres;
pub use process::memory_bytes;
pub use proxy::{Cut, Direction, Proxy, holds, once};
pub use redis::{Cluster, ClusterOptions, Redis};
pub use waiting::until;
