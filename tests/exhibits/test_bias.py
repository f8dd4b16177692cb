"""What the chapter on penalties on scores says of its exhibits in words."""

import math

import pytest
import torch

from exhibits import bias
from snippets.alibi import alibi_bias, alibi_slopes
from tests.peers import peer
from tests.rows import each_of


def test_the_penalty_takes_the_first_place_from_a_far_word():
    values = bias.by_hand()
    assert values["before"] > 0.4 > values["after"]
    assert values["slope"] == 0.5


def test_better_ears_hear_farther_and_the_nearest_is_always_loudest():
    _, values, live = bias.ears()
    assert values["words"] == 60
    for ears in range(1, 9):
        made = live.function(torch.tensor(ears).double())
        loud = [math.exp(-(2**-ears) * steps) for steps in range(60)]  # of ALiBi's eight slopes
        assert made["up"].tolist() == pytest.approx(loud[-2::-1], rel=1e-5)
        assert made["heard"] == sum(each >= 0.1 for each in loud)
        assert made["lost"] == (loud[-1] < 0.1) == (ears < 5)


def test_the_far_end_of_a_long_hall_is_lost_on_all_and_length_costs_nothing():
    _, values = bias.out_of_earshot()
    assert values["most"] == bias.mass_by_distance()[1]["gentlest"] < values["words"] / 5
    assert abs(values["near"] - values["far"]) < 0.005


def test_two_early_queries_read_the_same_and_a_late_one_less():
    values = bias.fire_two_queries()[1]
    assert values["near"] == values["nearer"] > values["far"]


def test_alibi_has_a_window_where_the_logarithm_has_none():
    values = bias.window()[1]
    assert values["alibi"] == values["alibi_early"]
    assert values["log"] > 4 * values["log_early"]
    assert values["sandwich_first"] < 10


def test_sandwich_is_higher_far_out_than_where_its_logarithm_ends():
    values = bias.sandwich_octaves()[1]
    assert values["end"] == values["near"] == 4096
    row = bias.sandwich_bias(torch.tensor([0]), torch.arange(4096), 8)[0, 0].double()
    means = torch.stack([row[2**n : 2 ** (n + 1)].mean() for n in range(12)])
    assert values["begin"] == 2**3
    assert torch.allclose(-means[3:].diff(), values["drop"], atol=0.25)
    assert (-means[:3].diff() > values["drop"] + 2).all()  # the first doublings take more
    assert values["lowest"] < values["after"]
    assert values["to"] < values["slowest"] / 2
    assert values["at_near"] < 0 < values["at_far"]


def test_each_head_of_alibi_reaches_twice_as_far():
    values = bias.mass_by_distance()[1]
    assert values["gentlest"].item() == pytest.approx(2**7 * values["steepest"].item(), rel=0.05)


def test_far_keys_have_it_harder_than_without_a_bias():
    values = bias.lead_needed()[1]
    assert values["none"] < values["log"] < values["alibi"] < values["steep"]


def test_most_of_the_attention_leaks_without_the_mask():
    assert bias.without_the_mask()["leak"] > 0.8


def test_the_key_only_form_misplaces_far_more():
    values = bias.key_only()
    assert values["by_key"] > 10 * values["by_distance"]


def test_the_least_eigenvalues_are_those_of_the_kernels_and_of_weights_that_sum_to_zero(capsys):
    bias.kernels()
    rows = [line.split()[-3:] for line in capsys.readouterr().out.splitlines()[1:]]
    shown = torch.tensor([[float(cell) for cell in row] for row in rows], dtype=torch.float64)
    distance = (torch.arange(50)[:, None] - torch.arange(50)).abs().double()
    steps = torch.eye(50, dtype=torch.float64).diff(
        dim=0
    )  # weights -1 and 1 on neighbours span those in question
    root = torch.linalg.cholesky(steps @ steps.mT).inverse() @ steps
    for n, kernel in enumerate((-distance.log1p(), -(distance**2), -(distance**3))):
        least = [torch.linalg.eigvalsh(k)[0] for k in (kernel, kernel + 1e6, root @ kernel @ root.mT)]
        tolerance = (0.005, 0.05, 0.5)[n] + 1e-6
        assert ((shown[:, n] - torch.stack(least)).abs() <= tolerance).all()
    log, square, cube = shown[-1]
    assert log > 0.1 and square == 0 > cube  # strictly positive, not strictly, and not at all
    assert shown[1, 0] == log and shown[1, 1] < -1


def test_the_released_slopes_are_steeper_at_the_top_and_share_some_with_the_formula():
    values = bias.slopes()[1]
    assert values["steepest_released"] > values["steepest_formula"]
    assert 0 < values["common"] < values["heads"]


@pytest.mark.claim(
    "falcon-divides-alibi-and-eager-doubles-it",
    "With `alibi` set, Falcon in transformers 5.23.0 does not rotate and computes slope * j in bfloat16, "
    "even for a float32 model. With sdpa it adds this bias divided by the square root of the head's "
    "width, and with eager twice that.",
)
@each_of(("attention", "times"), [("sdpa", 1), ("eager", 2)])
@each_of(("heads", "width"), [(4, 8), (8, 16)])
def test_falcon_has_alibi_rounded_and_divided_and_eager_has_it_twice(heads, width, attention, times):
    falcon = peer("transformers.models.falcon.modeling_falcon")
    made = falcon.build_alibi_tensor(torch.ones(1, 600, dtype=torch.int64), heads, torch.float32)[:, 0]
    exact = alibi_slopes(heads)[:, None] * torch.arange(600)
    assert torch.equal(made, exact.bfloat16().float())
    assert not torch.equal(made, exact)
    config = falcon.FalconConfig(
        alibi=True,
        num_hidden_layers=1,
        hidden_size=heads * width,
        num_attention_heads=heads,
        vocab_size=99,
        attn_implementation=attention,
    )
    assert not config.rotary
    model = falcon.FalconModel(config).eval()
    query, _, value = model.h[0].self_attention.query_key_value.weight.data.split(
        [heads * width, width, width]
    )
    torch.nn.init.zeros_(query)  # so that the weights are those of the bias alone
    torch.nn.init.normal_(value)
    entered = {}
    model.h[0].self_attention.register_forward_hook(
        lambda layer, _, given, made: entered.update(x=given, made=made[0]), with_kwargs=True
    )
    model.h[0].input_layernorm.register_forward_hook(lambda *run: entered.update(normed=run[2]))
    model(torch.arange(30)[None])
    values = entered["normed"] @ value.T
    bias = alibi_bias(torch.arange(30), torch.arange(30), alibi_slopes(heads))
    for count in (1, 2):
        weights = (count * bias / math.sqrt(width)).softmax(-1)
        expected = model.h[0].self_attention.dense((weights @ values[:, None]).transpose(1, 2).flatten(2))
        assert ((entered["made"] - expected).abs().max() < 1e-4) == (count == times)
