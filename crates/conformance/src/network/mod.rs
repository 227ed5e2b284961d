//! A network that fails between a server and its store: nothing answered is lost, nothing is done twice, and it goes on by
//! itself.

mod cut;
mod hands;
mod ledger;
mod lost;
mod stopping;
mod wires;

pub use hands::{Edge, Hands, Known, POSTS, wrong};
pub use stopping::{Stop, Stopping};
use tally_testing::Proxy;

use crate::{Case, EngineFactory, cases};

/// A store that is reached over a network.
pub trait Networked: EngineFactory {
    /// The same place, reached through a network that fails when it is told to, and where nothing is waited for longer than this.
    fn behind(&self, place: &Self::Place, timeout_ms: u64) -> (Vec<Proxy>, Self::Place);
}

/// Cases in which everybody goes through the network.
pub(crate) fn cut_cases<F: Networked>() -> Vec<Case<F>> {
    cases![
        cut:
            a_like_is_told_and_done_once,
            a_counter_is_told_and_added_to_once,
            a_long_batch_is_told_and_done_once,
            numbers_are_told_and_taken_once,
            positions_are_told_as_they_are,
            calls_that_share_a_commit_are_each_told_once,
            two_servers_take_numbers_once;
    ]
}

/// Cases in which somebody reaches the store without it.
pub(crate) fn cases<F: Networked>() -> Vec<Case<F>> {
    cases![
        lost:
            a_swallowed_answer_is_found_out,
            numbers_of_a_swallowed_answer_are_its_own,
            positions_of_a_swallowed_answer_are_of_a_moment_after_it,
            a_commit_that_hangs_is_done_at_most_once,
            a_partition_is_said_to_be_one_and_ends;
        ledger:
            every_way_of_failing_under_load_is_survived,
            what_two_servers_were_told_is_there_after_faults_at_random,
            numbers_stay_dense_and_unique_after_faults_at_random;
    ]
}
