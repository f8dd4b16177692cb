"""What the chapter on positions that depend on what is read says of its exhibits, and of models."""

import math
import re
from collections import Counter
from pathlib import Path

import pytest
import torch

from exhibits import read
from snippets.check_positions import enliven, read_layers, small
from snippets.forgetting import forgetting_bias
from snippets.relative_logits import relative_logits
from tests.exhibits.common import numbers
from tests.peers import peer


def test_full_stops_count_sentences():
    values = read.cope_positions()[1]
    assert values["first_by_words"] == len(read.WORDS)
    assert (values["first_by_stops"], values["last_by_stops"]) == (2, 0)


def test_swapping_between_changes_nothing_and_replacing_does():
    values = read.between()
    assert values["swapped"] == pytest.approx(values["as_it_is"], abs=1e-5)
    assert abs(values["replaced"] - values["as_it_is"]) > 0.1


def test_gates_without_a_mask_leak():
    values = read.leak()
    assert values["right"] == 0
    assert values["wrong"] > 0.1


def test_the_bank_and_shaws_table_are_one_up_to_the_extent():
    values = read.shaw_in_a_bank()
    assert values["clip"] < values["extent"]
    assert values["within"] < 1e-6
    assert values["beyond"] > 0.1


def test_a_mix_is_what_its_sliders_say():
    _, values, live = read.mixed()
    assert values["one"] == pytest.approx(3 + 0.5 * math.exp(-0.5))
    made = live.function(*torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64))
    back = torch.arange(12.0)
    expected = (back == 1).float() - 2 * (-back / 2).exp() + 3 * back / 11
    assert made["bias"][:12, 1].float() == pytest.approx(expected, abs=1e-6)
    assert made["bias"][12:, 1].abs().max() == 0


def test_what_is_left_is_the_product_of_the_gates_after_a_word():
    _, values, live = read.by_gates()
    assert values["last"] == pytest.approx(0.2 * 0.95**3)
    assert values["first"] == pytest.approx(0.2**2 * 0.95**5)
    made = live.function(*torch.tensor([0.5, 1.0], dtype=torch.float64))
    assert made["gates"][:, 1].tolist() == [0.25, 0.25, 0.5, 0.5, 0.5, 1, 1, 1]


def test_gates_that_are_all_alike_are_alibi_and_the_decay_of_xpos():
    values = read.special_cases()
    assert values["FoX"] < 1e-12
    assert values["Wall"] < 1e-12
    assert values["PaTH"] < 1e-12


@pytest.mark.claim(
    "read-between-is-a-sum",
    "Two tokens between a query and a key that change places change neither FoX's bias nor Inkling's by more "
    "than rounding, for all pairs of places in a text of eight; a replaced one changes FoX's and not "
    "Inkling's.",
)
@pytest.mark.parametrize("seed", range(3))
def test_sums_do_not_know_the_order_of_what_they_sum(seed):
    torch.manual_seed(seed)
    tokens, dim = 8, 4
    x = torch.randn(tokens, dim, dtype=torch.float64)
    gate, bank = torch.randn(dim, dtype=torch.float64), torch.randn(dim, tokens, dtype=torch.float64)
    at = torch.arange(tokens)

    def first(x):
        bias = forgetting_bias((x @ gate).sigmoid().log(), dtype=torch.float64)
        return torch.stack((bias[-1, 0], relative_logits(x, bank, at, at)[-1, 0]))

    for one in range(1, tokens - 1):
        for other in range(one):
            if other:
                order = at.clone()
                order[[one, other]] = order[[other, one]]
                assert (first(x[order]) - first(x)).abs().max() < 1e-12
        replaced = x.clone()
        replaced[one] = torch.randn(dim, dtype=torch.float64)
        fox, inkling = (first(replaced) - first(x)).abs()
        assert fox > 1e-6 and inkling == 0


def test_the_table_of_what_lies_between_says_what_its_numbers_say():
    values = read.what_lies_between()
    assert values["inkling_replaced"] == 0 == values["inkling_swapped"]
    assert min(values["fox_replaced"], values["cope_replaced"]) > 1e-6
    assert min(values["path_replaced"], values["path_swapped"]) > 1e-6
    assert max(values["fox_swapped"], values["cope_swapped"]) < 1e-12


@pytest.mark.claim(
    "read-gated-recurrence-is-forgetting-without-softmax",
    "Attention without a softmax whose products of query and key are multiplied by exp of FoX's bias gives "
    "what a recurrence gives that shrinks one matrix by each gate and adds the outer product of key and "
    "value; in float64, for one to fifty tokens and gates from almost zero to one.",
)
@pytest.mark.parametrize("tokens", [1, 2, 50])
@pytest.mark.parametrize("least", [1e-9, 0.5, 1.0])
def test_a_gated_recurrence_is_forgetting_without_a_softmax(tokens, least):
    q, k, v = torch.randn(3, tokens, 5, dtype=torch.float64)
    gates = least + (1 - least) * torch.rand(tokens, dtype=torch.float64)
    state, steps = torch.zeros(5, 5, dtype=torch.float64), []
    for t in range(tokens):
        state = gates[t] * state + k[t, :, None] * v[t]
        steps.append((q[t, :, None] * state).sum(0))
    whole = (q @ k.T * forgetting_bias(gates.log(), dtype=torch.float64).exp()) @ v
    assert (torch.stack(steps) - whole).abs().max() < 1e-10
    assert read.recurrence()["apart"] < 1e-12


# --- what models in transformers do


@pytest.mark.claim(
    "read-hybrids-as-their-code-has-them",
    "The layers of each listed model type are those of its default configuration in the tested version of "
    "transformers. In a small random model made of it, the queries of all attention layers turn with the "
    "position, or none of them does, as the list says.",
)
@pytest.mark.parametrize("name", read.HYBRIDS)
def test_hybrids_are_as_their_code_has_them(name):
    transformers = peer("transformers")
    assert transformers.__version__ == "5.23.0", "look at the sentence again"
    config = transformers.AutoConfig.for_model(name)
    kinds = Counter(kind == "linear_attention" for kind in config.layer_types)
    recurrent, attention, turns = read.HYBRIDS[name]
    assert (kinds[True], kinds[False]) == (recurrent, attention)
    model = transformers.AutoModelForCausalLM.from_config(small(config)).eval()
    enliven(model)
    layers = read_layers(model, lambda token: model(torch.full((1, 40), token)))
    assert {layer.kind for layer in layers} == {"turns" if turns else "still"}


def test_the_table_of_hybrids_counts_those_that_do_not_turn():
    assert read.hybrids() == {"models": 6, "bare": 2}


@pytest.mark.claim(
    "read-not-in-transformers",
    "No modeling file of the tested version of transformers names contextual position encoding, forgetting "
    "attention, Householder transformations, context-aware or selective rotary embeddings.",
)
def test_what_did_not_cross_over_is_in_no_modeling_file():
    transformers = peer("transformers")
    assert transformers.__version__ == "5.23.0", "look at the sentence again"
    names = ("contextual.position", r"\bcope\b", "forgetting", "householder", "carope")
    words = "|".join([*names, "context.aware.rotary", "selective.rope", "selective.rotary"])
    files = list(Path(transformers.__file__).parent.glob("models/*/modeling_*.py"))
    assert len(files) > 400
    assert [file.name for file in files if re.search(words, file.read_text("utf-8"), re.I)] == []


@pytest.mark.claim(
    "summaries-stand-where-their-windows-begin",
    "In DeepSeek V4 of transformers 5.23.0 the weighted mean of each full window of 4 or 128 tokens is "
    "turned as at the first place of that window, with a larger base, and a query sees it if no token of "
    "the window is later.",
)
@pytest.mark.parametrize("kind", ["CSA", "HCA"])
@pytest.mark.parametrize("tokens", [4, 14, 130, 300])
@torch.no_grad()
def test_deepseek_v4_puts_a_summary_at_the_first_token_of_its_window(kind, tokens):
    folder = "transformers.models.deepseek_v4"
    modeling = peer(f"{folder}.modeling_deepseek_v4")
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "head_dim": 16, "q_lora_rank": 16}
    sizes |= {"partial_rotary_factor": 0.5, "index_n_heads": 2, "index_head_dim": 16}
    config = peer(f"{folder}.configuration_deepseek_v4").DeepseekV4Config(**sizes)
    shown = read.summaries()
    assert {shown["rate"], shown["wide"]} == set(config.compress_rates.values())
    assert config.compress_rope_theta > config.rope_theta
    compressor = getattr(modeling, f"DeepseekV4{kind}Compressor")(config).eval()
    for parameter in compressor.parameters():
        torch.nn.init.normal_(parameter)
    rate, turned, seen = compressor.compress_rate, [], compressor.rotary_emb.forward

    def watched(x, position_ids, layer_type):
        turned.append((layer_type, position_ids[0]))
        return seen(x, position_ids, layer_type=layer_type)

    compressor.rotary_emb.forward = watched
    at = torch.arange(tokens)[None]
    entries, bias = compressor(torch.randn(1, tokens, 32), torch.randn(1, tokens, 16), at, None, 0)
    windows = tokens // rate
    assert entries.shape[2] == windows
    if windows:
        ((label, places),) = turned
        assert label == "compress" and places.tolist() == [rate * window for window in range(windows)]
        last = rate * torch.arange(windows) + rate - 1
        assert torch.equal(bias[0, 0] == 0, last <= at[0, :, None])


def test_what_the_page_says_of_summaries(printed):
    rows = [numbers(line) for line in printed("read.summaries")[1:]]
    assert [row[0] for row in rows] == [0, 4, 8]  # that of 12 to 15 is not there yet
    for first, last, place, near, far, back in rows:
        assert (place, back) == (first, 13 - first) and (near, far) == (13 - last, 13 - first)
