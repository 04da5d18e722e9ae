//! The suite can fail: a store with one thing wrong fails the cases that are about it, and parts from a good one in the
//! model test. The same wrapper with nothing wrong passes all.

mod faulty;

use std::sync::Arc;
use std::time::Duration;

use faulty::{Fault, Faulty};
use poolwright_conformance::{CASES, Case, ManualHarness, START, model};
use poolwright_core::Chance;
use poolwright_core::clock::ManualClock;
use poolwright_store_memory::MemoryStore;

/// How long a case waits for a signal that will not come. It decides how long this test takes, and nothing else.
const IN_VAIN: Duration = Duration::from_millis(200);

fn harness(fault: Fault) -> ManualHarness {
    let clock = ManualClock::at(START);
    let store = MemoryStore::new(Arc::new(clock.clone()), Chance::seeded(1));
    ManualHarness::new(Faulty::new(store, fault), clock)
}

/// Whether a store with this fault passes the case.
async fn passes(case: &'static Case, fault: Fault, safety: Duration) -> bool {
    let played = tokio::spawn(async move { case.play_within(&harness(fault), safety).await.is_ok() });
    // A panic is how a case says that the store is wrong.
    played.await.unwrap_or(false)
}

/// Asserts that each of these cases catches the fault.
async fn assert_caught_by(fault: Fault, cases: &[&str]) {
    for path in cases {
        let (topic, name) = path.split_once("::").expect("a case is named topic::name");
        let case = Case::named(topic, name);
        assert!(!passes(case, fault, IN_VAIN).await, "{path} does not notice a store that {fault:?}");
    }
}

/// Asserts that a model test with a good store parts from one with this fault.
async fn assert_parted_by_the_model(fault: Fault) {
    for seed in 0..30 {
        let run = async move { model::run(seed, 300, &harness(Fault::None), &harness(fault)).await };
        if tokio::spawn(run).await.is_err() {
            return;
        }
    }
    panic!("thirty model tests do not notice a store that {fault:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wrapper_with_nothing_wrong_passes_every_case() {
    for case in CASES[0] {
        assert!(passes(case, Fault::None, poolwright_conformance::SAFETY).await, "{case:?}");
    }
    model::run(1, 300, &harness(Fault::None), &harness(Fault::None)).await;
}

/// For each fault: cases that catch it, and whether the model test must, too (it sees no races, signals or cursors).
macro_rules! faults {
    ($($name:ident: $fault:ident, by model: $model:literal, by [$($case:literal),+ $(,)?];)+) => {
        $(
            #[tokio::test]
            async fn $name() {
                assert_caught_by(Fault::$fault, &[$($case),+]).await;
                if $model {
                    assert_parted_by_the_model(Fault::$fault).await;
                }
            }
        )+
    };
}

faults! {
    a_store_that_ignores_tokens_on_settle_is_caught: IgnoresTokensOnSettle, by model: true, by [
        "lease::a_token_is_worthless_after_a_take_over",
        "lease::a_late_settle_after_a_reclaim_is_refused",
        "settle::nothing_but_an_active_task_with_this_token_is_settled",
        "concurrency::of_a_settlement_and_a_take_over_one_wins",
        "unique::a_refused_operation_frees_no_lock",
    ];
    a_store_that_ignores_tokens_on_extend_is_caught: IgnoresTokensOnExtend, by model: true, by [
        "lease::a_token_is_worthless_after_a_take_over",
        "lease::an_extension_of_what_is_not_ours_is_lost",
    ];
    a_store_that_ignores_tokens_of_letters_is_caught: IgnoresTokensOnRecord, by model: true, by [
        "archive::only_the_letter_of_this_end_counts",
    ];
    a_store_that_loses_a_lock_on_discard_is_caught: LosesTheLockOnDiscard, by model: true, by [
        "unique::every_settlement_that_ends_a_task_frees_its_lock",
    ];
    a_store_without_locks_is_caught: TakesNoLocks, by model: true, by [
        "submit::a_task_is_stored_as_it_was_given",
        "unique::an_equal_task_is_refused_while_one_waits_or_runs",
        "concurrency::of_many_enqueues_with_one_lock_exactly_one_is_stored",
    ];
    a_store_whose_locks_outlast_their_time_is_caught: LocksOutlastTheirTime, by model: true, by [
        "unique::a_lock_ends_with_its_time_and_not_before",
        "unique::the_lock_of_a_delayed_task_lasts_from_its_due_time",
    ];
    a_store_that_claims_from_paused_queues_is_caught: ClaimsFromPausedQueues, by model: true, by [
        "claim::paused_queues_are_passed_over",
        "claim::pause_stops_claims_and_nothing_else",
        "queues::a_queue_without_tasks_can_be_paused",
        "settle::a_hold_releases_the_task_and_pauses_its_queue",
    ];
    a_store_with_a_lottery_of_its_own_is_caught: DrawsItsOwnLottery, by model: true, by [
        "claim::each_slot_goes_to_the_queue_that_the_lottery_draws",
    ];
    a_store_that_claims_before_it_settles_is_caught: ClaimsBeforeItSettles, by model: true, by [
        "exchange::an_exchange_settles_before_it_claims",
    ];
    a_store_that_claims_anew_when_resent_is_caught: ClaimsAnewWhenResent, by model: true, by [
        "claim::a_resent_claim_gets_the_same_tasks_again",
    ];
    a_store_that_forgets_the_order_of_claims_is_caught: ForgetsTheOrderOfClaims, by model: true, by [
        "claim::a_resent_claim_gets_its_tasks_by_demand_and_queue",
    ];
    a_store_that_takes_over_late_is_caught: TakesOverLate, by model: true, by [
        "lease::a_take_over_that_comes_too_late_takes_nothing",
    ];
    a_store_that_discards_in_silence_is_caught: DiscardsInSilence, by model: true, by [
        "cancel::a_claim_discards_flagged_tasks_and_takes_the_next",
    ];
    a_store_that_releases_to_the_end_is_caught: ReleasesToTheEnd, by model: true, by [
        "settle::a_released_task_goes_back_to_where_it_was",
        "settle::a_release_keeps_its_place_through_several_claims",
    ];
    a_store_that_forgets_the_flag_on_retry_is_caught: ForgetsTheFlagOnRetry, by model: true, by [
        "cancel::the_flag_survives_what_ends_nothing",
    ];
    a_store_that_forgets_stored_results_is_caught: ForgetsStoredResults, by model: true, by [
        "settle::completing_without_a_result_keeps_what_was_stored",
    ];
    a_store_that_charges_deferrals_is_caught: ChargesDeferrals, by model: true, by [
        "retry::each_charge_uses_its_own",
        "counters::settlements_are_counted_as_processed_and_failed",
    ];
    a_store_that_promotes_early_is_caught: PromotesEarly, by model: true, by [
        "schedule::nothing_is_due_early",
    ];
    a_store_that_loses_follow_ups_is_caught: LosesFollowUps, by model: true, by [
        "follow_up::the_follow_up_starts_from_zero_when_the_task_ends",
        "follow_up::one_that_runs_is_marked_and_left_alone",
    ];
    a_store_that_checks_then_enqueues_is_caught: ChecksThenEnqueues, by model: false, by [
        "concurrency::of_many_enqueues_of_one_id_exactly_one_is_stored",
    ];
    a_store_that_fails_whole_batches_is_caught: FailsWholeBatches, by model: true, by [
        "batch::each_task_of_a_batch_has_its_own_outcome",
        "batch::where_two_of_a_batch_collide_the_first_wins",
    ];
    a_store_that_cuts_payloads_at_nul_is_caught: CutsPayloadsAtNul, by model: false, by [
        "payload::any_bytes_come_out_as_they_went_in",
    ];
    a_store_that_never_forgets_subjects_is_caught: NeverForgetsSubjects, by model: true, by [
        "index::every_exit_leaves_the_index",
        "index::a_subject_named_twice_finds_its_task_once",
    ];
    a_store_that_trims_unrecorded_ends_is_caught: TrimsUnrecorded, by model: true, by [
        "archive::what_is_not_recorded_is_spared_and_nothing_newer_goes_instead",
        "archive::spared_tasks_alone_are_no_reason_to_sweep_again",
    ];
    a_store_that_pages_by_offset_is_caught: PagesByOffset, by model: false, by [
        "paging::what_comes_meanwhile_repeats_nothing",
        "paging::what_goes_meanwhile_hides_nothing",
        "paging::a_cursor_of_another_list_is_refused",
        "paging::a_limit_is_brought_within_one_and_a_thousand",
    ];
    a_store_whose_servers_live_for_ever_is_caught: ServersLiveForEver, by model: true, by [
        "servers::a_record_expires_when_its_time_is_over_and_not_before",
    ];
    a_store_that_loses_wake_ups_is_caught: LosesWakeUps, by model: false, by [
        "signals::an_enqueue_wakes",
        "signals::a_promotion_wakes",
        "signals::settlements_that_leave_work_wake",
        "signals::what_an_operator_makes_claimable_wakes",
        "signals::the_end_of_a_pause_wakes",
        "signals::a_wait_that_is_dropped_loses_nothing",
        "signals::every_watch_is_told",
    ];
    a_store_that_stays_open_is_caught: StaysOpen, by model: false, by [
        "close::a_closed_store_refuses_every_call",
        "close::whoever_waits_is_told_of_the_end",
    ];
    a_store_that_counts_yesterday_as_today_is_caught: CountsYesterdayAsToday, by model: true, by [
        "counters::history_goes_by_day_today_first",
    ];
    a_store_that_ignores_reschedule_is_caught: IgnoresReschedule, by model: true, by [
        "operator::a_waiting_task_gets_another_due_time",
        "operator::rescheduled_to_now_a_task_goes_to_the_end_of_its_queue",
    ];
}
