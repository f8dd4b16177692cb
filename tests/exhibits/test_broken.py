"""Test the register of released bugs: its entries, its pages, and what the checker reports for each bug.

The report on the broken code is compared with values that are computed or known independently of the checker.
"""

import ast
import math
import re
import tomllib
from datetime import date

import pytest

from executable_prose.execution.results import exhibit_names
from executable_prose.project import DOCS, ROOT
from guide import register
from tests.exhibits.common import speeds
from tests.rows import each_of

ENTRIES = register.entries()
IDS = [entry.id for entry in ENTRIES]
WIDE, OWN = speeds(64)[1], speeds(16)[1]
BASES = {base: speeds(16, base)[1] for base in (1e4, 5e5, 1e6)}  # what the second of eight pairs turns by
THRICE = speeds(16, 1e4 * 3 ** (16 / 14))[1]  # dynamic NTK by 2 at twice the length: 2 * 2 - 1

# What the checker must say of the broken code, as a pattern; numbers where they are known.
SAID = {
    "broken_conversion.table_and_swap": f"{math.cos(1):.4f}; the table is in the half layout, the swap inter",
    "broken_conversion.swap_and_table": f"{math.cos(1):.4f}; the table is in the interleaved layout",
    "broken_conversion.swap_left_in_halves": "query 1, key 1",
    "broken_conversion.one_module_inherits": "the table is in the half layout, the swap interleaved",
    "broken_conversion.unpermuted_weights": "the layout is half, not interleaved",
    "broken_conversion.permuted_by_other_heads": "the layout is own, not interleaved",
    "broken_conversion.permuted_the_other_way": "the layout is own, not interleaved",
    "broken_conversion.products_never_added": "Also failing: norm_kept",
    "broken_configuration.base_moved_in_version_5": f"by {BASES[1e4]:.6g} .* position, not {BASES[1e6]:.6g}",
    "broken_configuration.old_default_wins": f"by {BASES[1e4]:.6g} .* position, not {BASES[5e5]:.6g}",
    "broken_configuration.kind_under_another_key": f"pair 0 rotates by 1 .* position, not {1 / 4}",
    "broken_configuration.share_never_read": "16 pairs rotate, not 8",
    "broken_configuration.share_taken_twice": "16 pairs rotate, not 32",
    "broken_configuration.share_by_the_width_of_the_head": f"by {WIDE:.6g} .* position, not {OWN:.6g}",
    "broken_configuration.halved_once_a_layer": "4 pairs rotate, not 16",
    "broken_configuration.proportional_taken_for_partial": "the channels of a pair are 4 apart, not 16",
    "broken_configuration.rotation_hangs_on_the_window": "in layers 3: rotates",
    "broken_configuration.rotation_where_there_is_none": "in layers 3: rotates",
    "broken_configuration.rows_counted_from_two": "2049 raises IndexError: index 2051 is out of",
    "broken_scaling.scaling_parsed_and_never_read": f"pair 8 rotates by {speeds(32, 5e5)[8]:.6g} radians",
    "broken_scaling.factor_left_out_of_full_layers": f"pair 0 rotates by 1 .* position, not {1 / 8}",
    "broken_scaling.factor_in_layers_with_a_window": f"pair 0 rotates by {1 / 8} .* position, not 1",
    "broken_scaling.positions_doubled": "pair 0 rotates by 2 .* position, not 1",
    "broken_scaling.length_scaled_twice": "position 65536",
    "broken_scaling.length_after_for_length_before": f"pair 11 rotates by {speeds(64)[11]:.6g} radians",
    "broken_scaling.attention_factor_not_passed_on": f"multiplied by {0.1 * math.log(64) + 1:.6g}, not 1",
    "broken_scaling.long_factors_at_every_length": f"multiplied by {math.sqrt(1 + math.log(32, 4096)):.4g}",
    "broken_scaling.factors_switched_in_the_middle": "padded_as_steps, whole_as_steps",
    "broken_scaling.base_of_the_moment": "whole_as_chunks",
    "broken_scaling.dynamic_for_one_length": f"by {THRICE:.6g} .* position, not {OWN:.6g}",
    "broken_scaling.kept_from_the_longest_prompt": "before a call with a late one and after",
    "broken_start.frequencies_in_no_checkpoint": "no: inv_freq, not in the checkpoint",
    "broken_start.restored_by_a_name_that_has_gone": "no: inv_freq, not in the checkpoint",
    "broken_start.buffer_that_follows_the_model": "0.316406 .* position, not 0.316228",  # bfloat16 has it not
    "broken_start.positions_like_the_frequencies": "in float32? no",
    "broken_start.arange_under_a_patch": "position 257",  # the first that bfloat16 lacks
    "broken_start.table_drawn_anew": "places.weight, not in the checkpoint",
    "broken_start.float64_where_there_is_none": "makes float64",
    "broken_training.angles_under_autocast": "in autocast to bfloat16? no",
    "broken_training.angles_in_tf32": "in float32? no",
    "broken_training.axis_of_the_heads": "it does not rotate .measured: ignores",
    "broken_training.packed_and_only_reset": "token 0",
    "broken_training.axes_taken_for_documents": "token 12",  # the first behind a row of four that is new
    "broken_training.each_piece_from_the_first_row": "position 23",
    "broken_batches.padding_counted": "token 0",
    "broken_batches.one_padded_row_for_all": "next to a padded one",
    "broken_batches.one_row_of_new_tokens": "read token by token, too",
    "broken_batches.chunks_counted_from_the_padding": "padding on its left",
    "broken_batches.window_and_one": "a window of 5 keys",
    "broken_batches.indexer_in_the_parents_layout": "the layout is half, not interleaved",
    "broken_batches.indexer_in_two_layouts": "beyond top-k 32",
    "broken_batches.sinks_the_kernel_lacks": "expected less than 1, with sinks",
    "broken_batches.causal_from_the_top_left": "? 1 instead of .* query 59, key 0",
    "broken_batches.causal_from_the_top_left_in_torch": "? 1 instead of .* query 59, key 0",
    "broken_batches.causal_only_without_a_cache": "read in chunks",
    "broken_batches.table_kept_without_its_offset": "alone and among others",
    "broken_batches.drafts_one_ahead": "token by token",
    "broken_caches.chunk_takes_the_last_places": "read in chunks",
    "broken_caches.length_of_the_first_layer": "token by token",
    "broken_caches.query_after_the_cache_grew": "token by token",
    "broken_caches.offset_is_what_is_left": "token by token",
    "broken_caches.delta_lost_in_decoding": "token by token",
    "broken_caches.gates_of_new_tokens": "token by token",
    "broken_caches.chunk_reused_where_it_was": r"shift \d+",
    "broken_caches.moved_by_another_rope": r"shift \d+",
    "broken_caches.shift_turns_what_never_turned": r"shift \d+",
    "broken_caches.shifts_that_add_up": r"shift \d+",
    "broken_images.patches_as_text": r"\(30, 30, 30\) values for a grid of \(3, 2, 5\)",
    "broken_images.blocks_for_turns": r"axis 0 rotates pairs \[0, 1, 2, 3\], not \[0, 3, 6, 7\]",
    "broken_images.x_for_y": r"\(3, 5, 2\) values for a grid of \(3, 2, 5\)",
    "broken_images.picture_split_in_batches": r"values for a grid of \(3, 2, 5\)",
    "broken_images.seconds_cut_too_early": "10 different coordinates for 30 patches",
    "broken_images.one_grid_for_many_frames": "it raised StopIteration",
    "broken_images.words_behind_a_film": r"begins at \[8, 8, 8\], after 11",  # 3 + 5, 3 + 9 - 1
    "broken_images.the_start_stretched_too": r"begins at \[12, 3, 3\], after 2",  # 3 words, times 4
    "broken_images.image_positions_in_bfloat16": "in autocast to bfloat16? no",
    "broken_images.size_from_a_scale": r"\(58, 60\) instead of \(58, 61\)",
    "broken_images.a_table_taken_to_be_square": "the values of a row vary by ",
    "broken_images.resized_another_way": "it differs by",
}


def test_what_is_known_of_each_fault_is_written_down():
    assert set(SAID) == {name for name in exhibit_names() if name.startswith("broken_")}
    assert {entry.exhibit for entry in ENTRIES} <= set(SAID)


@pytest.mark.claim(
    "every-fault-of-the-register-is-found",
    "For each entry of the register of bugs, the check that the entry names fails on the broken code, and "
    "none of the checks that were run fails on the fixed code.",
)
@each_of("name", SAID)
def test_each_fault_is_found_by_its_check_and_nothing_is_once_fixed(name, printed):
    """An exhibit raises if its check passes what is broken, or any fails what is fixed: see `compare`."""
    text = " ".join(" ".join(printed(name)).split())
    checks = {entry.check for entry in ENTRIES if entry.exhibit == name} or {"rows_alone"}
    (check,) = checks
    assert text.startswith(f"broken {check} fails. ") and text.endswith(" fixed no check fails."), text
    assert re.search(SAID[name].replace("? ", r"\? "), text), text


def test_both_refuses_what_is_not_found_and_what_is_not_fixed():
    from exhibits._broken_and_mended import compare
    from snippets.check_positions import Finding

    def check(code):
        return [Finding(name, "fails", "Is it?", "yes", "no: never") for name in code]

    compare(["one", "other"], [], check, finds="one")
    with pytest.raises(ValueError, match="one must fail; the failing checks are: other"):
        compare(["other"], [], check, finds="one")
    with pytest.raises(ValueError, match="no check may fail on the fix, but fails: other"):
        compare(["one"], ["other"], check, finds="one")


# The rows


def test_there_are_as_many_as_it_takes_and_each_stage_has_some():
    assert len(ENTRIES) >= 50
    assert {entry.stage for entry in ENTRIES} == set(register.STAGES)
    assert (
        len({entry.title for entry in ENTRIES}) == len({entry.exhibit for entry in ENTRIES}) == len(ENTRIES)
    )


@each_of("entry", ENTRIES, ids=lambda entry: entry.id)
def test_a_row_has_what_a_reader_needs_and_threads_with_names_and_dates_in_order(entry):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry.id)
    assert entry.exhibit.startswith(f"broken_{entry.stage}.") and entry.exhibit in exhibit_names()
    assert len(entry.title) <= 66 and entry.libraries
    for words in (entry.symptom, entry.hides, entry.cause, entry.fix, entry.stands):
        assert words.endswith((".", "?")) and words.count("`") % 2 == 0, words
    assert all(message == message.strip() and message for message in entry.messages)
    assert entry.threads or "no thread" in entry.stands
    dates = [date.fromisoformat(thread["date"]) for thread in entry.threads]
    assert dates == sorted(dates) and all(date(2019, 1, 1) < each < date(2026, 11, 30) for each in dates)
    assert all(set(thread) <= {"name", "date", "version"} for thread in entry.threads)


@each_of("entry", ENTRIES, ids=lambda entry: entry.id)
def test_a_library_is_named_by_a_thread_or_by_the_text(entry):
    told = " ".join(" ".join(thread.values()) for thread in entry.threads)
    told += f" {entry.title} {entry.symptom} {entry.hides} {entry.cause} {entry.fix} {entry.stands}"

    def letters(words):
        return re.sub(r"[^a-z0-9]", "", words.lower())

    assert [name for name in entry.libraries if letters(name) not in letters(told)] == []


@each_of("entry", ENTRIES, ids=lambda entry: entry.id)
def test_what_explains_it_is_there(entry):
    page, _, anchor = entry.learn.partition("#")
    text = (DOCS / page).read_text("utf-8")
    headings = re.findall(r"^#+ (.+?)(?: \{.*)?$", text, re.M)
    slugs = {re.sub(r"[^\w]+", "-", heading.lower()).strip("-") for heading in headings}
    assert not anchor or anchor in slugs | set(re.findall(r"\{[^}]*#([\w-]+)", text)), entry.learn


def test_each_check_is_one_of_the_checkers_or_of_the_page():
    def words(file):
        nodes = ast.walk(ast.parse((ROOT / file).read_text("utf-8")))
        return {node.value for node in nodes if isinstance(node, ast.Constant)}

    checkers = words("snippets/check_positions.py")
    of_images = checkers | words("exhibits/_image_checks.py")
    for entry in ENTRIES:
        assert entry.check in (of_images if entry.stage == "images" else checkers), entry.id


# The pages


@each_of("stage", register.STAGES)
def test_a_page_has_the_entries_of_its_stage_each_above_its_exhibit(stage):
    text = (DOCS / "broken" / f"{stage}.md").read_text("utf-8")
    shown = re.findall(r"^```register (\S+)\n```\n\n```exhibit (\S+) show=code$", text, re.M)
    assert shown == [(entry.id, entry.exhibit) for entry in ENTRIES if entry.stage == stage]


def test_rows_are_in_the_order_of_the_pages():
    rows = tomllib.loads((ROOT / register.FILE).read_text("utf-8"))["entry"]
    assert [row["id"] for row in rows] == IDS
