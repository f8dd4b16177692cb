"""Words of the chapter on stretching RoPE that rest on numbers."""

import math
import re

import pytest
import torch
from torch.testing import assert_close

from executable_prose import Live
from executable_prose.project import DOCS
from exhibits import long_context
from experiments import chains
from experiments.runs import load
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.rope_scaling import ntk_aware, yarn_attention_factor
from tests.peers import peer
from tests.rows import each_of

METHODS = ("unchanged", "interpolation", "ntk_aware", "by_parts", "yarn")


@pytest.fixture(scope="module", params=range(3), ids="start {}".format)
def heads(request):
    return long_context.two_heads(request.param)


@pytest.mark.claim(
    "near-and-far-heads-want-opposite-things",
    "Two heads of width 64 were trained on 1,024 tokens and evaluated on eight times as many, from each "
    "of three random starts. Unchanged frequencies are best for the head that attends to the last 16 "
    "tokens, and position interpolation is best for the head that attends past the last 32. If each "
    "method is judged by the worse of its two results, NTK-by-parts is best. 20 updates help all.",
)
def test_to_change_nothing_is_best_for_the_near_head_and_interpolation_for_the_far_one(heads):
    assert min(METHODS, key=lambda name: heads[f"{name}_near"]) == "unchanged"
    assert min(METHODS, key=lambda name: heads[f"{name}_far"]) == "interpolation"
    worse = {name: max(heads[f"{name}_near"], heads[f"{name}_far"]) for name in METHODS}
    assert min(worse, key=worse.get) == "by_parts"
    for name in METHODS:
        assert heads[f"{name}_near_tuned"] < heads[f"{name}_near"]
        assert heads[f"{name}_far_tuned"] < heads[f"{name}_far"]


def test_a_slow_hand_leaves_its_wedge_and_one_at_a_quarter_of_its_speed_leaves_it_later():
    _, values, live = long_context.wedge()
    practised = 4096 * 10_000 ** (-2 * 44 / 96)
    assert values["slower"] == 4 and values["degrees"] == pytest.approx(math.degrees(practised))
    for tenth in range(1, 61):
        made = live.function(torch.tensor(tenth / 10, dtype=torch.float64))
        assert made["as_it_is_out"] == (tenth > 10) and made["slowed_out"] == (tenth > 40)
        for name, angle in (("as it is", tenth * practised / 10), ("slowed", tenth * practised / 40)):
            hand = made[f"{name}, new" if made[f"{name.replace(' ', '_')}_out"] else f"{name}, known"]
            assert hand[1].tolist() == pytest.approx([0.9 * math.sin(angle), 0.9 * math.cos(angle)])


def test_slowing_all_hands_spoils_short_texts_and_slowing_the_slow_ones_does_not():
    _, chances = long_context.price()
    lost = {
        (name, end): [
            sum(run["excess_loss"][f"untuned {name}"][end]) / 48
            for run in load("extensions")["RoPE stretched"]
        ]
        for name in ("RoPE", "position interpolation", "YaRN")
        for end in ("128", "1024")
    }
    optimal = chains.band_means(chains.optimal_loss(chains.evaluation_texts()))
    best = {end: sum(each) / 48 for end, each in optimal.items()}
    for (name, end), seeds in lost.items():
        key = f"{name.lower().replace(' ', '_')}_{'within' if end == '128' else 'far'}"
        assert chances[key] == pytest.approx(math.exp(-best[end] - sum(seeds) / 3), abs=1e-5)
    for plain, slowed, spared in zip(
        lost["RoPE", "128"], lost["position interpolation", "128"], lost["YaRN", "128"], strict=True
    ):
        assert slowed > plain + 0.9 and abs(spared - plain) < 0.02
    for plain, slowed, spared in zip(
        lost["RoPE", "1024"], lost["position interpolation", "1024"], lost["YaRN", "1024"], strict=True
    ):
        assert spared < plain - 0.2 and slowed > plain


def test_yarn_is_far_from_interpolation_for_the_far_head_before_tuning(heads):
    assert heads["yarn_far"] > 2 * heads["interpolation_far"]


def test_unchanged_scores_leave_the_trained_range_on_both_sides_and_slowed_ones_hardly():
    _, scores = long_context.beyond()
    width = scores["highest_within"] - scores["lowest_within"]
    assert scores["lowest_outside"] < scores["lowest_within"] - 0.25 * width
    assert scores["highest_outside"] > scores["highest_within"] + 0.25 * width
    assert scores["lowest_slowed"] > scores["lowest_within"] - 0.05 * width
    assert scores["highest_slowed"] < scores["highest_within"] + 0.05 * width


def test_four_curves_meet_at_the_full_factor_and_the_searched_one_ends_above_it():
    _, values = long_context.factors()
    assert values["searched_most"] > values["factor"]


def test_the_live_figure_tells_what_each_method_costs_neighbours():
    live = next(part for part in long_context.unseen() if isinstance(part, Live))
    for times in (2.0, 4.0, 16.0):
        made = {
            method: live.function(times=torch.tensor(times, dtype=torch.float64), method=method)
            for method in live.controls["method"].options
        }
        kept = {method: (each["now"] / each["before"]).item() for method, each in made.items()}
        assert kept["unchanged"] == 1
        assert abs(kept["interpolation"] * times - 1) < 0.05
        assert kept["interpolation"] < kept["NTK-aware"] < 0.98
        assert min(kept[method] for method in ("by parts", "YaRN", "Llama 3")) > 0.99


def test_interpolation_makes_a_level_line_of_the_neighbourhood_and_yarn_does_not():
    _, near = long_context.neighbours()
    assert near["interpolation"] > 0.999
    assert abs(near["yarn"] - near["unchanged"]) < 0.001


# --- what papers and models are said to do


def test_every_line_of_what_is_reported_names_its_source():
    text = (DOCS / "guide" / "long-context.md").read_text(encoding="utf-8")
    table = text.partition("**Which methods need training?**")[2].partition("\n\n    Each line")[0]
    rows = [line for line in table.splitlines() if line.startswith("    | ")][1:]
    assert len(rows) == 9
    sources = r"bibliography\.md#|\bsame paper\b|\bPeng et al\.,"
    assert [row for row in rows if not re.search(sources, row)] == []


def rotary(kind, dim, base, **parameters):
    """The frequencies of transformers, and what it multiplies queries and keys by."""
    config = peer("transformers").LlamaConfig(
        hidden_size=dim,
        num_attention_heads=1,
        max_position_embeddings=4096,
        rope_parameters={"rope_type": kind, "rope_theta": base, **parameters},
    )
    return peer("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS[kind](config, "cpu")


@pytest.mark.claim(
    "mscale-takes-the-temperature-away",
    "In transformers, YaRN multiplies queries and keys by one if `mscale` and `mscale_all_dim` are set to "
    "equal values, and by 0.1 ln s + 1 if neither is set. The code of DeepSeek-V3 multiplies scores by "
    "the square of 0.1 `mscale_all_dim` ln s + 1.",
)
@each_of("factor", [4.0, 16.0, 40.0])
def test_equal_mscales_leave_no_temperature_but_in_the_code_of_deepseek(factor):
    yarn = {"factor": factor, "original_max_position_embeddings": 4096}
    assert rotary("yarn", 64, 1e4, **yarn)[1] == pytest.approx(yarn_attention_factor(factor))
    for scale in (0.5, 1.0):
        equal = {"mscale": scale, "mscale_all_dim": scale}
        assert rotary("yarn", 64, 1e4, **yarn, **equal)[1] == 1
    deepseek = peer("transformers.models.deepseek_v3.modeling_deepseek_v3")
    settings = {"rope_type": "yarn", **yarn, "mscale_all_dim": 1.0}
    assert deepseek.yarn_apply_mscale(settings, 1.0) == pytest.approx(yarn_attention_factor(factor) ** 2)


@pytest.mark.claim(
    "ministral3-has-no-yarn-temperature",
    "In transformers, the default configuration of gpt-oss uses YaRN with its temperature, and that of "
    "Ministral 3 uses YaRN without it.",
)
def test_the_models_said_to_use_yarn_use_it_so():
    transformers, values = peer("transformers"), long_context.mscale()
    init = peer("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS["yarn"]
    for model, name in (("GptOssConfig", "gpt_oss"), ("Ministral3Config", "ministral_3")):
        config = getattr(transformers, model)()
        assert config.rope_parameters["rope_type"] == "yarn"
        assert init(config, "cpu")[1] == pytest.approx(values[name])
    assert values["gpt_oss"] > 1.3 and values["ministral_3"] == 1
    assert config.rope_parameters["factor"] == values["factor"]
    assert values["in_deepseek_scores"] == values["times"]
    own = peer("transformers.models.ministral3.modeling_ministral3").get_llama_4_attn_scale
    beta, trained = 0.1, config.rope_parameters["original_max_position_embeddings"]
    assert config.rope_parameters["llama_4_scaling_beta"] == beta
    scale = own(torch.tensor([[0, trained - 1, trained, 3 * trained]]), beta, trained).flatten()
    assert_close(scale, 1 + beta * torch.tensor([1.0, 1, 2, 4]).log())


@pytest.mark.claim(
    "p-rope-agrees-with-transformers",
    "p-RoPE, which keeps a given fraction of RoPE's frequencies, the highest ones, and sets all others to "
    "zero, equals the rope type `proportional` of transformers within float32 precision, for heads 16 to "
    "512 wide and fractions from a tenth to one.",
)
@each_of("dim", [16, 64, 96, 128, 512])
@each_of("share", [0.1, 0.25, 0.5, 0.75, 1.0])
@each_of("base", [1e4, 1e6])
def test_p_rope_is_proportional(dim, share, base):
    theirs, factor = rotary("proportional", dim, base, partial_rotary_factor=share)
    assert factor == 1
    ours = long_context._p_rope(rope_frequencies(dim, base), share)
    assert_close(ours, theirs.double(), rtol=2e-6, atol=0)
    if share < 1:
        x = torch.randn(5, dim, dtype=torch.float64)
        turned = apply_rope(x, *rope_tables(torch.arange(5), ours, x.dtype), "half")
        still = torch.cat((ours, ours)) == 0
        assert torch.equal(turned[:, still], x[:, still])


def test_gemma_4_has_the_p_rope_that_the_page_says():
    config = peer("transformers.models.gemma4.configuration_gemma4").Gemma4TextConfig()
    whole = config.rope_parameters["full_attention"]
    assert whole == {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6}
    assert config.rope_parameters["sliding_attention"]["rope_type"] == "default"
    values = long_context.p_rope()
    assert config.per_layer_config["full_attention"].head_dim == values["dim"]
    assert (values["pairs"], values["turning"]) == (256, 64)


# --- a larger base


@pytest.mark.claim(
    "larger-base-is-ntk",
    "RoPE with a larger base b' in place of b is NTK-aware scaling by (b'/b)^((d-2)/d).",
)
@each_of("dim", [4, 64, 128, 512])
@each_of("raised", [50_000, 500_000, 1e6, 1e7])
def test_a_larger_base_is_ntk_aware_scaling(dim, raised):
    factor = (raised / 10_000) ** ((dim - 2) / dim)
    slowed = ntk_aware(rope_frequencies(dim, base=10_000), factor)
    assert_close(slowed, rope_frequencies(dim, raised), rtol=1e-12, atol=0)


@pytest.mark.claim(
    "base-bound-is-a-mean-score",
    "For queries and keys whose channels are independent and have the same distribution, the score of a "
    "key that is the query plus noise exceeds that of another key, on average, by twice the variance "
    "times the sum of the cosines of all pairs.",
)
@each_of("mean", [0.0, 1.5])
@each_of("distance", [0, 1, 7, 400])
def test_the_sum_of_cosines_is_the_mean_lead_of_a_similar_key(distance, mean):
    generator = torch.Generator().manual_seed(0)
    count, dim, spread = 50_000, 16, 0.7
    q, other, noise = (
        torch.randn(count, dim, generator=generator, dtype=torch.float64) * spread for _ in range(3)
    )
    q, other, w = q + mean, other + mean, rope_frequencies(dim, base=10000)
    at = torch.full((count,), distance)
    tables = rope_tables(at, w, torch.float64)
    similar, other = (apply_rope(k, *tables, "half") for k in (q + noise, other))
    lead = (q * (similar - other)).sum(-1)
    expected = 2 * spread**2 * (distance * w).cos().sum().item()
    assert abs(lead.mean() - expected) < 5 * lead.std() / math.sqrt(count)


def test_the_reach_is_where_the_sum_first_falls_below_zero():
    for dim, base in ((64, 1e4), (128, 1e4), (128, 5e5)):
        w = rope_frequencies(dim, base)
        reach = long_context._reach(w)
        sums = (torch.arange(reach + 2)[:, None] * w).cos().sum(-1)
        assert (sums[:-1] >= 0).all() and sums[-1] < 0


@each_of(
    ("lowest", "highest", "length"),
    [(4250, 4350, 1024), (15_500, 16_500, 2048), (26_500, 27_500, 4096), (83_500, 84_500, 8192)],
)
def test_the_bounds_of_the_paper_are_those_of_heads_of_width_128(lowest, highest, length):
    """Table 2 gives two digits: a base that rounds to them reaches the length."""
    found = torch.linspace(lowest, highest, 101).tolist()
    assert max(long_context._reach(rope_frequencies(128, base)) for base in found) >= length


def test_who_was_trained_on_more_than_the_bound_by_every_distance_and_by_the_papers_table():
    values = long_context.bases()
    beyond = {model for base, length, model, _ in long_context.RAISED if length > values[f"reach_{base}"]}
    least = long_context.LEAST_BASE
    listed = {m for base, length, m, _ in long_context.RAISED if base < least[length // 1024]}
    assert listed < beyond and (len(beyond), len(listed)) == (2, 1)
    assert (values["beyond"], values["beyond_by_table"]) == (2, 1)
    assert values["listed_reach"] < 1000 * values["listed_thousands"] == 32_000


@each_of(("given", "whole"), [({}, True), ({"truncate": True}, True), ({"truncate": False}, False)])
def test_truncate_rounds_the_ends_of_the_ramp_and_is_the_default(given, whole):
    assert peer("transformers").GptOssConfig().rope_parameters["truncate"] is False
    scaling = {"factor": 8.0, "original_max_position_embeddings": 4096}
    found, _ = rotary("yarn", 96, 1e4, **scaling, **given)
    kept = found.double() / long_context.rope_frequencies(96, base=1e4)
    share = (1 - kept) / (1 - 1 / 8)  # of the slowing
    first, second = share.gt(1e-4).nonzero()[:2, 0].tolist()
    start = first - share[first] / (share[second] - share[first])  # where the line crosses zero
    assert (abs(start - start.round()) < 0.01) == whole


def test_a_larger_base_does_not_always_reach_farther():
    values = long_context.bases()
    assert values["more"] == 1.01 * values["lucky"]
    assert values["lucky_reach"] > 1.3 * values["more_reach"]
    assert values["reach_10000"] < values["reach_500000"] < values["reach_1000000"]


def test_the_critical_dimension_is_that_of_the_paper():
    values = long_context.critical()
    assert values["channels"] == 2 * math.ceil(64 * math.log(4096 / (2 * math.pi), 1e4)) == 92
    assert values["bound"].item() == pytest.approx(2 * math.pi * 1e6 ** (92 / 128))


@pytest.mark.claim(
    "self-extend-stays-within-the-trained-length",
    "With groups of G tokens beyond a window of W, Self-Extend maps every distance from the last of n "
    "tokens to at most W + (n - W) / G, rounded up to a whole number. It keeps distances within the "
    "window unchanged and maps no distance below the mapped distance of a nearer token. For n = 16,000, W "
    "= 1,024 and G = 5, all mapped distances are below 4,096.",
)
@each_of(("window", "group"), [(1, 1), (8, 2), (12, 5), (1024, 5)])
@each_of("tokens", [1, 13, 100, 16_000])
def test_self_extend_asks_for_no_distance_beyond_its_bound(tokens, window, group):
    query, distance = tokens - 1, torch.arange(tokens)
    made = long_context._self_extend(distance, query, window, group)
    assert torch.equal(made[:window], distance[:window])
    assert (made.diff() >= 0).all()
    bound = window + math.ceil(max(tokens - window, 0) / group)
    assert made.max() <= bound
    assert long_context.reassigned()["most"] < 4096
