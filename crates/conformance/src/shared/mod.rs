//! Several servers on one store, each with a runner and a clock of its own.

mod amounts;
#[cfg(test)]
mod broken;
mod clocks;
mod counting;
mod due;
mod ended;
mod forgetting;
mod history;
pub(crate) mod line;
pub mod linear;
mod lists;
mod numbers;
mod once;
mod order;
mod queues;
mod ranks;
mod recorder;
pub(crate) mod servers;
mod stopped;
mod sweepers;
mod topics;
mod truth;
mod worker;

use crate::{Case, EngineFactory, cases};

/// Every case.
pub(crate) fn cases<F: EngineFactory>() -> Vec<Case<F>> {
    cases![
        amounts:
            likes_and_unlikes_of_three_servers_add_up,
            a_limit_holds_across_servers;
        counting:
            additions_of_three_servers_add_up,
            members_seen_by_three_servers_are_all_kept,
            scores_of_three_servers_add_up,
            a_batch_may_repeat_itself,
            one_member_may_score_hundreds_of_times_at_once,
            days_marked_by_three_servers_add_up,
            a_limit_lets_exactly_as_many_through,
            a_retried_addition_counts_once;
        numbers:
            numbers_of_three_servers_are_dense_in_order_and_without_conflict,
            sequences_of_three_servers_do_not_meet;
        queues:
            a_position_is_exact_at_its_commit_and_joins_do_not_conflict,
            positions_while_others_leave_are_of_one_moment;
        once:
            one_answer_for_one_idempotency_key_on_any_server;
        ended:
            an_object_deleted_on_one_server_takes_no_more_likes_on_another,
            a_subject_suspended_on_one_server_is_suspended_on_all;
        history:
            histories_of_three_servers_are_linearizable;
        forgetting:
            what_is_answered_after_a_forgetting_stays;
        sweepers:
            jobs_carried_by_two_servers_at_once_do_no_harm;
        order:
            a_later_like_is_listed_first_whatever_the_clocks_say;
        clocks:
            no_servers_clock_gets_into_the_store,
            a_key_counts_once_whatever_the_clocks_say;
        lists:
            a_list_is_of_one_moment;
        truth:
            a_subject_that_is_alone_is_counted_once_or_not_at_all,
            a_count_never_leaves_out_who_is_there,
            a_counter_tells_no_value_twice,
            a_rehearsal_counts_what_it_adds,
            a_limit_that_nobody_could_exceed_is_not_exceeded,
            what_moves_together_is_told_together,
            attendance_in_batches_is_never_at_odds_with_itself;
        ranks:
            who_is_alone_on_a_board_leads_it,
            two_who_pass_each_other_are_told_of_one_order,
            who_reached_a_score_first_is_told_so;
        due:
            what_is_due_is_done_once_by_three_servers,
            what_a_dead_server_had_is_taken_over,
            what_is_due_goes_by_the_time_of_the_store,
            a_server_that_lost_its_lease_acts_late_and_changes_nothing;
        topics:
            a_topic_is_told_to_those_who_watch_it;
        stopped:
            a_server_that_stops_halfway_leaves_no_harm;
    ]
}
