//! What is promised of this store beyond the suite, each on a real Redis or a real Cluster.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

mod access;
mod clocks;
mod counting;
mod crash;
mod failover;
mod late;
mod left;
mod lost;
mod mend;
mod moods;
mod network;
mod nodes;
mod numbers;
mod oracle;
mod ordered;
mod replicas;
mod support;
mod verify;
mod writes;
