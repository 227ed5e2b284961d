//! Each promise of the engine trait, one at a time.

mod bounds;
mod commit;
mod conflict;
mod due;
mod ids;
mod numbers;
mod orders;
mod queues;
mod ranges;
mod reopen;
mod rooms;
mod rows;
mod scan;

use crate::{Case, EngineFactory, cases};

/// Every case.
pub(crate) fn cases<F: EngineFactory>() -> Vec<Case<F>> {
    cases![
        commit:
            a_commit_is_seen_by_the_next_load,
            a_commit_that_conflicts_writes_nothing,
            additions_do_not_conflict,
            what_was_committed_can_be_settled,
            an_engine_can_be_prepared_twice,
            increments_of_many_tasks_are_all_kept,
            a_mark_covers_what_was_seen;
        conflict:
            conflict_on_a_moved_row,
            conflict_on_a_row_made_meanwhile,
            conflict_on_a_row_removed_meanwhile,
            conflict_on_a_row_that_was_only_looked_at,
            conflict_on_an_absence_that_was_only_looked_at,
            conflict_on_a_total_that_was_decided_on,
            rows_elsewhere_do_not_conflict;
        rows:
            every_row_comes_back_as_it_went_in,
            rows_are_replaced_and_deleted,
            a_load_answers_in_the_order_of_the_wants,
            totals_are_exact,
            an_audit_names_the_total_that_drifted;
        scan:
            lists_are_newest_first_and_break_ties,
            pages_of_every_size_make_up_the_list,
            deletions_between_pages_do_not_move_the_rest,
            additions_between_pages_come_before_them,
            hidden_edges_stand_in_lists_of_their_own,
            a_list_over_all_relations_goes_one_by_one,
            a_list_follows_its_edges,
            empty_lists_are_empty;
        ranges:
            open_jobs_are_listed_until_they_end,
            ended_jobs_are_listed_by_when_they_ended,
            api_keys_are_listed_by_id,
            remembered_answers_are_listed_by_expiry,
            every_row_is_scanned_once,
            an_edge_that_comes_back_is_scanned,
            rows_are_scanned_behind_one_that_has_gone;
        due:
            what_is_due_is_found_by_its_partitions;
        ids:
            ids_that_look_alike_are_not_the_same,
            ids_that_begin_alike_have_lists_of_their_own;
        bounds:
            the_longest_ids_fit,
            the_largest_meta_fits,
            the_largest_batch_fits;
        orders:
            rows_stand_in_an_order_only_while_they_say_so,
            queues_and_boards_change_in_one_commit,
            a_commit_tells_where_in_an_order_something_stands,
            conflict_on_a_rank_that_was_decided_on,
            orders_survive_a_reopening;
        numbers:
            numbers_are_dense_in_a_commit_and_over_commits,
            sequences_of_one_commit_do_not_meet,
            a_key_and_a_column_carry_the_same_number,
            what_is_taken_back_or_conflicts_leaves_no_hole,
            a_row_that_is_there_gets_a_number,
            a_number_that_is_not_taken_is_refused,
            a_sequence_ends_where_numbers_are_exact,
            a_sequence_goes_on_when_reopened;
        queues:
            who_joins_is_told_its_position,
            positions_in_several_rooms_of_one_commit,
            a_queue_and_a_board_of_one_commit,
            conflict_on_a_position_that_was_decided_on;
        rooms:
            two_sequences_of_one_home_in_one_commit,
            rows_that_were_given_numbers_are_due;
        reopen:
            reopening_keeps_everything,
            reopening_keeps_the_newest_stamp,
            what_was_deleted_stays_deleted;
    ]
}
