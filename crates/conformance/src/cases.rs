//! The list of all cases.
//!
//! Invariant: it is written once. Cases are private functions, so one that is not listed is dead code, and the
//! compiler says so.

/// Hands the cases of a group to another macro of this crate, with its arguments.
///
/// `general` is for every store; the other groups are for harnesses that can stage them.
#[doc(hidden)]
#[macro_export]
macro_rules! cases {
    (general => $then:ident $args:tt) => {
        $crate::$then! { $args
            submit {
                a_task_is_stored_as_it_was_given
                a_task_that_says_nothing_of_itself_is_stored_so
                a_delayed_task_is_scheduled
                a_time_that_has_passed_means_at_once
                the_same_id_in_two_queues_is_two_tasks
                a_queue_is_known_once_it_got_a_task
                of_an_unknown_queue_everything_is_empty
            }
            ids {
                reject_refuses_an_id_in_every_state
                replace_finished_refuses_a_live_task
                a_finished_task_is_replaced_by_one_that_starts_from_zero
                a_replaced_task_leaves_the_index_and_wants_no_dead_letter
                a_replacement_whose_lock_is_held_leaves_the_old_task
                the_id_is_checked_before_the_lock
                an_id_is_free_again_when_its_task_is_gone
                a_retained_task_keeps_its_id_until_it_is_swept
            }
            unique {
                an_equal_task_is_refused_while_one_waits_or_runs
                a_refused_task_leaves_no_trace
                locks_of_two_queues_and_of_two_keys_do_not_meet
                every_settlement_that_ends_a_task_frees_its_lock
                settlements_that_end_nothing_keep_the_lock
                deleting_or_archiving_by_hand_frees_the_lock
                bulk_actions_free_locks
                a_discarded_flagged_task_frees_its_lock
                removing_a_queue_frees_its_locks
                a_lock_ends_with_its_time_and_not_before
                the_lock_of_a_delayed_task_lasts_from_its_due_time
                a_lock_whose_time_is_over_is_no_longer_its_tasks_to_free
                run_now_does_not_take_the_lock_again
                run_now_of_a_waiting_task_keeps_its_lock
                reschedule_does_not_move_the_end_of_a_lock
                a_refused_operation_frees_no_lock
            }
            schedule {
                nothing_is_due_early
                a_due_task_waits_for_its_promotion
                a_promoted_task_is_as_one_that_was_never_delayed
                due_tasks_go_to_the_end_by_due_time_and_then_by_id
                retries_are_promoted_among_the_scheduled_by_due_time
                a_limited_promotion_takes_the_earliest_and_names_the_next
                promotion_looks_at_the_named_queues_only
                a_paused_queue_promotes_as_any_other
                a_due_time_far_away_is_kept
            }
            claim {
                tasks_are_claimed_first_in_first_out
                a_claimed_task_has_a_token_and_a_lease
                a_claim_never_takes_more_than_its_slots
                every_claim_makes_a_token_of_its_own
                paused_queues_are_passed_over
                pause_stops_claims_and_nothing_else
                each_slot_goes_to_the_queue_that_the_lottery_draws
                an_empty_queue_of_any_weight_blocks_no_other
                pools_of_one_claim_are_served_in_their_order
                a_resent_claim_gets_the_same_tasks_again
                a_resent_claim_gets_its_tasks_by_demand_and_queue
                a_resent_claim_that_finds_nothing_claims_anew
                a_claim_that_is_not_resent_takes_new_tasks_under_the_same_id
                a_resent_claim_does_not_get_what_another_took_over
                a_new_attempt_forgets_progress_and_keeps_the_result
                a_task_past_its_deadline_is_claimed_for_the_judge
            }
            lease {
                an_expired_lease_is_its_holders_until_taken_over
                an_extension_makes_the_lease_last_from_now
                an_extended_task_is_not_taken_over
                an_extension_of_what_is_not_ours_is_lost
                a_settled_attempt_has_no_lease_to_extend
                a_task_is_taken_over_when_its_lease_ends_and_not_before
                what_the_lost_attempt_said_stays
                a_token_is_worthless_after_a_take_over
                a_late_settle_after_a_reclaim_is_refused
                whoever_takes_over_may_die_too
                a_take_over_alone_uses_nothing
                a_take_over_takes_the_earliest_expired_within_its_limit
                a_take_over_that_comes_too_late_takes_nothing
                a_lease_from_a_clock_that_was_ahead_is_taken_over
                a_living_lease_outlives_a_small_step_back_of_the_clock
                a_take_over_looks_at_the_named_queues_only_paused_or_not
                a_result_is_kept_with_the_running_task
                progress_is_noted_and_brought_within_its_bounds
                what_is_not_there_or_not_ours_takes_no_result_and_no_progress
            }
            settle {
                a_completed_task_that_is_not_kept_is_gone
                a_completed_task_is_kept_as_long_as_the_settlement_says
                completing_without_a_result_keeps_what_was_stored
                a_retry_waits_for_its_time
                a_retry_at_once_goes_to_the_end_of_its_queue
                an_archived_task_keeps_its_failure
                a_discarded_task_is_gone
                a_released_task_goes_back_to_where_it_was
                a_release_keeps_its_place_through_several_claims
                a_hold_releases_the_task_and_pauses_its_queue
                a_hold_of_a_paused_queue_keeps_the_first_reason
                nothing_but_an_active_task_with_this_token_is_settled
                a_task_that_is_not_there_is_not_found
                repeating_a_settlement_shows_what_was_done_and_does_nothing
                repeating_after_the_next_claim_is_refused
                long_and_odd_error_texts_are_cut
                every_class_is_kept_as_it_was
            }
            retry {
                each_charge_uses_its_own
                a_delayed_retry_costs_the_same
                the_store_does_not_judge
                the_last_failure_is_shown_whatever_it_cost
                run_now_keeps_retries_and_forgets_deferrals_and_crashes
            }
            follow_up {
                one_that_waits_will_do
                one_that_runs_is_marked_and_left_alone
                the_follow_up_starts_from_zero_when_the_task_ends
                the_run_before_a_follow_up_is_counted
                its_delay_counts_from_the_end_of_the_run
                its_absolute_time_stays_what_it_was
                the_latest_wish_wins
                retry_release_and_hold_are_no_end
                it_survives_a_take_over
                a_waiting_task_with_a_follow_up_still_coalesces
                it_goes_to_the_end_of_its_queue
                it_takes_over_the_lock_of_its_own_task
                it_runs_without_a_lock_that_another_holds
                a_waiting_follow_up_holds_no_lock
                it_brings_its_own_subjects
                what_an_operator_ends_takes_its_follow_up_along
                run_now_and_reschedule_leave_it_waiting
                a_waiting_task_that_would_be_discarded_is_replaced
                the_other_words_refuse_a_flagged_task_as_any_other
                a_cancelled_run_is_followed_all_the_same
                a_claim_that_discards_a_flagged_task_starts_its_follow_up
                a_settlement_repeated_after_it_started_is_refused
                the_other_words_leave_a_running_task_without_follow_up
            }
            cancel {
                a_request_says_what_it_met_and_changes_nothing_but_the_flag
                a_claim_discards_flagged_tasks_and_takes_the_next
                flagged_tasks_behind_the_last_slot_stay
                discarding_uses_no_draw_of_the_lottery
                the_flag_survives_what_ends_nothing
                a_retry_because_it_was_cancelled_clears_the_flag
                the_flag_goes_when_the_task_ends
                run_now_clears_the_flag
                reschedule_keeps_the_flag
                an_extension_tells_of_the_request
                whoever_takes_over_sees_the_flag
                a_flag_dies_with_its_task
                a_paused_queue_discards_nothing
                discarding_what_is_flagged_needs_a_slot
            }
            retention {
                a_completed_task_is_swept_when_its_time_is_over_and_not_before
                each_completed_task_has_a_time_of_its_own
                the_limits_of_the_archive_touch_no_completed_task
                a_sweep_looks_at_the_named_queues_only
                many_expired_tasks_are_swept_in_bounded_steps
                a_completed_task_run_again_is_completed_again
            }
            archive {
                the_oldest_beyond_the_limit_are_trimmed
                those_that_are_too_old_are_trimmed
                a_trimmed_task_leaves_nothing_behind
                trimming_touches_no_task_that_is_not_archived
                what_is_not_recorded_is_spared_and_nothing_newer_goes_instead
                an_unspared_archive_is_trimmed_recorded_or_not
                every_end_in_the_archive_wants_a_dead_letter
                only_the_letter_of_this_end_counts
                a_letter_of_a_task_that_runs_again_is_passed_over
                an_operators_end_has_a_letter_with_a_key_of_its_own
                completed_tasks_want_no_letter
                a_full_archive_is_trimmed_in_bounded_steps
                spared_tasks_alone_are_no_reason_to_sweep_again
                an_end_whose_place_a_follow_up_took_is_not_here_to_be_recorded
            }
            index {
                tasks_are_found_in_all_queues_and_states
                a_task_is_found_by_each_of_its_subjects_and_scopes
                a_subject_named_twice_finds_its_task_once
                names_that_look_alike_do_not_meet
                every_exit_leaves_the_index
                a_limited_search_says_that_it_is_not_complete
                a_healthy_store_has_nothing_to_reconcile
            }
            paging {
                pending_tasks_come_from_the_end_of_their_queue
                active_tasks_come_by_claim_latest_first
                waiting_tasks_come_by_due_time
                ended_tasks_come_latest_first
                pages_of_any_size_show_every_task_once
                a_page_shows_whole_records
                a_limit_is_brought_within_one_and_a_thousand
                a_cursor_of_another_list_is_refused
                what_is_no_cursor_is_refused
                what_comes_meanwhile_repeats_nothing
                what_goes_meanwhile_hides_nothing
                what_moves_meanwhile_is_not_shown_twice
                archived_tasks_that_change_meanwhile_are_not_shown_twice
                a_waiting_task_that_stays_is_shown_whatever_the_others_do
                a_page_that_ends_at_the_last_task_has_no_next
            }
            counters {
                every_state_is_counted
                settlements_are_counted_as_processed_and_failed
                refused_settlements_count_nothing
                what_an_operator_does_is_not_counted
                history_goes_by_day_today_first
                a_day_begins_at_midnight_utc
                a_history_has_its_longest_length
                the_oldest_pending_task_says_since_when_it_waits
                queues_are_counted_apart_and_answered_in_order
            }
            signals {
                an_enqueue_wakes
                a_promotion_wakes
                settlements_that_leave_work_wake
                what_an_operator_makes_claimable_wakes
                the_end_of_a_pause_wakes
                a_watch_looks_at_all_its_queues
                every_watch_is_told
                one_that_waits_already_is_woken
                a_wait_that_is_dropped_loses_nothing
                watch_claim_wait_finds_every_task
                cancellations_reach_every_listener_in_order
                a_cancellation_without_listeners_is_no_error
                a_slow_listener_loses_the_oldest_and_goes_on
                a_watch_tells_of_one_event_after_another
            }
            servers {
                a_heartbeat_is_shown_as_it_was_said_with_the_stores_time
                servers_come_by_id
                a_later_heartbeat_takes_the_place_of_the_earlier
                a_record_expires_when_its_time_is_over_and_not_before
                a_retired_server_is_gone_at_once
            }
            batch {
                an_empty_batch_has_no_outcomes
                each_task_of_a_batch_has_its_own_outcome
                where_two_of_a_batch_collide_the_first_wins
                a_batch_is_claimed_in_its_order
                each_settlement_of_a_batch_has_its_own_outcome
                one_settlement_twice_in_a_batch_is_done_once
                leases_and_requests_are_answered_one_by_one
                settlements_of_many_queues_travel_together
            }
            exchange {
                an_exchange_settles_and_claims
                an_exchange_settles_before_it_claims
                an_outcome_of_an_exchange_fails_alone
                an_exchange_whose_reply_was_lost_can_be_asked_again
                an_exchange_with_nothing_to_claim_settles
            }
            operator {
                run_now_puts_a_task_at_the_end_of_its_queue
                run_now_refuses_what_runs_or_waits_for_a_worker
                archiving_ends_a_task_with_the_operators_reason
                archiving_refuses_what_runs_or_is_archived
                a_long_reason_is_cut_as_an_error_is
                a_task_is_deleted_from_any_state_but_active
                a_task_that_is_not_there_is_not_found
                a_waiting_task_gets_another_due_time
                rescheduled_to_now_a_task_goes_to_the_end_of_its_queue
                a_pending_task_rescheduled_to_now_stays_where_it_is
                a_payload_is_replaced_while_its_task_waits
                only_waiting_tasks_are_changed
            }
            bulk {
                each_action_touches_the_states_it_is_for
                bulk_actions_do_what_the_single_ones_do
                so_many_at_a_time_until_none_is_left
                tasks_run_in_bulk_wait_in_the_order_of_their_times
                other_queues_are_left_alone
            }
            queues {
                a_pause_shows_why_and_since_when
                resume_says_whether_it_was_paused
                a_queue_without_tasks_can_be_paused
                a_long_reason_is_cut
                an_unknown_queue_cannot_be_removed
                a_queue_with_tasks_is_removed_by_force_only
                a_queue_with_a_running_task_is_not_removed
                an_empty_queue_is_removed
                a_removed_queue_leaves_nothing_behind
            }
            payload {
                any_bytes_come_out_as_they_went_in
                an_empty_result_is_not_none
                a_replaced_payload_may_be_of_any_kind
                any_id_is_an_id
                any_name_is_a_queue_a_type_a_subject_and_a_lock
                headers_of_any_text_are_kept
            }
            limits {
                a_delay_without_end_waits_for_ever
                a_retry_without_end_waits_for_ever
                a_lease_without_end_overflows_nothing_and_is_no_lease
                a_retention_without_end_keeps_for_ever
                a_lock_without_end_is_held_for_ever
                limits_without_end_come_out_as_long_ones
                a_heartbeat_without_end_lasts
            }
            concurrency {
                twenty_claimers_get_no_task_twice
                of_a_settlement_and_a_take_over_one_wins
                of_many_enqueues_of_one_id_exactly_one_is_stored
                of_many_enqueues_with_one_lock_exactly_one_is_stored
                of_many_settlements_of_one_attempt_one_is_done
                many_take_overs_at_once_take_each_task_once
                producers_and_workers_together_lose_nothing
            }
            close {
                a_closed_store_refuses_every_call
                closing_twice_is_no_error
                whoever_waits_is_told_of_the_end
                the_store_tells_its_time_and_its_name
            }
        }
    };
    (durable => $then:ident $args:tt) => {
        $crate::$then! { $args
            durable {
                every_task_is_there_again
                a_running_attempt_goes_on_across_it
                what_waits_beside_a_task_is_there_again
                order_pause_and_times_are_there_again
                it_can_be_opened_again_and_again
            }
        }
    };
    (poison => $then:ident $args:tt) => {
        $crate::$then! { $args
            poison {
                a_claim_sets_poison_aside_and_takes_the_next
                poison_leaves_neither_lock_nor_index_entry
                a_promotion_is_not_stopped_by_poison
                a_take_over_is_not_stopped_by_poison
                a_page_is_not_stopped_by_poison
                quarantine_comes_latest_first_and_goes_with_its_queue
            }
        }
    };
}
