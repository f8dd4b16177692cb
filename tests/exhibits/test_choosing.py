"""What the page on choosing says of methods and of models, held against what they are."""

import importlib.util
import tomllib
from datetime import date
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import torch

from exhibits import choosing

ROOT = Path(__file__).parents[2]
DATA = tomllib.loads((ROOT / "exhibits" / "choosing.toml").read_text(encoding="utf-8"))
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


def dates(kind):
    return sorted(row["released"] for row in DATA["model"] if row["kind"] == kind)


@pytest.mark.claim(
    "model-table-matches-code",
    "Each line of the table of models names code that stands in the pinned version of transformers.",
)
@pytest.mark.parametrize("row", DATA["model"], ids=lambda row: row["name"])
def test_a_model_does_what_its_line_says(row, library):
    code = (library / row["file"]).read_text(encoding="utf-8")
    assert row["evidence"] in code
    assert row["shown"] in code


def test_the_line_of_a_model_is_whole_and_short():
    keys = {"name", "released", "kind", "encoding", "file", "shown", "evidence"}
    for row in DATA["model"]:
        assert row.keys() == keys, row["name"]
        assert row["kind"] in KINDS, row["name"]
        assert len(row["encoding"]) <= 60 and "|" not in row["encoding"], row["name"]
        assert date.fromisoformat(row["released"]).isoformat() == row["released"]
    assert len({row["name"] for row in DATA["model"]}) == len(DATA["model"])


def test_kimi_linear_has_no_function_that_rotates(library):
    (row,) = [row for row in DATA["model"] if row["name"] == "Kimi Linear"]
    code = (library / row["file"]).read_text(encoding="utf-8")
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
    assert said("granitemoehybrid", "position_embedding_type: str | None = None")
    assert said("mistral", "sliding_window: int | None = 4096")
    for model in ("llama4", "smollm3"):
        assert said(model, "no_rope_layer_interval: int = 4\n", "% self.no_rope_layer_interval != 0")
    assert said("cohere2", 'kwargs.pop("sliding_window_pattern", 4)')
    assert said("exaone4", "sliding_window_pattern: str | int | None = 4")
    assert said("modernbert", 'kwargs.get("global_attn_every_n_layers", 3)')
    assert said("gemma3", 'kwargs.get("sliding_window_pattern", 6)')


@pytest.mark.claim(
    "which-scores-survive-a-shift",
    "Moving a whole text 700 places on, past FIRE's threshold, changes the scores of sinusoids, learned "
    "tables and FIRE, and of no other method of the table.",
)
def test_which_scores_survive_a_shift(capsys):
    torch.manual_seed(0)
    values = choosing.matrix()
    assert choosing.SHIFT == 700 > choosing.FireBias(choosing.HEADS).init_L
    moves = {row["snippet"]: values[f"{row['snippet']}_moves"] for row in DATA["method"]}
    assert {name for name, change in moves.items() if change > 1e-3} == {"sinusoidal", "learned", "fire"}
    printed = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [cells[2] == "other scores" for cells in printed] == [change > 1e-3 for change in moves.values()]


def test_every_method_is_a_snippet_and_stands_in_the_order_of_its_numbers():
    torch.manual_seed(0)
    names = [row["snippet"] for row in DATA["method"]]
    assert names == list(choosing._methods())
    for name in names:
        assert name == "none" or (ROOT / "snippets" / f"{name}.py").is_file()


def test_most_models_of_the_later_half_rotate(families):
    assert families["models"] == len(DATA["model"])
    days = sorted(date.fromisoformat(row["released"]) for row in DATA["model"])
    middle = days[0] + (days[-1] - days[0]) / 2
    assert date(2022, 6, 1) < middle < date(2022, 8, 1)  # the middle of the year, in the caption
    assert families["late"] == sum(day >= middle for day in days)
    assert 0.7 < families["turning"] / families["late"] < 1


def test_the_rows_of_the_figure_begin_and_end_as_its_text_says():
    firsts = [dates(kind)[0] for kind in KINDS]
    assert firsts == sorted(firsts)
    assert max(dates("added")[-1], dates("bias or score")[-1]) < dates("rotation, some layers")[0]
    assert dates("rotation, some layers")[-1] == max(row["released"] for row in DATA["model"])
