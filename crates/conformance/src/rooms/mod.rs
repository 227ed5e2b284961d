//! Waiting rooms: random histories next to a naive model, what was found broken elsewhere, several servers, and damage.

mod act;
mod broken;
mod crash;
mod damage;
mod doors;
mod hall;
mod history;
mod model;
mod races;
mod servers;

use serde_json::{Value, json};
use tally_core::Timestamp;

use crate::stand::Stand;
use crate::{Case, EngineFactory, cases};

/// Every case.
pub(crate) fn cases<F: EngineFactory>() -> Vec<Case<F>> {
    use crate::rooms as seeds;
    cases![
        seeds: one_ticket_each, several_tickets_each, doors_by_arrival, doors_by_lot;
        doors:
            who_joins_while_the_doors_open_is_not_lost,
            a_higher_rate_is_not_paid_for_the_time_before;
        crash: refused_at_every_step_of_a_room, answer_lost_at_every_step_of_a_room;
        races:
            who_joins_while_the_gate_falls_asleep_wakes_it,
            what_is_let_in_twice_at_once_does_not_pass_the_capacity,
            a_ticket_that_is_given_up_meanwhile_is_not_claimed,
            nobody_goes_past_who_waits_while_the_worker_is_late;
        damage: totals_of_a_room_are_put_right;
        servers:
            positions_are_exact_at_their_commit_and_joins_do_not_conflict,
            a_crowd_goes_in_and_out_in_order,
            a_server_that_ends_anywhere_takes_nobody_along,
            a_clock_that_is_wrong_changes_nothing;
        broken:
            positions_fall_as_those_ahead_go,
            a_hundred_ghosts_do_not_hold_the_head,
            the_head_of_the_queue_has_no_shortcut,
            twelve_claims_are_one_admission,
            who_joins_in_one_millisecond_stands_in_order,
            nothing_is_left_of_who_has_been_there,
            polls_spend_nothing,
            nobody_gets_anothers_ticket_by_naming_them,
            a_place_that_is_lost_is_lost,
            rooms_do_not_meet;
    ]
}

/// Times that are short enough for all of it to happen.
fn settings(more: Value) -> Value {
    let mut settings = json!({
        "capacity": 3, "rate_per_s": 2.5, "idle_ttl_ms": 8_000, "ticket_ttl_ms": 30_000, "claim_ttl_ms": 3_000,
        "admission_ttl_ms": 6_000, "dedupe_ttl_ms": 10_000,
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        settings[name] = value.clone();
    }
    settings
}

async fn histories<F: EngineFactory>(stand: Stand<F>, first: u64, more: Value) {
    for seed in first..first + 4 {
        let stand = stand.another();
        let engine = stand.open().await;
        history::History::new(&*engine, seed, settings(more.clone())).await.run(80).await;
        stand.drain(&engine).await;
        assert_eq!(crate::auditor::findings(&*engine).await, Vec::<String>::new(), "seed {seed}");
    }
}

async fn one_ticket_each<F: EngineFactory>(stand: Stand<F>) {
    histories(stand, 0, json!({})).await;
}

async fn several_tickets_each<F: EngineFactory>(stand: Stand<F>) {
    histories(stand, 100, json!({"one_ticket_per_subject": false, "renewable": true, "capacity": 2})).await;
}

fn doors(before_open: &str) -> Value {
    let opens_at = Timestamp(hall::START_MS + 4_000);
    json!({"one_ticket_per_subject": false, "opens_at": opens_at, "before_open": before_open})
}

async fn doors_by_arrival<F: EngineFactory>(stand: Stand<F>) {
    histories(stand, 200, doors("arrival")).await;
}

async fn doors_by_lot<F: EngineFactory>(stand: Stand<F>) {
    histories(stand, 300, doors("shuffle")).await;
}
