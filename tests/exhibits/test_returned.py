"""What exhibits return and pages weave into sentences, known otherwise; what chapters' own tests leave."""

import itertools
import math

import numpy as np
import pytest

from experiments.runs import load, made_with
from tests.exhibits.common import APART, ROUNDING, likeness, speeds, waves


def near(*expected, rel=1e-3):
    return pytest.approx(expected[0] if len(expected) == 1 else list(expected), rel=rel)


def margin(rows):
    """The distance of the nearest two rows, by the root mean square distance of all pairs."""
    rows = np.asarray(rows)
    apart = np.array([np.sum((a - b) ** 2) for a, b in itertools.combinations(rows, 2)])
    return math.sqrt(apart.min() / apart.mean())


# Order, and distances


def test_a_layer_with_random_weights_reads_orders(returned):
    maps = returned("order.attention_maps")
    assert abs(maps["without_here"] - maps["without_there"]) < 1e-6, "in float32"
    assert abs(maps["with_here"] - maps["with_there"]) > APART
    depth = returned("order.causal_depth")
    assert max(depth["one_layer"], depth["no_mask"]) < ROUNDING and depth["two_layers"] > APART


def test_distances_of_few_tokens_are_few(returned):
    assert returned("relative.distances") == {"distinct": 2 * 6 - 1, "tokens": 6}
    assert returned("relative.identical_tokens") == {"tokens": 8, "even": 1 / 8, "least": 1 / 8}
    assert returned("relative.shift_trick") == {"queries": 4}
    assert returned("relative.clipped_similarity")["clip"] == 8


def test_four_terms_are_the_score_and_the_shift_makes_one_step_back_one_number(returned):
    assert returned("relative.term_maps")["error"] < 1e-4
    values = returned("relative.without_the_shift")
    steps = [sum(row) for row in waves(range(6), 16)]
    assert (values["shifted_least"], values["shifted_most"]) == (near(steps[1]), near(steps[1]))
    assert (values["least"], values["most"]) == (near(min(steps[:-1])), near(max(steps[:-1])))


def test_where_buckets_begin(returned):
    def bucket(distance, own, longest):
        further = math.log(distance / own) / math.log(longest / own) * own if distance >= own else 0
        return min(distance if distance < own else own + int(further), 2 * own - 1)

    t5 = returned("relative.t5_steps")
    for own, start, alone in ((16, t5["back"], t5["own_back"]), (8, t5["both"], t5["own_both"])):
        buckets = [bucket(distance, own, t5["most"]) for distance in range(300)]
        assert buckets.index(max(buckets)) == start and alone == own
        assert next(n for n in range(300) if buckets.count(buckets[n]) > 1) == alone
    assert t5["unused"] == t5["buckets"] // 2

    deberta = returned("relative.deberta_steps")
    middle, most = deberta["span"] // 2, deberta["most"]
    rows = [
        d
        if d <= middle
        else middle + math.ceil(math.log(d / middle) / math.log((most - 1) / middle) * (middle - 1))
        for d in range(most)
    ]
    assert deberta["last"] == rows[-1] and deberta["start"] == rows.index(rows[-1])
    assert deberta["own"] == next(d for d in range(most) if rows.count(rows[d]) > 1) - 1


def test_the_taught_row_is_the_only_one_that_lifts_a_score(returned):
    values = returned("relative.rows_by_distance")
    assert values["right"] == 1 and values["others"] < 0 < values["wanted"]
    assert values["opposite"] < 0 < values["alike"]


# Sinusoids and rotations


def test_what_the_speeds_of_hands_say(returned):
    spectrum, lengths = returned("sinusoidal.spectrum"), [2 * math.pi / w for w in speeds(512)]
    assert (spectrum["pairs"], spectrum["longer"]) == (256, sum(each > 512 for each in lengths))
    assert spectrum["longest"] == near(lengths[-1]) and spectrum["ratio"] == near(10_000 ** (1 / 256))
    assert spectrum["printed_end"] == near(10_000 * 2 * math.pi)
    assert returned("sinusoidal.walk") == {"base": 100, "hands": 4}
    rises = [d for d in range(1, 100) if likeness(d, 128) > likeness(d - 1, 128)]
    assert returned("sinusoidal.similarity_to_one")["first_rise"] == rises[0]
    assert returned("bias.families") == {"slope": 2**-6, "first_rise": rises[0]}


def test_steps_are_as_long_and_turn(returned):
    values = returned("sinusoidal.steps")
    here, there = (values["offset"], 0), (values["end"], values["start"])
    steps = [np.subtract(*waves(pair, values["dim"])) for pair in (here, there)]
    assert [values["length"], values["other_length"]] == near(*map(np.linalg.norm, steps))
    assert values["cosine"] == near(steps[0] @ steps[1] / np.prod([np.linalg.norm(step) for step in steps]))
    assert returned("sinusoidal.similarity_matrix") == {"dim": values["dim"]}
    sums = returned("sinusoidal.not_additive")
    three, seven, ten = np.array(waves((3, 7, 10), 128))
    assert sums["gap"] == near(np.linalg.norm(three + seven - ten)) and sums["norm"] == near(8.0)


def test_the_nearest_look_alike_is_the_neighbour_with_many_hands_and_a_far_one_with_one(returned):
    values, places = returned("sinusoidal.margins"), np.arange(1, 200_000)
    assert values["count"] == len(places) + 1
    gaps = np.sqrt(sum(2 - 2 * np.cos(places * w) for w in speeds(64)) / 32)
    assert gaps.argmin() == 0 and values["wide_gap"] == near(gaps[0])
    one = 2 * np.abs(np.sin(places[:1000] / 2))
    assert values["twin"] == places[one.argmin()] and values["gap"] == near(one.min())


def test_two_coordinates_make_a_cross_or_a_spot(returned):
    values = returned("sinusoidal.two_coordinates")
    straight, down, across = (likeness(values[side], 64) / 32 for side in ("straight", "down", "across"))
    assert values["apart_straight"] == near((1 + straight) / 2)
    assert values["apart_slanted"] == near((down + across) / 2)
    bell = math.exp(-(values["straight"] ** 2) / (2 * values["gamma"] ** 2))
    assert [values["together_straight"], values["together_slanted"]] == pytest.approx([bell, bell], abs=0.03)


def test_a_fresh_table_is_small_beside_sinusoids_and_a_trained_head_keeps_to_its_range(returned):
    values = returned("sinusoidal.beside_learned")
    assert values["ratio"] == near(0.5**0.5 / values["deviation"], rel=0.05)
    head = returned("sinusoidal.beyond_training")
    assert head["lowest_outside"] < head["outside"] < head["inside"] and head["written"] > 0.99
    assert head["inside"] > 0.9 and head["heads"] == 3


def test_the_bound_on_scores_goes_with_the_partial_sums_at_all_distances(returned):
    values = returned("rope.decay")
    turns = np.exp(1j * np.arange(1, values["far"] + 1)[:, None] * np.array(speeds(values["dim"])))
    sums = np.abs(turns.cumsum(1)).sum(1)
    assert values["loosest"] / values["tightest"] == near(sums.max() / sums.min())
    assert values["tightest"] > 1


# Learned tables, and biases


def test_what_the_table_of_weather_has_learned(returned):
    start = returned("learned.before_and_after")
    assert start["growth"] > 10 and returned("learned.looked_up")["last"] == start["days"] - 1
    likeness_ = returned("learned.similarity")
    assert (
        abs(likeness_["fresh_near"]) < 0.1 and likeness_["trained_near"] > 0.95 > likeness_["sinusoidal_near"]
    )
    assert returned("learned.directions")["share"] > 0.95
    rare = returned("learned.rarely_trained")
    assert rare["never"] > 0 == rare["never_moved"] and rare["never_size"] < 0.1 < 1 < rare["always_size"]
    assert rare["right_never"] < rare["right_seldom"] - 0.1 and rare["right_seldom"] < rare["right_used"]


def test_past_the_end_only_a_stretched_table_guesses_well(returned):
    values = returned("learned.clamped")
    inside, beyond = (
        {w: values[f"{w}_{side}"] for w in ("stretched", "fresh", "clamped", "wrapped")}
        for side in ("inside", "beyond")
    )
    assert values["untouched"] == pytest.approx(0.9, abs=0.01)
    assert inside["fresh"] == pytest.approx(values["untouched"], abs=0.01)
    assert beyond["fresh"] == pytest.approx(values["blind"], abs=0.02)
    assert beyond["stretched"] > values["untouched"] - 0.02
    assert (
        values["blind"] < beyond["clamped"] < values["blind"] + 0.1
        and inside["clamped"] < values["untouched"] - 0.02
    )
    assert inside["wrapped"] == min(inside.values()) < values["blind"]


def test_slopes_and_tokens_that_see_little(returned):
    heads = returned("bias.alibi_heads")
    assert (heads["steepest"], heads["gentlest"]) == (-15 / 2, -15 / 2**8)
    early = returned("bias.early_tokens")
    for length, share in ((early["short"], early["in_short"]), (early["long"], early["in_long"])):
        assert share == sum(seen <= early["context"] for seen in range(1, length + 1)) / length


# The whole Transformer, and its mistakes


def test_positions_beside_words(returned):
    loudness, tied = returned("in_a_transformer.loudness"), returned("in_a_transformer.tied_weights")
    for key, deviation in (("small", 0.02), ("one", 1), ("large", 512**0.5), ("first", 1)):
        assert loudness[key] == near(256 / (256 + 512 * deviation**2), rel=0.01)
    assert tied["lost"] < 0.05 and tied["kept"] == 1
    told = returned("in_a_transformer.dropout")
    assert told["narrow"] < told["middle"] and told["middle_half"] < told["wide_half"]
    assert told["middle_half"] < told["middle"] and (told["usual"], told["half"]) == near(0.1, 0.5)


def test_one_layer_without_positions_answers_all_orders_alike(returned):
    values = returned("in_a_transformer.three_orders")
    assert 1 / 3 - 0.01 < values["without_least"] <= values["without_most"] < 1 / 3 + 0.01
    assert min(values["with_rope"], values["without_two_layers"]) > 0.99
    hits = returned("in_a_transformer.mistakes")
    added, silent = (
        2,
        3,
    )  # those added to the input; none, Transformer-XL and CoPE read no position of the new token
    assert (hits["padding_hits"], hits["packing_hits"]) == (added, added)
    assert (hits["next_hits"], hits["one_text_hits"]) == (hits["encodings"] - silent, hits["encodings"])
    assert returned("in_a_transformer.next_token") == {"seats": 8}
    assert returned("no_position.layer_plans") == {"every": 4}


def test_turns_round_and_small_ones_are_lost(returned):
    """By the rounding of normal numbers, and the deviation of a number anywhere in a step: its root of 12."""
    values = returned("in_a_transformer.turned_again")
    turns, twice = values["turns"], math.sqrt(2)  # rounded when cached, and after one turn
    assert values["once"] == near(twice * 2**-7 / math.sqrt(12) / 1.4, rel=0.1)
    largest = 2.36  # of 32 normal numbers, on average
    assert values["four"] == near(twice * largest / 7 / math.sqrt(12), rel=0.05)
    assert values["by_one"] > 30 * values["once"] and turns == 256
    lost = [min(1, turns * 10000 ** (-pair / 32)) for pair in range(25, 32)]  # in full
    assert values["by_one"] > math.sqrt(sum(angle**2 for angle in lost) / 32) / 2
    assert math.sqrt(turns) / 2 * values["once"] < values["by_many"] < values["by_one"] / 2
    assert values["by_many"] < values["eight"] < values["by_one"]


def test_checks_find_what_was_broken(returned):
    shifted, rows = returned("debugging.shifted_by_hand"), returned("debugging.rows_alike")
    assert shifted["RoPE"] < ROUNDING and shifted["table"] > 0.5
    assert rows["clamped"] == 0 < rows["ramp"] < rows["sinusoids"] < rows["random"]
    assert rows["sinusoids"] == near(margin(waves(range(48), 64)))
    far = returned("debugging.far_shifts")
    assert max(far["exact"], far["exact_at_128"], far["rounded_positions_at_128"]) < 1e-6
    assert far["rounded_angles_at_128"] > APART and min(far["rounded_angles"], far["rounded_positions"]) > 0.5
    one = returned("debugging.decoding")
    assert one["right"] < ROUNDING < APART < one["lowest_restarted"] < one["restarted"]
    assert one["restarted"] < one["lowest_no_offset"] < one["no_offset"]


def test_squared_speeds_stand_still_and_pass_other_checks(returned):
    values = returned("debugging.wrong_speeds")
    assert values["pairs"] == 32 and values["still_right"] == sum(512 * w < 0.01 for w in speeds(64))
    assert values["still"] == sum(512 * w**2 < 0.01 for w in speeds(64))
    assert values["margin"] > values["margin_right"] and values["gap"] > 0.5


def test_where_a_bias_looks(returned):
    values, places = returned("debugging.who_looks_where"), np.arange(32)
    distances = np.abs(places[:, None] - places)
    both = np.exp(-distances / 4)
    both /= both.sum(1, keepdims=True)
    assert values["mask_ahead"] == near(np.triu(both, 1).sum() / 32)
    assert values["right_ahead"] == values["sign_ahead"] == 0
    even = np.tril(np.ones((32, 32)))
    for word, sign in (("right", -1), ("sign", 1)):
        weights = np.tril(np.exp(sign * distances / 4.0))
        seen = [(w / w.sum(1, keepdims=True))[distances < values["near"]].sum() for w in (weights, even)]
        assert values[f"{word}_near"] == near(seen[0] / seen[1])


def test_skill_beyond_the_table(returned):
    values = returned("debugging.beyond")
    assert values["best_clamped"] < 0 < values["worst_again"] < values["best_again"] < 0.9
    assert values["worst_offset"] == near(1.0)


# Stretched RoPE


def test_the_paper_and_the_code_slow_a_pair_on_the_ramp(returned):
    values = returned("long_context.ramp")
    turns = [values["trained"] * w / (2 * math.pi) for w in speeds(values["dim"])]

    def slowed(kept):
        kept = min(max(kept, 0), 1)
        return 1 / (kept + (1 - kept) / values["factor"])

    ends = [
        values["dim"] * math.log(values["trained"] / (t * 2 * math.pi)) / (2 * math.log(10_000))
        for t in (32, 1)
    ]
    low, high = math.floor(ends[0]), math.ceil(ends[1])
    paper = [slowed((t - 1) / (32 - 1)) for t in turns]
    code = [slowed(1 - (pair - low) / (high - low)) for pair in range(len(turns))]
    apart = np.divide(paper, code)
    assert values["pair"] == apart.argmax() and values["apart"] == near(apart.max())
    pair = values["pair"]
    assert [values["turns"], values["paper"], values["code"]] == near(turns[pair], paper[pair], code[pair])


def test_factors_by_their_formulas(returned):
    dynamic = returned("long_context.dynamic")
    assert dynamic["times"] == 8 and [dynamic["paper"], dynamic["paper_far"]] == near(2, 8)
    assert [dynamic["code"], dynamic["code_far"]] == near(2 * 2 - 1, 2 * 8 - 1)
    heat = returned("long_context.temperature")
    assert heat["yarn"] == near((0.1 * math.log(32) + 1) ** 2)
    assert heat["longrope"] == near(1 + math.log(32) / math.log(4096))
    fade = returned("long_context.xpos_scale")
    assert [fade["first"], fade["last"]] == near(0.4 / 1.4, (62 / 64 + 0.4) / 1.4)
    assert fade["growth"] == near(1 / fade["first"]) and fade["base"] == 512
    assert returned("long_context.unseen") == {"pairs": 48}
    assert returned("long_context.ramp_ends") == {"dim": 128, "factor": 16, "trained": 4096}


# Trained models: what is woven is what was kept


def test_what_generators_kept(returned):
    kept, made = load("generator"), returned("generator.made")
    assert made["runs"] == sum(map(len, kept.values())) and made["methods"] == len(kept)
    assert made["seen"] == near(made["updates"] * made["windows"] * made["trained"] / 1e6)
    assert {run["parameters"] for name, runs in kept.items() if name != "learned" for run in runs} == {
        made["parameters"]
    }
    losses = {
        name.lower(): np.array([run["loss_by_position"] for run in runs]) for name, runs in kept.items()
    }
    curves = returned("generator.by_position")
    for name, loss in losses.items():
        assert curves[f"{name}_trained"] == near(loss[:, :8].mean())
        assert curves[f"{name}_end"] == near(loss[:, -8:].mean())
    behind = (losses["rope"] >= losses["alibi"])[:, 8:].any(0)  # in some seed
    assert curves["lead"] == 16 * behind.argmax()
    ends = np.mean([run["ends"] for run in kept["RoPE"]], 0)
    given = returned("generator.ends")
    assert [given["at"], given["before"], given["ratio"]] == near(*ends, ends[0] / ends[1])
    words = returned("generator.beyond")
    for name, runs in kept.items():
        found = np.mean([run["words"]["0.8"] for run in runs], 0)
        assert [words[f"{name.lower()}_first"], words[f"{name.lower()}_last"]] == near(found[0], found[-1])


def test_what_translators_kept(returned):
    kept, notes = load("translator"), made_with("translator")
    found, blind = returned("applications.exact_match"), ("none", "RoPE in the decoder only")
    seen = [run["exact"] for name, runs in kept.items() for run in runs if name not in blind]
    unseen = [run["exact"] for name in blind for run in kept[name]]
    assert (found["lowest_with"], found["highest_without"]) == (min(seen), max(unseen))
    assert found["methods"] == len(kept) and found["none"] == near(
        np.mean([run["exact"] for run in kept["none"]])
    )
    mirrored = returned("applications.mirrored")
    assert mirrored["alibi"] == max(run["mirrored"] for run in kept["ALiBi"])
    assert mirrored["others"] == min(
        run["mirrored"] for name, runs in kept.items() if name not in (*blind, "ALiBi") for run in runs
    )
    how = returned("applications.how_it_was_made")
    assert how["runs"] == len(notes) == sum(map(len, kept.values())) and how["dates"] == 36_525
    assert how["drawn"] == how["updates"] * how["batch"] and how["seconds"] == np.median(
        [n["seconds"] for n in notes]
    )
    assert {how["torch"], how["python"], how["babel"]} == {
        notes[0][key] for key in ("torch", "python", "babel")
    }


def test_what_a_nat_is_and_a_point_is_the_mean_of(returned):
    nats = returned("evidence.nats")
    assert [math.exp(-nats["sure"]), math.exp(-nats["doubt"])] == near(nats["high"], nats["low"])
    assert returned("evidence.by_position") == {"smoothed": 4 * 16}
