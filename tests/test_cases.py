"""The reported cases of other tools (``cases.md`` of the reference), and the tests that hold each of them.

A case is a kind of input that went wrong elsewhere.  Its line names the tests that fail if it goes wrong here; at least
one of them runs on a scripted server or on none, so that it is held on every machine.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.shared import SHARED

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = SHARED / "reference" / "cases.md"

B, L, T, R = "tests/bridge", "tests/lsp_client", "tests/transactions", "tests/real"

CASES: Mapping[str, tuple[str, ...]] = {
    # files that come, go and move
    "C1": (
        f"{B}/test_odd_edits.py::test_an_insert_into_a_missing_file_creates_it_together_with_the_other_half",
        f"{T}/test_edits.py::test_move_type_to_file_becomes_a_created_file_and_an_edit_together",
    ),
    "C2": (f"{L}/test_roslyn_dialect.py::test_the_capabilities_hold_what_the_server_decides_by",),
    "C3": (f"{B}/test_odd_edits.py::test_an_edit_that_is_less_than_its_title_says_is_refused_as_incomplete",),
    "C6": (
        f"{T}/test_edits.py::test_where_case_counts_for_nothing_a_case_only_rename_is_a_move",
        f"{T}/test_edits.py::test_where_case_counts_for_nothing_another_spelling_is_the_same_file",
        f"{T}/test_edits.py::test_where_case_counts_two_spellings_are_two_files",
    ),
    "C7": (
        f"{B}/test_odd_edits.py::test_operations_happen_in_order_and_edits_before_and_after_a_move_have_their_own_base",
        f"{B}/test_odd_edits.py::test_an_edit_of_the_old_name_after_a_move_is_refused",
        f"{T}/test_edits.py::test_an_edit_of_the_new_name_before_the_rename_is_refused",
    ),
    "C9": (
        f"{B}/test_odd_edits.py::test_an_action_that_is_resolved_to_nothing_is_unavailable",
        f"{B}/test_odd_edits.py::test_an_error_with_only_the_name_of_a_type_is_unavailable",
    ),
    "C10": (
        f"{B}/test_odd_edits.py::test_create_edit_and_delete_of_one_file_in_one_transaction_leave_nothing",
    ),
    # places
    "C11": (
        f"{B}/test_reported_cases.py::test_columns_beside_an_emoji_are_utf16_and_half_a_character_is_refused",
    ),
    "C12": (
        f"{B}/test_odd_edits.py::test_edits_in_any_order_refer_to_the_text_before_all_of_them",
        f"{B}/test_odd_edits.py::test_equal_inserts_in_one_edit_are_two_and_equal_replacements_overlap",
    ),
    "C15": (
        f"{B}/test_reported_cases.py::test_new_text_takes_the_line_ends_of_its_file_and_a_mixed_file_stays_as_it_is",
        f"{B}/test_reported_cases.py::test_the_preview_counts_the_lines_that_are_touched",
        f"{B}/test_bytes.py::test_line_ends_that_a_server_wrote_are_kept_where_that_is_asked_for",
        f"{B}/test_formatting_tools.py::test_a_file_of_crlf_stays_one_whatever_the_server_writes",
    ),
    "C16": (
        f"{B}/test_bytes.py::test_a_commit_changes_what_was_staged_and_no_other_byte",
        f"{B}/test_bytes.py::test_an_edit_is_written_in_the_encoding_and_with_the_line_ends_of_its_file",
        f"{T}/test_text.py::test_an_edit_neither_touches_nor_makes_a_byte_order_mark",
    ),
    "C18": (f"{B}/test_reported_cases.py::test_the_last_line_is_edited_with_and_without_a_final_line_end",),
    # renames, linked and generated code
    "C21": (
        f"{B}/test_rename_tool.py::test_a_rename_is_staged_in_all_files_as_one_revision_and_undone_as_one",
        f"{B}/test_rename_tool.py::test_an_edit_that_leaves_out_a_use_is_refused",
        f"{B}/test_odd_edits.py::test_document_changes_win_over_changes_also_when_they_are_empty",
    ),
    "C23": (
        f"{B}/test_rename_tool.py::test_a_name_that_is_taken_is_a_conflict_that_names_the_places",
        f"{B}/test_rename_tool.py::test_a_word_that_comes_to_mean_something_else_is_a_conflict_although_it_compiles",
        f"{B}/test_preview_diagnostics.py::test_a_new_error_and_a_fixed_one_are_told_with_their_places",
    ),
    "C24": (
        f"{B}/test_odd_edits.py::test_an_action_in_a_file_that_uses_a_linked_one_may_change_the_linked_one_once",
        f"{B}/test_odd_edits.py::test_edits_for_two_frameworks_that_differ_where_they_touch_are_a_conflict",
    ),
    "C25": (
        f"{B}/test_odd_edits.py::test_a_file_of_two_projects_is_said_to_be_one_where_the_server_answers_null",
        f"{B}/test_formatting_tools.py::test_csharp_ls_formats_and_says_in_several_projects_where_it_has_no_document",
        f"{L}/test_supervisor.py::test_another_target_framework_than_the_one_asked_for_is_refused",
    ),
    "C26": (
        f"{B}/test_loading.py::test_it_is_said_that_a_server_answers_for_one_of_several_frameworks",
        f"{L}/test_supervisor.py::test_a_question_about_a_framework_that_was_not_loaded_is_not_answered_for_another",
        f"{L}/test_csharp_ls_dialect.py::test_the_framework_it_chose_is_read_from_its_log",
    ),
    "C27": (
        f"{B}/test_rename_tool.py::test_edits_in_generated_files_are_proved_dropped_and_counted",
        f"{B}/test_rename_tool.py::test_errors_of_generated_halves_are_no_conflict_and_are_said_to_be_expected_until_the_next_build",
        f"{B}/test_rename_tool.py::test_a_commit_that_leaves_generated_files_with_the_old_name_says_so",
        f"{B}/test_rename_tool.py::test_errors_that_were_there_do_not_hinder_a_rename",
    ),
    "C30": (
        f"{B}/test_rename_tool.py::test_what_an_assembly_declares_is_not_renamed",
        f"{B}/test_rename_tool.py::test_a_server_that_gives_no_edit_is_a_refusal",
    ),
    # code actions and fix-all
    "C32": (
        f"{B}/test_code_action_tools.py::test_an_id_of_another_snapshot_is_a_mismatch_and_stays_good_for_its_own",
        f"{B}/test_odd_edits.py::test_content_modified_while_resolving_lists_once_more_and_takes_the_one_match",
        f"{B}/test_odd_edits.py::test_without_exactly_one_match_then_nothing_is_staged",
    ),
    "C33": (
        f"{B}/test_code_action_tools.py::test_nested_actions_are_listed_flat_with_all_titles_from_the_menu_down",
        f"{B}/test_code_action_tools.py::test_fix_all_is_a_scope_of_its_action_and_no_action",
        f"{L}/test_roslyn_dialect.py::test_fix_all_entries_inside_a_group_are_folded_too",
        f"{B}/test_fix_all.py::test_two_children_of_a_group_are_prepared_each_for_its_own_scopes",
    ),
    "C34": (
        f"{B}/test_fix_all.py::test_a_change_outside_of_the_scope_is_refused_as_a_whole",
        f"{B}/test_fix_all.py::test_a_fix_is_prepared_for_a_scope_staged_as_one_step_and_committed",
        f"{B}/test_emulated_fix_all.py::test_a_scope_holds_its_documents_and_no_others",
        f"{B}/test_emulated_fix_all.py::test_an_edit_outside_of_the_scope_is_refused",
    ),
    "C36": (
        f"{B}/test_fix_all.py::test_five_findings_in_one_file_are_one_step_that_one_undo_takes_back",
        f"{B}/test_emulated_fix_all.py::test_every_occurrence_in_the_solution_is_fixed_and_counted",
    ),
    "C37": (
        f"{B}/test_reported_cases.py::test_a_missing_using_is_listed_staged_previewed_and_committed",
        f"{R}/test_main_job.py::test_a_text_action_and_a_creating_action_are_staged_previewed_undone_redone_and_committed",
    ),
    # sync and stale answers
    "C38": (
        f"{L}/test_documents.py::test_a_change_replaces_exactly_the_old_text_by_range",
        f"{L}/test_documents.py::test_the_end_of_the_old_text_follows_the_line_rule_of_the_server",
    ),
    "C39": (
        f"{L}/test_documents.py::test_opening_twice_is_our_mistake_and_changes_nothing",
        f"{L}/test_documents.py::test_changing_or_closing_what_is_not_open_is_our_mistake",
        f"{L}/test_session.py::test_two_callers_with_the_same_view_open_each_document_once",
    ),
    "C40": (
        f"{L}/test_session.py::test_a_staged_text_is_seen_and_the_disk_again_afterwards",
        f"{L}/test_documents.py::test_versions_rise_by_one_and_never_go_back_over_a_close",
    ),
    "C41": (
        f"{B}/test_preview_diagnostics.py::test_a_new_error_and_a_fixed_one_are_told_with_their_places",
        f"{B}/test_preview_diagnostics.py::test_a_server_that_is_too_slow_holds_up_a_stage_no_longer_than_the_bound",
    ),
    "C43": (
        f"{L}/test_session.py::test_created_and_deleted_files_are_known_when_the_call_returns",
        f"{R}/test_code_action_truth.py::test_right_after_a_commit_that_created_a_file_another_file_is_answered_with_the_new_type",
    ),
    "C44": (
        f"{B}/test_external_changes.py::test_a_change_is_picked_up_before_the_next_answer",
        f"{B}/test_external_changes.py::test_in_a_transaction_any_change_is_a_conflict_and_rolling_back_leads_on",
    ),
    "C45": (
        f"{L}/test_incoming.py::test_the_kinds_of_diagnostics_that_are_registered_later_are_remembered",
        f"{L}/test_session.py::test_the_compilers_diagnostics_are_asked_for_alone_where_the_server_has_named_them",
    ),
    "C46": (
        f"{B}/test_reported_cases.py::test_content_modified_twice_and_then_an_answer_is_an_answer_for_who_only_reads",
        f"{B}/test_odd_edits.py::test_a_server_that_goes_on_saying_so_makes_the_action_unavailable",
    ),
    # loading
    # Unknown requests are answered `null` where the case says -32601: see the top of lsp_client/incoming.py.
    "C48": (
        f"{L}/test_incoming.py::test_null_is_the_answer_that_says_nothing_and_is_no_error",
        f"{L}/test_incoming.py::test_every_setting_asked_for_has_an_answer_in_its_place",
        f"{L}/test_supervisor.py::test_a_load_is_over_when_run_has_started",
    ),
    "C49": (f"{L}/test_incoming.py::test_null_is_the_answer_that_says_nothing_and_is_no_error",),
    "C50": (
        f"{B}/test_reported_cases.py::test_a_question_while_the_solution_loads_is_told_so_and_never_answered_with_nothing",
        f"{B}/test_workspace_tools.py::test_a_server_that_ends_while_it_starts_has_its_last_words_told",
        f"{B}/test_workspace_tools.py::test_opening_tells_progress_that_never_goes_back",
    ),
    "C51": (
        f"{L}/test_supervisor.py::test_a_solution_that_csharp_ls_could_not_load_is_no_success_although_it_answers",
        f"{B}/test_workspace_tools.py::test_a_load_that_never_ends_is_given_up_in_time_and_its_process_ended",
    ),
    "C52": (
        f"{B}/test_workspace_tools.py::test_other_and_old_projects_are_skipped_aloud",
        f"{B}/test_projects.py::test_a_project_outside_the_sdk_style_and_one_that_fails_are_told_apart",
    ),
    "C54": (
        f"{B}/test_solutions.py::test_two_candidates_are_ambiguous_and_named",
        f"{B}/test_solutions.py::test_a_solution_or_project_file_is_taken_as_it_is",
        f"{B}/test_solutions.py::test_a_slnf_keeps_the_named_projects_of_its_solution",
    ),
    "C55": (
        f"{L}/test_incoming.py::test_null_is_the_answer_that_says_nothing_and_is_no_error",
        f"{L}/test_roslyn_dialect.py::test_the_server_restores_only_when_it_may",
        f"{R}/test_opening.py::test_a_missing_restore_is_done_and_said_or_only_said",
    ),
    "C56": (
        f"{B}/test_dotnet.py::test_a_pin_that_is_not_met_names_what_is_wanted_and_what_is_there",
        f"{R}/test_opening.py::test_a_missing_sdk_and_a_missing_pinned_sdk_are_told_from_each_other",
    ),
    "C58": (
        f"{B}/test_odd_names.py::test_a_file_with_an_odd_name_is_staged_previewed_and_committed",
        f"{L}/test_uris.py::test_every_name_the_system_allows_survives_the_round_trip",
        f"{R}/test_opening.py::test_odd_letters_in_folder_names_neither_hide_files_nor_move_edits",
    ),
    "C59": (
        f"{B}/test_workspace_tools.py::test_a_load_that_never_ends_is_given_up_in_time_and_its_process_ended",
        f"{T}/test_names_that_change_hands.py::test_a_path_longer_than_the_system_allows_is_refused_when_staged",
    ),
    # commits and processes
    "C61": (f"{B}/test_odd_edits.py::test_of_three_edits_the_last_outside_of_its_file_refuses_all",),
    "C63": (
        f"{T}/test_recovery.py::test_a_commit_killed_at_any_call_is_there_in_whole_or_not_at_all_after_recovery",
        f"{B}/test_killed_bridge.py::test_the_tree_is_whole_again_when_the_next_bridge_answers_for_it",
    ),
    "C64": (
        f"{L}/test_supervisor.py::test_a_killed_server_is_back_with_a_new_generation_and_sees_the_staged_text",
        f"{B}/test_server_death.py::test_a_server_killed_while_idle_is_there_again_for_the_next_call",
    ),
    "C65": (
        f"{L}/test_process.py::test_a_bridge_that_is_killed_leaves_nothing",
        f"{L}/test_process.py::test_a_server_that_only_knows_the_end_of_stdin_ends_by_that",
        f"{L}/test_process.py::test_a_wedged_server_is_killed_with_all_it_started_within_the_bounds",
    ),
}
"""For each case the tests that hold it, as ``file::name``."""

_NEVER_RUN = re.compile(r"\bmark\.(?:skip|xfail)\b")


@cache
def _tests_of(file: str) -> Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def _broken(case: str) -> Iterator[str]:
    for name in CASES[case]:
        file, _, test = name.partition("::")
        node = _tests_of(file).get(test) if (ROOT / file).is_file() else None
        if node is None:
            yield f"{name} does not exist"
        elif any(_NEVER_RUN.search(ast.unparse(decorator)) for decorator in node.decorator_list):
            yield f"{name} is skipped or expected to fail"


@pytest.mark.parametrize("case", CASES)
def test_the_tests_of_a_case_exist_and_run(case: str) -> None:
    assert list(_broken(case)) == []
    assert any(not name.startswith(R) for name in CASES[case]), "real servers are not on every machine"


@pytest.mark.skipif(
    not REFERENCE.is_file(), reason="../shared/reference/cases.md is not there to be compared"
)
def test_every_case_of_the_reference_is_held_and_no_other() -> None:
    rows = re.findall(r"^\| (C\d+) \|", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(CASES) == sorted(rows)
