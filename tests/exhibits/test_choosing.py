"""What the page on choosing says of methods and of models, held against what they are."""

import importlib.util
import re
import tomllib
from datetime import date
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import torch

from exhibits import choosing
from exhibits._models import listed, said
from experiments.runs import load
from snippets.fire import FireBias
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.rope_scaling import dynamic_ntk, longrope
from snippets.xpos import apply_xpos, xpos_tables
from tests.peers import peer
from tests.rows import each_of

ROOT = Path(__file__).parents[2]
DATA = tomllib.loads((ROOT / "docs" / "guide" / "choosing.toml").read_text(encoding="utf-8"))
KINDS = ["added", "bias or score", "rotation", "rotation, some layers", "none"]


@pytest.fixture(scope="module")
def library():
    """The folder of the installed transformers, whose models are read and not imported."""
    spec = importlib.util.find_spec("transformers")
    assert spec is not None, "transformers is not installed, and this table is about its code"
    return Path(spec.origin).parent


@pytest.fixture
def families():
    figure, values = choosing.families_by_year()
    yield values
    plt.close(figure)


MODELS = listed()


def dates(kind):
    return sorted(model["released"] for model in MODELS if model["kind"] == kind)


@pytest.mark.claim(
    "model-table-matches-code",
    "Each row of the table of models was measured in the pinned version of transformers, none of its "
    "facts is disputed, and the code behind each note is present in that version.",
)
@each_of("model", MODELS, ids=lambda model: model["name"])
def test_a_model_does_what_its_line_says(model, library):
    row = model["row"]
    assert row.measured and row.value("attention") == "yes"
    assert "disputed" not in [fact["value"] for fact in row.facts.values()]
    asked = ("rotation", "added", "biased", "in_score")
    assert "unknown" not in [row.value(name) for name in asked]
    if "note" in model:
        assert model["evidence"] in (library / model["file"]).read_text(encoding="utf-8")


def test_the_line_of_a_model_is_whole_and_short():
    for model in DATA["model"]:
        keys = set(model) - {"name", "type", "released"}
        assert keys in (set(), {"note", "file", "evidence"}), model["name"]
        assert len(model.get("note", "")) <= 60 and "|" not in model.get("note", ""), model["name"]
    for model in MODELS:
        assert model["kind"] in KINDS, model["name"]
        assert date.fromisoformat(model["released"]).isoformat() == model["released"]
    assert len({model["name"] for model in MODELS}) == len(DATA["model"])


def test_kimi_linear_has_no_function_that_rotates(library):
    (model,) = [model for model in DATA["model"] if model["name"] == "Kimi Linear"]
    code = (library / model["file"]).read_text(encoding="utf-8")
    assert not any(word in code for word in ("rotary", "rotate", "sinusoid", "cos"))


def test_what_configurations_say_that_the_table_words(library):
    """Shares, periods and switches, where the line's evidence is in other code than the number."""

    def said(model, *lines):
        path = library / "models" / model / f"configuration_{model}.py"
        code = path.read_text(encoding="utf-8")
        return all(line in code for line in lines)

    assert said("gptj", "n_embd: int = 4096", "n_head: int = 16", f"rotary_dim: int = {4096 // 16 // 4}\n")
    assert said("deberta_v2", "relative_attention: bool = False\n", "position_biased_input: bool = True\n")
    assert said("deepseek_v3", "qk_rope_head_dim: int = 64\n", "qk_nope_head_dim: int = 128\n")
    assert said("falcon", "alibi: bool | None = False")
    assert said("mistral", "sliding_window: int | None = 4096")
    for model in ("llama4", "smollm3"):
        assert said(model, "no_rope_layer_interval: int = 4\n", "% self.no_rope_layer_interval != 0")
    assert said("cohere2", 'kwargs.pop("sliding_window_pattern", 4)')
    assert said("exaone4", "sliding_window_pattern: str | int | None = 4")
    assert said("modernbert", 'kwargs.get("global_attn_every_n_layers", 3)')
    assert said("gemma3", 'kwargs.get("sliding_window_pattern", 6)')
    # and what the page says beside the table
    t5 = (library / "models" / "t5" / "modeling_t5.py").read_text(encoding="utf-8")
    cross = t5.partition("class T5LayerCrossAttention")[2].partition("\nclass ")[0]
    assert "has_relative_attention_bias=False" in cross


@pytest.mark.claim(
    "which-scores-survive-a-shift",
    "Moving a whole text by 700 positions, past FIRE's threshold, changes the scores of sinusoids, "
    "learned tables and FIRE, and of no other method in the table.",
)
@pytest.mark.parametrize("seed", range(3))
def test_which_scores_survive_a_shift(seed, capsys):
    torch.manual_seed(seed)
    values = choosing.matrix()
    assert choosing.SHIFT == 700 > choosing.SIZES.threshold == FireBias(choosing.HEADS).init_L
    moves = {row["snippet"]: values[f"{row['snippet']}_moves"] for row in DATA["method"]}
    assert {name for name, change in moves.items() if change > 1e-3} == {"sinusoidal", "learned", "fire"}
    printed = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [cells[3] == "no" for cells in printed] == [change > 1e-3 for change in moves.values()]


@pytest.mark.claim(
    "how-long-a-text-may-be",
    "At positions beyond a million, of the table's methods that take positions as input, the learned "
    "table raises an error, xPos gives scores that are not finite, and all others give finite scores. The "
    "scores of Shaw, T5, the clipped bias, DeBERTa and the relative logits no longer distinguish two keys "
    "with the same content. Neither do the scores of CoPE, which takes no positions, beyond the rows of "
    "its table; those of forget gates and PaTH, which take no positions either, still do.",
)
@pytest.mark.parametrize("seed", range(3))
def test_how_long_a_text_may_be(seed, capsys):
    torch.manual_seed(seed)
    values = choosing.matrix()
    assert values["farthest"] == 299 * 4096 > 1_000_000
    printed = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    says = {row["snippet"]: cells[1] for row, cells in zip(DATA["method"], printed, strict=True)}
    kinds = {kind: {name for name in says if says[name] == kind} for kind in says.values()}
    assert kinds.pop("its table") == {"learned"}
    assert kinds.pop("near its centre") == {"xpos"}
    alike = {"shaw", "t5_bias", "clipped_bias", "deberta", "relative_logits", "cope"}
    assert kinds.pop("any, clipped") == alike
    rest = {"none", "sinusoidal", "transformer_xl", "rope", "alibi", "sandwich", "kerple", "fire"}
    assert kinds == {"any": rest | {"forgetting", "path_attention"}}


def test_the_ends_of_what_has_an_end():
    x, width = torch.randn(choosing.HEADS, 2, 64), choosing.WIDTH // choosing.HEADS
    _, learned = choosing._methods()["learned"]
    assert learned(x, torch.tensor([0, choosing.LENGTH - 1])).isfinite().all()
    with pytest.raises(ValueError, match="0 to 1023, got 0 to 1024"):
        learned(x, torch.tensor([0, choosing.LENGTH]))
    reach = choosing.matrix()["xpos_reach"]
    for sign, role in ((1, "key"), (-1, "query")):
        for centre in (0, 50_000):
            at = centre + sign * torch.tensor([0, reach, reach + 1])
            finite = torch.stack(xpos_tables(at, width, role, centre)).isfinite().all(0).all(-1)
            assert finite.tolist() == [True, True, False]


def test_the_matrix_tells_of_chains_what_was_kept():
    values = choosing.matrix()
    methods = {row["snippet"]: row["short"].removesuffix(" table") for row in DATA["method"]}
    assert "path_attention_excess" not in values and methods.pop("path_attention")
    for name, method in methods.items():
        runs = torch.tensor([run["excess_loss"]["1024"]["1024"] for run in load("chains")[method]])
        assert values[f"{name}_excess"] == pytest.approx(runs.mean().item(), abs=1e-5)


@pytest.mark.claim(
    "matrix-names-models-that-use-it",
    "Each model that the table of methods names uses the method, according to its row in the table of "
    "models; the speech model that is not in that table has Shaw's keys by default.",
)
def test_a_model_in_the_matrix_has_the_method(library):
    says = {
        "none": "no positions in its attention",
        "sinusoidal": "fixed table",
        "learned": "learned table",
        "transformer_xl": "inside the score",
        "t5_bias": "table of biases",
        "deberta": "bucketed distances",
        "rope": "rotates",
        "alibi": "linear in distance",
        "relative_logits": "mixes from learned profiles",
    }
    models = {model["name"]: f"{said(model)}; {model.get('note', '')}" for model in MODELS}
    for row in DATA["method"]:
        if row["used"] == "–":
            assert row["snippet"] not in says
        elif row["snippet"] == "shaw":
            path = library / "models" / "wav2vec2_bert" / "configuration_wav2vec2_bert.py"
            assert re.search(r'\bposition_embeddings_type: .* = "relative_key"\n', path.read_text("utf-8"))
        else:
            for name in row["used"].split(", "):
                assert says[row["snippet"]] in models[name], name


@pytest.mark.claim(
    "what-stays-as-a-text-grows",
    "With every method of the table, the scores of a causal text do not change when tokens are added. "
    "Keys that dynamic NTK or LongRoPE has rotated change when the text exceeds the training length, and "
    "keys that xPos has scaled around the middle of the text change as well.",
)
@torch.no_grad()
def test_what_was_computed_stays_while_a_text_grows():
    torch.manual_seed(0)
    width = choosing.WIDTH // choosing.HEADS
    x, short, seen = torch.randn(choosing.HEADS, 30, width), 24, torch.ones(24, 24).tril() > 0
    for name, (_, scores) in choosing._methods().items():
        before = scores(x[:, :short], torch.arange(short))
        after = scores(x, torch.arange(30))[..., :short, :short]
        assert (before - after)[..., seen].abs().max() < 1e-4, name
    w, at = rope_frequencies(width, base=10000), torch.arange(short)
    factors = torch.ones_like(w), 4 * torch.ones_like(w)
    for used in (
        lambda length: dynamic_ntk(w, 2, short, length),
        lambda length: longrope(w, *factors, short, length),
    ):
        tables = (rope_tables(at, used(length)) for length in (short, 30))
        keys = [apply_rope(x[:, :short], *each, "half") for each in tables]
        assert (keys[0] - keys[1]).abs().max() > 0.1
    tables = (xpos_tables(at, width, "key", centre=length // 2) for length in (short, 30))
    keys = [apply_xpos(x[:, :short], *each) for each in tables]
    assert (keys[0] - keys[1]).abs().max() > 0.001


def test_every_method_is_a_snippet_and_stands_in_the_order_of_its_numbers():
    torch.manual_seed(0)
    names = [row["snippet"] for row in DATA["method"]]
    assert names == list(choosing._methods())
    for name in names:
        assert name == "none" or (ROOT / "snippets" / f"{name}.py").is_file()


def test_most_models_of_the_later_half_rotate(families):
    assert families["models"] == len(DATA["model"])
    days = sorted(date.fromisoformat(model["released"]) for model in MODELS)
    middle = days[0] + (days[-1] - days[0]) / 2
    assert date(2022, 8, 22) < middle < date(2022, 9, 1)  # the end of August, in the caption
    assert families["late"] == sum(day >= middle for day in days)
    assert 0.6 < families["turning"] / families["late"] < 1


def test_the_rows_of_the_figure_begin_and_end_as_its_text_says():
    firsts = [dates(kind)[0] for kind in KINDS]
    assert firsts == sorted(firsts)
    *biased, last = dates("bias or score")
    assert max(dates("added")[-1], biased[-1]) < dates("rotation, some layers")[0]
    assert dates("rotation, some layers")[-1] < last == max(model["released"] for model in MODELS)


@pytest.mark.claim(
    "rotation-is-not-absorbed",
    "If keys are made by a random matrix from random short vectors, with at most two fifths as many "
    "channels as there are tokens, one query compared with these short vectors gives all scores as long "
    "as no key is rotated, and the scores of a separate rotated part may be added. If the keys are "
    "rotated, the best such query has a relative error of more than a tenth.",
)
@each_of(("width", "rank", "tokens"), [(16, 4, 20), (64, 16, 40), (128, 32, 100)])
@each_of("seed", range(5))
def test_a_rotation_cannot_be_moved_to_the_query(width, rank, tokens, seed):
    torch.manual_seed(seed)
    values = choosing.absorbed(width, rank, tokens)
    assert max(values["still"], values["apart"]) < 1e-5
    assert values["rotated"] > 0.1


@pytest.mark.claim(
    "deepseek-caches-what-is-short",
    "By default, `deepseek_v3` in transformers rotates 64 of the 192 channels of a head and caches, for "
    "each token and layer, a vector of 512 numbers and a rotated key of 64.",
)
def test_deepseek_caches_the_latent_vector_and_the_turned_key(library):
    values, config = choosing.absorbed(), peer("transformers").DeepseekV3Config()
    assert (values["turning"], values["whole"]) == (config.qk_rope_head_dim, config.qk_head_dim) == (64, 192)
    assert values["cached"] == config.kv_lora_rank + config.qk_rope_head_dim == 512 + 64
    assert values["full"] == config.num_attention_heads * (config.qk_head_dim + config.v_head_dim)
    code = (library / "models" / "deepseek_v3" / "modeling_deepseek_v3.py").read_text(encoding="utf-8")
    split = "kv_nope, k_rot = torch.split(compressed_kv, [self.kv_lora_rank, self.qk_rope_head_dim], dim=-1)"
    kept = "kv_nope, k_rot = past_key_values.update(kv_nope, k_rot, self.layer_idx)"
    expanded = "key_states, value_states = self.expand_kv(kv_nope, k_rot)"
    assert 0 < code.index(split) < code.index(kept) < code.index(expanded)
