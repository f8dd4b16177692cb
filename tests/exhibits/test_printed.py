"""What exhibits print: each is read by a test, and here those are that no test of a chapter's words reads."""

import itertools
import math
import re
import tomllib
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from executable_prose.execution.results import exhibit_names
from executable_prose.project import ENGINE, ROOT
from experiments.intervals import quantile
from experiments.runs import load
from tests.exhibits.common import APART, ROUNDING, half_a_unit, likeness, numbers, softmax, waves

HERE = Path(__file__).parent


def test_what_an_exhibit_prints_or_returns_is_read_by_a_test(gives):
    """A golden file is not one: it stores what was given, whether true or not."""
    tests = (path for path in HERE.glob("*.py") if path.name != "test_goldens.py")
    read = set(re.findall(r"\b\w+\.\w+\b", "".join(path.read_text("utf-8") for path in tests)))
    given = [name for name in exhibit_names() if gives(name)["output"] or gives(name)["values"]]
    assert [name for name in given if name not in read] == []


# Order, and no position


def test_the_rows_of_the_words_are_the_same_in_both_sentences(printed):
    one, other = (
        {line.split()[0]: numbers(line) for line in part} for part in split(printed("order.two_sentences"))
    )
    assert one == other and len(set(map(tuple, one.values()))) == 3


def split(lines):
    """The lines below each line that is not indented."""
    heads = [n for n, line in enumerate(lines) if not line.startswith(" ")] + [len(lines)]
    return [lines[here + 1 : there] for here, there in itertools.pairwise(heads)]


def test_a_shuffle_moves_rows_and_changes_none(printed):
    same = [line.endswith("same") for line in printed("order.equivariant_or_invariant")]
    assert same == [False, True, False, True, True]
    shuffle, without, with_positions = map(numbers, printed("order.shuffle_run_unshuffle"))
    assert sorted(shuffle) == list(range(8)) != shuffle
    assert without[0] < ROUNDING and with_positions[0] > APART


def test_proportions_are_seen_and_counts_are_not(printed):
    counts, proportions = map(numbers, printed("order.counts_and_proportions"))
    assert counts[-1] > APART and proportions[-1] < ROUNDING
    summed, attended = map(numbers, printed("order.sums_are_blind"))
    assert summed[-1] < ROUNDING and attended[-1] > 0.01


def test_identical_tokens_have_equal_weights(printed):
    rows = list(map(numbers, printed("order.identical_tokens")))
    assert all(len(row) == 4 and sum(row) == pytest.approx(1, abs=0.002) for row in rows)
    assert rows[0] == [0.25] * 4 and all(max(row) > 0.3 for row in rows[1:])


def test_a_mean_over_what_is_seen_tells_the_place(printed):
    for place, (at, seen, whole) in enumerate(map(numbers, printed("no_position.running_mean")[1:]), 1):
        assert at == place and half_a_unit([seen, whole], [1 / place, 1 / 5], 2)


def test_what_cope_costs_and_where_it_looks(printed):
    table, scores, positions = map(numbers, printed("read.cost"))
    assert (table, scores, positions) == ([64 * 64], [12 * 2048 * 64 * 4 / 2**20], [12 * 2048**2 * 4 / 2**20])
    shapes, later = printed("read.in_a_layer")
    assert shapes == "(2, 100, 64) (2, 4, 100, 100)" and numbers(later) == [0]


# Sinusoids


def test_a_row_is_computed_by_hand(printed):
    _, *hands, row = printed("sinusoidal.by_hand")
    assert half_a_unit([numbers(hand)[2:] for hand in hands], np.reshape(waves([3], 4), (2, 2)), 4)
    assert [numbers(hand)[:2] for hand in hands] == [[1, 3], [2, 0.03]]
    assert half_a_unit(numbers(row), waves([3], 4)[0], 4)
    assert half_a_unit([numbers(line) for line in printed("sinusoidal.read_by_zeros")], waves(range(3), 4), 4)


def test_simpler_marks_have_the_faults_that_are_said(printed):
    number, *fractions, one, other = map(numbers, printed("sinusoidal.simpler_marks"))
    assert number == [500, 500] and all(
        step == 1 / words for step, words in map(sorted, [fractions[0], fractions[1]])
    )
    for here, there, flips, digits in (one, other):
        assert flips == sum(a != b for a, b in zip(*(f"{int(n):010b}" for n in (here, there)), strict=True))
        assert digits == 10 and there == here + 1


def test_equal_offsets_have_equal_products_until_they_are_projected(printed):
    raw, projected = (numbers(line) for line in printed("sinusoidal.dot_products")[1:])
    assert half_a_unit(raw, likeness(5, 64), 3)
    assert min(abs(a - b) for a, b in itertools.combinations(projected, 2)) > APART


def test_one_matrix_does_for_all_positions_and_for_both_ways_to_join(printed):
    rows = [numbers(line) for line in printed("sinusoidal.shift_is_linear")[1:]]
    assert [row[0] for row in rows] == [1, 7, 100, -3] and max(row[1] for row in rows) < ROUNDING
    assert numbers(*printed("sinusoidal.adding_is_appending"))[0] < ROUNDING


def test_positions_coincide_where_the_bits_end(printed):
    _, half, brain, worst = printed("sinusoidal.coarse_positions")
    assert half.split() == ["float16", str(2**11 + 1)] and brain.split() == ["bfloat16", str(2**8 + 1)]
    assert 1.99 < numbers(worst)[0] <= 2  # sines are at most two apart
    assert [line.split()[2] for line in printed("myths.coarse")] == [str(2**8 + 1), str(2**11 + 1)]


def test_how_long_rows_are_beside_tokens(printed):
    position, *tokens = (numbers(line)[-1] for line in printed("sinusoidal.scale"))
    assert position == 512**0.5 / 2**0.5
    assert tokens == pytest.approx([0.02 * 512**0.5, 512**0.5, 512], rel=0.01)
    assert printed("sinusoidal.in_a_model") == ["(2, 10, 64) (2, 1, 64)"]


def test_the_similarity_of_positions_rises_as_often_as_the_myth_is_told(printed):
    first, rises, steps = [n for line in printed("myths.steady_fall") for n in numbers(line)][:3]
    products = [likeness(d, 64) for d in range(200)]
    up = [d for d in range(1, 200) if products[d] > products[d - 1]]
    assert (first, rises, steps) == (up[0], len(up), 199)


# Learned tables


def test_a_table_is_added_by_hand(printed):
    for place, line in enumerate(printed("learned.by_hand")[1:]):
        at, *row = numbers(line)
        assert at == place and half_a_unit(row[4:], np.add(row[:2], row[2:4]), 1)
    for line in printed("learned.parameters")[1:]:
        rows, width, count = numbers(line)[-3:]
        assert rows * width == count


def test_each_way_to_look_up_does_past_the_end_what_python_does(printed):
    _, *rows = (line.split()[-3:] for line in printed("learned.past_the_end"))
    assert rows[:2] == [["30", "error", "error"]] * 2
    assert rows[2:] == [["30", "error", "30"], ["30", "30", "0"], ["30", "0", "30"]]


def test_a_step_moves_the_rows_that_were_used(printed):
    moved = [numbers(line)[1] for line in printed("learned.one_step")]
    assert min(moved[:3]) > APART and moved[3:] == [0, 0, 0]


def test_a_free_table_makes_any_matrix_of_low_rank_and_fixed_rows_hardly_a_part(printed):
    free, fixed = (numbers(line)[-1] for line in printed("learned.any_scores"))
    assert free < 1e-5 and fixed == pytest.approx((1 - (8 / 50) ** 2) ** 0.5, abs=0.02)


def test_only_the_centred_measure_tells_the_trained_table(printed):
    rows = [numbers(line)[-3:] for line in printed("learned.fooled")[1:]]
    fresh, scaled, shifted, trained = rows
    assert scaled[0] == pytest.approx(100 * fresh[0], rel=0.1) and scaled[1:] == fresh[1:]
    assert shifted[1] > 0.99 and shifted[::2] == fresh[::2] and abs(fresh[2]) < 0.1 < 0.9 < trained[2]


def test_positions_are_counted_from_the_first_token_of_each_text(printed):
    edge, first = (numbers(line)[-1] for line in printed("learned.padded_outputs"))
    assert edge > APART and first < 1e-5
    padded, packed, following = printed("learned.in_a_model")
    assert padded.endswith("(2, 5, 768)") and packed.endswith("(2, 5, 768) [0, 1, 2, 0, 1]")
    assert following.endswith("(2, 1, 768) [[3], [5]]")


def test_rows_start_as_long_as_their_numbers_spread(printed):
    rows = [numbers(line)[-2:] for line in printed("learned.starts")[1:]]
    cut = math.sqrt(1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / math.erf(2 / math.sqrt(2)))
    assert [spread for spread, _ in rows[:3]] == pytest.approx([0.01, 0.02, 0.02 * cut], rel=0.01)
    assert [length for _, length in rows] == pytest.approx(
        [768**0.5 * spread for spread, _ in rows[:3]] + [384**0.5], abs=0.006
    )


# Distances, rotations, biases


def test_a_number_for_each_distance_is_added_by_hand(printed):
    _, *rows, verdict = printed("relative.by_hand")
    cells = np.array([numbers(row) for row in rows])
    assert cells[:, 0].tolist() == [-2, -1, 0, 1, 2]
    assert half_a_unit(cells[:, 3], softmax(cells[:, 1] + cells[:, 2]), 2)
    assert verdict == "same numbers a hundred positions later: True"


def test_one_key_loses_its_weight_among_many(printed):
    for tokens, weight in map(numbers, printed("relative.dilution")[1:]):
        assert half_a_unit(weight, math.exp(6) / (math.exp(6) + tokens - 1), 3)


def test_distances_stay_when_places_move(printed):
    for _, places, distances in map(numbers, printed("relative.moved")[2:]):
        assert places > APART and distances == 0
    one, two = (numbers(line) for line in printed("relative.beyond_the_clip")[2:])
    assert one[0] < ROUNDING and min(one[1], *two) > 1e-6


def test_sizes_of_relative_tensors(printed):
    for tokens, scores, pairs, snippet in map(numbers, printed("relative.memory")[3:]):
        assert scores == snippet == 8 * tokens**2 * 4 / 2**20 and pairs == tokens**2 * 64 * 4 / 2**20
    assert [re.findall(r"\(.*?\)", line) for line in printed("relative.whole")] == [
        ["(33, 64)", "(33, 64)"],
        ["(2, 8, 5, 5)"],
        ["(2, 8, 5, 64)"],
    ]


def test_a_layout_is_converted_and_read_as_what_it_is(printed):
    right, *wrong = (numbers(line)[-1] for line in printed("rope.convert"))
    assert right < ROUNDING and min(wrong) > APART


def test_waves_are_made_once_or_in_every_layer(printed):
    layers, once = (numbers(line) for line in printed("rope.once_per_model")[1:])
    assert once == [512 * 64, 64] and layers == [2 * 24 * each for each in once]


def test_coarse_angles_are_off_by_what_another_library_says(printed):
    frequencies = 10_000.0 ** (-np.arange(64) / 64)
    rows = printed("rope.precision")[1:]
    for position, line in zip((100, 257, 4096, 131_071, 1_000_003), rows, strict=True):
        at, *cells = line.split()
        assert int(at.replace(",", "")) == position
        for cell, dtype in zip(cells, (np.float32, np.float16), strict=False):
            with np.errstate(over="ignore", invalid="ignore"):
                angles = dtype(position) * frequencies.astype(dtype)
                error = np.abs(np.cos(angles.astype(float)) - np.cos(position * frequencies)).max()
            assert cell == (f"{error:.0e}" if np.isfinite(error) else "overflow")
        assert float(cells[2]) > 10 * float(cells[0])  # bfloat16, which NumPy lacks


def test_random_scores_spread_alike_at_every_distance(printed):
    for _, mean, spread in map(numbers, printed("rope.spread")[1:]):
        assert abs(mean) < 0.04 and abs(spread - 1) < 0.04


def test_shapes_of_what_is_turned(printed):
    shapes = [re.findall(r"\(.*?\)", line) for line in printed("rope.shapes")]
    assert [made for *_, made in shapes] == [
        "(2, 8, 5, 64)",
        "(2, 2, 5, 64)",
        "(2, 8, 5, 64)",
        "(2, 8, 5, 64)",
    ]
    assert [positions for positions, *_ in shapes] == ["(5,)", "(5,)", "(2, 5)", "(5,)"]
    assert printed("rope.with_a_cache") == ["same output for the last token: (1, 8, 1, 64)"]
    assert len([n for line in printed("rope.three_ways") for n in numbers(line)]) == 8


def test_what_biases_hold_and_learn(printed):
    rows = {line.split("  ")[0].strip(): numbers(line)[-2:] for line in printed("bias.cost")[1:]}
    network = 2 * 32 + (32 + 1) * 12 + 2  # one number in, twelve out, and where its two sizes start
    bias = 12 * 2048**2 * 4 / 2**20
    assert rows == {
        "ALiBi": [0, bias],
        "Sandwich": [0, bias],
        "KERPLE": [2 * 12, bias],
        "FIRE": [network, bias],
        "clipped at 128": [(2 * 128 + 1) * 12, bias],
        "FIRE, hidden layer:": [32 * 2048**2 * 4 / 2**20],
    }
    agree, sizes = printed("bias.two_ways")
    assert agree == "same output: True" and numbers(sizes) == [12 * 64 * 64, 12]


# The whole Transformer, and its mistakes


def test_one_word_gets_two_sums(printed):
    rows = [line.split() for line in printed("in_a_transformer.from_text_to_vectors")[1:]]
    for row, wave in zip(rows, waves(range(6), 4, base=100.0), strict=True):
        before, after = ([float(x) for x in row[a : a + 2]] for a in (3, 6))
        assert np.allclose(np.subtract(after, before), wave[:2], atol=0.1 + 1e-9)
    assert rows[0][:2] == rows[3][:2] and rows[0][3:5] == rows[3][3:5] and rows[0][6:] != rows[3][6:]


def test_what_norms_leave_of_the_position(printed):
    _, _, *rows = printed("in_a_transformer.norms")
    whole, rms, layer, before = (numbers(row) for row in rows)
    squares = [512 * s**2 for s in (0.02, 1, 512**0.5)]
    assert whole == pytest.approx([256 / (256 + each) for each in squares], abs=0.002)
    assert rms == pytest.approx(whole, abs=0.002) and layer[1] < whole[1] - 0.03
    assert before == pytest.approx([256 / (256 + 512)] * 3, abs=0.002)


def test_which_encodings_are_silent_before_training(printed):
    rows = {
        line[:16].strip(): numbers(line[24:])[-3:] for line in printed("in_a_transformer.every_encoding")[2:]
    }
    assert {name for name, (_, first, _) in rows.items() if not first} == {
        "none",
        "T5",
        "clipped bias",
        "CoPE",
    }
    assert {name for name, (*_, later) in rows.items() if not later} == {"none"}
    learns = {name for name, (learned, *_) in rows.items() if learned}
    assert all((first == later) == (name not in learns) for name, (_, first, later) in rows.items())


def test_guesses_are_kept_as_far_as_they_are_right(printed):
    _, *calls, verdict = printed("in_a_transformer.speculative")
    for line in calls:
        guessed, right, taken, longer, kept = re.fullmatch(
            r"([a-z ]+?) +(\d) +([a-z ]+?) +(\d+) to +(\d+)", line
        ).groups()
        guessed, taken, right = guessed.split(), taken.split(), int(right)
        assert len(taken) == right + 1 and guessed[:right] == taken[:right]
        assert guessed[right : right + 1] != taken[right:] and int(longer) - int(kept) == 4 - right
    assert verdict == "same as token by token: yes"
    assert printed("in_a_transformer.through_torch") == ["the same within 1e-6: True"]


def test_one_cache_for_all_layers_gives_what_texts_get_at_once_and_alone(printed):
    said = printed("in_a_transformer.one_cache_for_all_layers")
    assert said == ["step by step equals at once: True", "left-padded equals alone: True"]


def test_what_was_seen_is_in_the_cache_and_a_turn_is_all_that_one_layer_wants(printed):
    lines = [line.rsplit(maxsplit=2) for line in printed("in_a_transformer.surgery")[1:]]
    off = {words: (float(one), float(three)) for words, one, three in lines}
    whole = off.pop("text moved, rotated")
    rotated = [gaps for words, gaps in off.items() if words.endswith("rotated")]
    others = [gaps for words, gaps in off.items() if not words.endswith("rotated")]
    assert whole == (0, 0) and len(rotated) == 2 and len(others) == 3
    assert all(one == 0 and three > APART for one, three in rotated)
    assert all(min(gaps) > APART and gaps[1] > max(rotated)[1] > gaps[1] / 2 for gaps in others)
    assert printed("in_a_transformer.room_for_more") == [
        "kept: [[0, 1, 8, 9, 10, 11]]",
        "moved: [[0, 1, 2, 3, 4, 5]]",
        "as rotated there: True",
    ]


def test_each_mistake_shows_where_it_is_said_to(printed):
    trained, other, mixed, converted = (numbers(line) for line in printed("debugging.layouts")[1:])
    assert (
        trained[1] == 0 and max(trained[0], other[0], *converted) < ROUNDING and min(other[1], *mixed) > 0.5
    )
    column, word = (numbers(line) for line in printed("debugging.padding")[1:])
    assert column[0] > APART and max(column[1], *word) < ROUNDING
    train, evaluated = (numbers(line)[0] for line in printed("debugging.same_again"))
    assert train > APART and evaluated == 0
    rope, alibi, table, equal = (line.split()[-1] for line in printed("debugging.relativity"))
    assert float(rope) < ROUNDING and float(alibi) == 0 and float(table) > 0.5 and equal == "nan"


def test_zeros_read_out_what_is_added(printed):
    texts = [np.array([numbers(line) for line in part]) for part in split(printed("debugging.read_by_zeros"))]
    rows = np.array(waves(range(3), 4))
    for text, wanted in zip(texts, (rows, rows, rows[[0, 0, 0]], rows[[1, 1, 1]]), strict=True):
        assert half_a_unit(text, wanted, 2)


def test_a_ramp_has_the_straightest_rows_and_a_margin_next_to_none(printed):
    rows = {line.split()[0]: line.split()[1:] for line in printed("debugging.ramp_wins")[1:]}
    assert rows.pop("constant") == ["nan", "0.000"] and rows["sinusoids"] == rows["thousandth"]
    straight, margin = ({name: float(row[n]) for name, row in rows.items()} for n in (0, 1))
    assert max(straight, key=straight.get) == min(margin, key=margin.get) == "ramp"
    assert max(margin, key=margin.get) == min(straight, key=straight.get) == "random"
    assert half_a_unit(margin["ramp"], math.sqrt(6 / (256 * 257)), 3)


def test_positions_drown_on_both_sides(printed):
    rows = [numbers(line) for line in printed("debugging.drowned")[1:]]
    for (scale, strength, _), (other, less, _) in itertools.pairwise(rows):
        assert less / strength == pytest.approx(scale / other, rel=0.05)
    assert rows[1][2] > 10 * max(rows[0][2], rows[2][2])


# Stretched RoPE


def test_angles_of_one_pair(printed):
    for pair, wave, offset, was, now in map(numbers_and_degrees, printed("long_context.one_pair")[1:]):
        speed = 10_000 ** (-2 * pair / 96)
        assert half_a_unit(wave, 2 * math.pi / speed, 0)
        assert half_a_unit([was, now], [math.degrees(offset * speed), math.degrees(offset * speed) / 2], 0)


def numbers_and_degrees(line):
    return numbers(line.replace("°", ""))


def test_llama_3_leaves_blends_and_slows(printed):
    turns = [8192 * 500_000 ** (-i / 64) / (2 * math.pi) for i in range(64)]
    counts = sum(t > 4 for t in turns), sum(1 <= t <= 4 for t in turns), sum(t < 1 for t in turns)
    head, *lines = printed("long_context.llama3_counts")
    assert numbers(head) == [64, 8192] and tuple(numbers(line)[0] for line in lines) == counts


def test_a_key_that_came_early_is_turned_otherwise_now(printed):
    for _, now, then in map(numbers, printed("long_context.stale_keys")[1:]):
        assert abs(now - then) > APART
    _, before, after = map(numbers_and_degrees, printed("long_context.switch"))
    angle = math.degrees(4000 * 10_000 ** (-33 / 48))
    assert half_a_unit(before[-1], angle, 1) and after[-1] < angle / 50
    assert printed("long_context.in_a_model") == ["(32,) (1, 2, 5, 64) (1, 2, 5, 9)"]


def test_centres_matter_only_where_they_differ(printed):
    rows = [numbers(line) for line in printed("long_context.xpos_centre")[1:]]
    assert {row[2] for row in rows if row[0] == row[1]} == {rows[0][2]} and len(rows) == 4
    (wrong,) = (row[2] for row in rows if row[0] != row[1])
    assert abs(wrong - rows[0][2]) > APART


# Trained models: what is shown is what was kept


def test_dates_are_written_as_in_both_languages(printed):
    day, lines = date(2026, 4, 3), [line[8:] for line in printed("applications.in_four_styles")]
    assert lines[1] == f"{day.month}/{day.day}/26" and lines[5] == f"{day:%B} {day.day}, {day.year}"
    assert lines[7] == f"{day:%A}, {lines[5]}" and lines[6].endswith(lines[4])
    assert printed("applications.into_tokens")[0].replace("|", "") == "21. November 2026"
    assert printed("applications.into_tokens")[1].replace("|", "") == "November 21, 2026"


def test_a_verdict_on_a_translation_is_that_of_its_letters(printed):
    kept = load("translator")
    right = {german: right for german, _, right in kept["none"][0]["translations"]}
    lines = printed("applications.translations")
    for german, answers in zip(
        lines[::4], zip(lines[1::4], lines[2::4], lines[3::4], strict=True), strict=True
    ):
        for answer in answers:
            name, said, verdict = re.fullmatch(r"  (\w+) +(.+?) +(right|wrong)", answer).groups()
            assert [german, said, right[german]] in kept[name][0]["translations"]
            assert (verdict == "right") == (said == right[german])


def test_what_a_generator_wrote_is_what_was_kept(printed):
    kept = load("generator")
    wanted = {
        "generator.samples": [
            kept[name][n]["texts"]["0.8"][:128] for name in ("none", "RoPE") for n in range(3)
        ],
        "generator.temperatures": [
            kept["RoPE"][0]["texts"][heat][:128] for heat in ("0.0", "0.4", "0.8", "1.2")
        ],
        "generator.far_samples": [kept[n][0]["texts"]["0.8"][384:] for n in ("sinusoidal", "RoPE", "ALiBi")],
    }
    for name, texts in wanted.items():
        shown, lines = [], printed(name)
        for line in lines:
            if line.startswith("|"):
                shown[-1] += re.sub(r"^[|] ?(  ↪ )?", "", line)
            else:
                shown.append("")
        assert ["".join(text.split()) for text in shown] == ["".join(text.split()) for text in texts]
    for line, text in zip(printed("generator.lines"), kept["RoPE"][0]["lines"], strict=True):
        shown, end = line.rsplit("  ", 1)
        assert shown == text.partition("\n")[0] and (end == "[end]") == ("\n" in text)


def test_the_numbers_of_a_generator_are_those_that_were_kept(printed):
    kept = load("generator")
    losses = {line.split()[0]: numbers(line) for line in printed("generator.trained_length")[2:]}
    words = {line[:12].strip(): numbers(line[12:]) for line in printed("generator.by_temperature")[1:-2]}
    assert set(losses) == set(words) == set(kept)
    for name, runs in kept.items():
        seeds = [np.mean(run["loss_by_position"][: 128 // 16]) for run in runs]
        assert half_a_unit(losses[name], [*seeds, np.mean(seeds)], 3)
        heats = [np.mean([run["words"][heat][0] for run in runs]) for heat in ("0.0", "0.4", "0.8", "1.2")]
        assert half_a_unit(words[name], heats, 1)
    held_out, shuffled = (numbers(line)[-1] for line in printed("generator.by_temperature")[-2:])
    assert held_out > max(map(max, words.values())) > shuffled


def test_what_a_temperature_does_to_chances_and_a_cache_to_reading(printed):
    for line in printed("generator.chances")[1:]:
        heat, *chances = numbers(line)
        assert half_a_unit(chances, softmax([score / heat for score in (2, 1, 0)]), 2)
    same, cached, whole = printed("generator.with_and_without_a_cache")
    assert same == "same text: True"
    assert numbers(cached) == [4 + 60 - 1] and numbers(whole) == [sum(range(4, 4 + 60))]
    tokens, error = printed("generator.table_ends")
    assert numbers(tokens) == [3 + 6] and error == "ValueError: positions must be 0 to 7, got 8 to 8"


def test_tables_of_others_have_a_line_for_each(printed):
    rows = [line.split("|")[1:-1] for line in printed("choosing.models")[2:]]
    data = tomllib.loads((ROOT / "docs" / "guide" / "choosing.toml").read_text("utf-8"))["model"]
    named = {f'<a href="../../models/#{row["type"]}">{row["name"]}</a>': row.get("note", "") for row in data}
    told = {row[0].strip().partition("<br>")[0]: row[2].strip() for row in rows}
    assert told == named
    (smollm3,) = [row for row in rows if "SmolLM3" in row[0]]
    assert "no rotation (NoPE) in every 4th layer from layer 3 on" in smollm3[1]
    released = [row[0].rpartition("<br>")[2].strip() for row in rows]
    assert released == sorted(released)
    shipped = {line.split("|")[1].strip(): line for line in printed("licences.shipped")[2:]}
    assert version("mkdocs-material") in shipped["Styles, scripts"] and "MIT" in shipped["Styles, scripts"]
    assert len(shipped) == 9
    python = (ENGINE / "assets" / "micropython.wasm").read_bytes()
    (brought,) = set(re.findall(rb"MicroPython v([\d.]+)", python))
    assert f" MicroPython {brought.decode()} " in shipped["What runs changed code"]


def test_the_table_of_evidence_is_what_was_kept(printed):
    kept, right = load("language"), load("tasks")
    head, _, *rows = (line.strip("|").split("|") for line in printed("evidence.table"))
    words = [re.match(r"\[?(\w+)", cell.strip())[1] for cell in head]
    assert words == ["Encoding", "Within", "Past", "Far", "Recall", "Step", "Learned"]
    assert {row[0].strip() for row in rows} == set(kept)
    far = []
    for name, *cells, _, learned in ([cell.strip() for cell in row] for row in rows):
        wanted = [[np.mean(run["loss_by_context"][n]) for run in kept[name]] for n in ("64", "256", "1008")]
        if min(run["accuracy"]["recall"][0] for run in right[name]) < 0.99:
            assert cells.pop() == "[not learned](guide/evidence.md#evidence-tasks)"
        else:
            wanted.append([run["accuracy"]["recall"][-1] for run in right[name]])
        shown = [numbers(re.sub(r"\]\([^)]*\) ±", " ", cell.strip("["))) for cell in cells]
        assert half_a_unit(shown, [[np.mean(each), np.ptp(each) / 2] for each in wanted], 2), name
        assert numbers(learned) == [kept[name][0]["encoding_parameters"]]
        far.append(np.mean(wanted[2]))
    assert far == sorted(far)


def test_the_table_of_windows_has_what_was_kept_and_the_count_stands_below(printed):
    kept = load("variants")
    head, _, *rows, count = (line.strip("| ").split(" | ") for line in printed("evidence.windows"))
    assert head[1:] == ["Within", "32", "64", "128", "1,024"]
    assert [row[0] for row in rows] == ["none", "sinusoidal", "learned", "RoPE"]
    for name, *cells in rows:
        asked = [("1024", "64"), *((window, "1008") for window in ("32", "64", "128", "1024"))]
        for (window, before), cell in zip(asked, cells, strict=True):
            seeds = [np.mean(run["loss_by_context"][window][before]) for run in kept[f"{name} with a window"]]
            assert half_a_unit(numbers(cell.replace("±", " ")), [np.mean(seeds), np.ptp(seeds) / 2], 2)
    seeds = [np.mean(run["loss_by_context"]["5"]) for run in kept["5-gram"]]
    assert count[0] == "*5-gram*"
    assert half_a_unit(numbers(count[-1].replace("±", " ")), [np.mean(seeds), np.ptp(seeds) / 2], 2)


def test_the_table_of_both_ways_has_what_was_kept_and_the_gain_from_the_shortest_to_the_longest(printed):
    kept = load("variants")["ALiBi both ways"]
    head, _, *rows = (line.strip("| ").split(" | ") for line in printed("evidence.both_ways"))
    assert head[1:5] == ["128", "256", "512", "1,024"] and [row[0] for row in rows] == [
        "sliding",
        "adjacent",
    ]
    for way, *cells, gain in rows:
        stored = "side by side" if way == "adjacent" else way
        losses = np.array(
            [[run["loss_by_context"][stored][n] for n in ("128", "256", "512", "1024")] for run in kept]
        )
        assert half_a_unit([float(cell) for cell in cells], losses.mean((0, 2)), 3)
        gains = losses[:, 0] - losses[:, 3]  # (seeds, files)
        errors = [each.std(ddof=1) / len(each) ** 0.5 for each in (gains.mean(1), gains.mean(0))]
        half = math.hypot(*(quantile(n - 1) * e for n, e in zip(gains.shape, errors, strict=True)))
        told = [float(each) for each in re.findall(r"[-+]\d\.\d+", gain)]
        assert half_a_unit(told, [gains.mean(), gains.mean() - half, gains.mean() + half], 3)
