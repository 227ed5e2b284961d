//! Counting: random histories like the oracle's, each capability like a naive model of it; and one promise of the rows at a time.

pub(crate) mod generate;
pub(crate) mod lockstep;
mod models;
mod rows;

use crate::stand::Stand;
use crate::{Case, EngineFactory, cases};

/// Every case.
pub(crate) fn cases<F: EngineFactory>() -> Vec<Case<F>> {
    use crate::counting as seeds;
    cases![
        seeds: histories_0, histories_1, histories_2, short_histories;
        rows:
            every_row_of_counting_comes_back,
            counters_are_listed_as_rows,
            a_counter_does_not_overflow,
            conflict_on_a_counter_that_was_decided_on,
            limits_are_listed_by_when_to_look,
            ranks_are_counted_from_every_place,
            boards_are_paged_both_ways,
            rows_of_counting_survive_a_reopening;
        models:
            counters_equal_a_sum,
            unique_counts_equal_a_set_within_their_error,
            attendance_equals_a_set_of_days,
            boards_equal_a_sorted_list_first_to_reach,
            boards_equal_a_sorted_list_shared,
            boards_equal_a_sorted_list_dense,
            a_sliding_log_equals_a_real_window,
            a_sliding_window_is_never_more_than_twice,
            a_token_bucket_never_passes_more_than_it_has;
    ]
}

async fn long<F: EngineFactory>(stand: Stand<F>, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        lockstep::run(&stand.another(), seed, 200).await;
    }
}

async fn histories_0<F: EngineFactory>(stand: Stand<F>) {
    long(stand, 0..2).await;
}

async fn histories_1<F: EngineFactory>(stand: Stand<F>) {
    long(stand, 100..102).await;
}

async fn histories_2<F: EngineFactory>(stand: Stand<F>) {
    long(stand, 200..202).await;
}

/// Many short ones compare the whole store sooner.
async fn short_histories<F: EngineFactory>(stand: Stand<F>) {
    for seed in 1_000..1_012 {
        lockstep::run(&stand.another(), seed, 25).await;
    }
}
