//! What is wrong on purpose is found, each in a few seeds.

use tally_simulator::{Flaw, run};

fn is_found(flaw: Flaw, as_what: &str) {
    let found = (0..200).any(|seed| run(seed, flaw).problems.iter().any(|problem| problem.contains(as_what)));
    assert!(found, "{flaw:?} is not found");
}

#[test]
fn a_servers_own_time_in_the_store_is_found() {
    is_found(Flaw::OwnTime, "ahead of the store");
}

#[test]
fn parts_of_a_store_with_clocks_of_their_own_are_found() {
    is_found(Flaw::TimesOfParts, "was forgotten");
}

#[test]
fn a_server_that_never_looks_again_is_found() {
    is_found(Flaw::NeverLooksAgain, "after it was revoked");
    is_found(Flaw::NeverLooksAgain, "old");
}

#[test]
fn a_server_that_gathers_anew_at_every_event_is_found() {
    is_found(Flaw::GathersAnew, "old");
    is_found(Flaw::GathersAnew, "after it was revoked");
}

#[test]
fn a_server_that_looks_for_what_is_due_by_its_own_clock_is_found() {
    is_found(Flaw::LooksByOwnClock, "for nothing");
}

#[test]
fn a_store_that_checks_nothing_is_found() {
    is_found(Flaw::ChecksNothing, "");
}

#[test]
fn a_store_that_loses_commits_is_found() {
    is_found(Flaw::LosesCommits, "");
}

#[test]
fn work_that_nobody_takes_over_is_found() {
    is_found(Flaw::LeasesForEver, "was due");
    is_found(Flaw::LeasesForEver, "not shared");
}
