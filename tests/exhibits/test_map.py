"""What the map says of methods, known from their papers; whether its questions notice; and what moves are."""

import math
import tomllib
from pathlib import Path

import pytest
import torch
import transformers
from matplotlib.colors import to_hex

from executable_prose.project import ROOT
from exhibits import map as the_map
from exhibits._drawing import COLORS, UNTRAINED
from exhibits._methods import METHODS, Method
from exhibits._where_it_acts import NOTHING, SIZES, place
from experiments.census.rows import row_of
from snippets.alibi import alibi_bias, alibi_slopes
from snippets.attention import scaled_dot_product
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.sinusoidal import shift_matrix, sinusoidal_encoding
from snippets.xpos import apply_xpos, xpos_decay, xpos_tables
from tests.exhibits.common import numbers
from tests.rows import each_of

SEEDS = range(3)
OFFSETS = (-907, -3, -1, 0, 1, 2, 17, 1024)

# What each paper says, by step, and by what.
SAID = {
    "none": ({}, ""),
    "sinusoidal": ({"input": "add"}, "position"),
    "sinusoidal_2d": ({"input": "add"}, "position, each axis"),
    "learned": ({"input": "add"}, "position"),
    "vit_table": ({"input": "add"}, "position, each axis"),
    "fourier": ({"input": "add"}, "position, each axis"),
    "gated_encoding": ({"input": "gate"}, "position, own content"),
    "rope": ({"q and k": "rotate"}, "distance"),
    "rope_scaling": ({"q and k": "rotate, scale"}, "distance"),  # YaRN's temperature
    "xpos": ({"q and k": "rotate, scale"}, "distance"),
    "axial_rope": ({"q and k": "rotate"}, "distance, each axis"),
    "mrope": ({"q and k": "rotate"}, "distance, each axis"),
    "alibi": ({"scores": "add"}, "distance"),
    "kerple": ({"scores": "add"}, "distance"),
    "fire": ({"scores": "add"}, "distance, position"),
    "sandwich": ({"scores": "add"}, "distance"),
    "t5_bias": ({"scores": "add"}, "distance"),
    "clipped_bias": ({"scores": "add"}, "distance"),
    "swin_bias": ({"scores": "add"}, "distance, each axis"),
    "relative_logits": ({"scores": "mix"}, "distance, query"),
    "shaw": ({"scores": "mix", "output": "add"}, "distance, query"),
    "local_global": ({"scores": "mix"}, "distance, query"),
    "transformer_xl": ({"scores": "mix"}, "distance, query, key"),
    "deberta": ({"scores": "mix"}, "distance, query, key"),
    "cope": ({"scores": "gate"}, "query, key, tokens between"),
    "forgetting": ({"scores": "gate"}, "query, tokens between"),  # the gate of the query is the last
    "path_attention": ({"scores": "gate"}, "query, key, tokens between"),
    "temperature": ({"q and k": "scale"}, "position"),
    "sinks": ({"softmax": "add"}, ""),
}


def found(method, axes=1):
    """Where a method acts, as SAID writes it."""
    here = place(method, axes)
    return {step: ", ".join(acts) for step, acts in here.acts.items() if acts}, ", ".join(here.by)


@pytest.mark.claim(
    "map-places-are-what-papers-say",
    "When it is inserted into an attention layer at the step at which its file is called, and run on "
    "random texts, each method of the map changes the steps that its paper names and no other step, in "
    "the way that the paper names and depending on what it names.",
)
@each_of("seed", SEEDS)
@each_of("name", METHODS)
def test_a_method_is_found_where_its_paper_puts_it(name, seed):
    torch.manual_seed(seed)
    entry = METHODS[name]
    assert found(entry.make(SIZES), entry.axes) == SAID[name]


def test_every_file_that_says_where_tokens_stand_is_on_the_map():
    nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("- Added to the input:")[2]
    files = [
        line.split("/")[1][:-3] for line in nav.partition("- In use:")[0].split("\n") if "reference/" in line
    ]
    # embed.py adds what others make; in a graph nothing stands at a place that could be moved
    assert set(files) - {"embed", "graph_positions"} == set(METHODS) - {"none"}


def alibi(q, k, x, at):
    return scaled_dot_product(q, k) + alibi_bias(at, at, alibi_slopes(2))


def of_query(change):
    return lambda x, at, role: change(x, at.double()[:, None]) if role == "query" else x


def on_the_way(of, last=True):
    """A bias: the sum of a number of each token after the key, up to the query or to the one before."""

    def score(q, k, x, at):
        number = of(x[:, 0])
        passed = number.cumsum(0)
        return scaled_dot_product(q, k) + (passed if last else passed - number)[:, None] - passed

    return score


def turned(x, at):
    return apply_rope(x, *rope_tables(at, rope_frequencies(x.shape[-1], base=10000), x.dtype), "half")


def with_a_sink(scores):
    return torch.cat((scores, torch.ones_like(scores[..., :1])), -1).softmax(-1)[..., :-1]


# What no file of the guide does, beside the steps as they are: and where it is to be found.
MADE_UP = {
    "ALiBi with places added to queries": (
        Method(score=alibi, turn=of_query(lambda x, at: x + at)),
        ({"q and k": "add", "scores": "add"}, "distance, position"),
    ),
    "ALiBi by twice the query's place": (
        Method(score=lambda q, k, x, at: scaled_dot_product(q, k) - 2.0 * at[:, None] + at),
        ({"scores": "add"}, "distance, position"),
    ),
    "a bias by the key's place": (
        Method(score=lambda q, k, x, at: scaled_dot_product(q, k) + 0.1 * at),
        ({"scores": "add"}, "position"),
    ),
    "a temperature that depends on position": (
        Method(turn=of_query(lambda x, at: x * (2 + at).log())),
        ({"q and k": "scale"}, "position"),
    ),
    "a temperature": (Method(turn=of_query(lambda x, at: 2 * x)), ({"q and k": "scale"}, "")),
    "a mirror": (Method(turn=of_query(lambda x, at: -x)), ({"q and k": "rotate"}, "")),
    "a gate of queries": (Method(turn=of_query(lambda x, at: x * x.sigmoid())), ({"q and k": "gate"}, "")),
    "a sink": (Method(weigh=with_a_sink), ({"softmax": "add"}, "")),
    "gates on the way": (
        Method(score=on_the_way(torch.nn.functional.logsigmoid)),
        ({"scores": "gate"}, "query, tokens between"),
    ),
    "gates of tokens between": (
        Method(score=on_the_way(torch.nn.functional.logsigmoid, last=False)),
        ({"scores": "gate"}, "tokens between"),
    ),
    "a sum of tokens between": (
        Method(score=on_the_way(lambda number: number, last=False)),
        ({"scores": "mix"}, "tokens between"),
    ),
    "a gate of the key": (
        Method(score=lambda q, k, x, at: scaled_dot_product(q, k) + x[:, 0].sigmoid()),
        ({"scores": "gate"}, "key"),
    ),
    "louder keys": (
        Method(turn=lambda x, at, role: 2 * x if role == "key" else x),
        ({"q and k": "scale"}, ""),
    ),
    "louder values": (Method(take=lambda w, v, at: 2 * w @ v), ({"output": "mix"}, "")),
    "RoPE written as a score": (
        Method(score=lambda q, k, x, at: scaled_dot_product(*(turned(each, at) for each in (q, k)))),
        ({"scores": "mix"}, "distance, query, key"),
    ),
    "a note by place": (
        Method(take=lambda w, v, at: w @ (v + at.double()[:, None])),
        ({"output": "add"}, "position"),
    ),
}


@pytest.mark.claim(
    "map-questions-notice-what-is-added",
    "The map's probes find that ALiBi with positions added to its queries adds to queries and to scores, "
    "by distance and by position, and that RoPE written as a score mixes at the scores. They find made-up "
    "methods that scale or gate queries, take a fraction of the softmax, mix into the output, or gate by "
    "the tokens between query and key, in the cells where these belong.",
)
@each_of("name", MADE_UP)
def test_what_is_added_to_a_method_is_found(name):
    method, said = MADE_UP[name]
    assert found(method) == said


@each_of("axis", [0, 1])
def test_a_coordinate_that_changes_nothing_is_no_axis(axis):
    by_one = Method(add=lambda x, at: x + at[:, axis, None])
    assert found(by_one, axes=2) == ({"input": "add"}, "position")


def test_one_file_for_another_is_found():
    swapped = METHODS["alibi"].make(SIZES), METHODS["rope"].make(SIZES)
    assert found(swapped[0]) != found(swapped[1])
    both = Method(score=swapped[0].score, turn=swapped[1].turn)
    assert found(both) == ({"q and k": "rotate", "scores": "add"}, "distance")


def test_the_table_has_what_was_found_and_no_change_is_in_doubt(printed, returned):
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed("map.table")[2:]]
    assert len(rows) == len(SAID) == returned("map.table")["methods"] + 1
    used = {
        row["snippet"]: row["used"]
        for row in tomllib.loads((ROOT / "docs/guide/choosing.toml").read_text("utf-8"))["method"]
    }
    for (name, (acts, by)), row in zip(SAID.items(), rows, strict=True):
        assert f"]({METHODS[name].chapter})" in row[0]
        assert name == "none" or f"[`{name}`](../reference/{name}.md)" in row[0]
        assert row[1:4] == ["<br>".join(acts.values()) or "–", "<br>".join(acts) or "–", by or "–"]
        assert row[4] == used.get(name, the_map.USED.get(name, "–"))
    values = returned("map.table")
    assert values["nothing"] <= NOTHING / 10 and values["least"] >= NOTHING * 20
    assert (values["tokens"], values["before"], values["between"]) == (12, 21, 4)
    assert values["asked"] > 10 * len(SAID)


def test_models_that_the_map_names_beside_those_of_the_other_table():
    assert row_of("gpt_oss").value("scaling") == ["yarn"]
    library = Path(transformers.__file__).parent / "models"
    for model, said in (
        ("gpt_oss", "self.sinks = nn.Parameter("),
        ("llama4", "torch.floor((positions.float() + 1.0) / self.floor_scale)"),
    ):
        assert said in (library / model / f"modeling_{model}.py").read_text("utf-8")


def test_the_picture_has_every_name_in_its_cell_and_in_the_colour_of_its_family(returned):
    figure, values = the_map.grid()
    assert returned("map.grid") == values
    pairs = {(act, step) for acts, _ in SAID.values() for step in acts for act in acts[step].split(", ")}
    assert values == {"cells": 25, "taken": len(pairs)}
    texts = figure.axes[0].texts
    shown = [text.get_text() for text in texts]
    for name, (acts, _) in SAID.items():
        times = sum(len(each.split(", ")) for each in acts.values())
        assert shown.count(METHODS[name].name) == times
    for text in texts:
        name = text.get_text().replace("learned table", "learned")
        if color := (COLORS | UNTRAINED).get(name):
            assert to_hex(text.get_color()) == to_hex(color), name
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in texts]
    edge = figure.bbox
    assert all(box.x0 >= 0 and box.x1 <= edge.x1 and box.y1 <= edge.y1 for box in boxes)
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])


# Moves


def exp(step, n):
    return torch.linalg.matrix_exp(n * step)


def steps(dim=8):
    """Three kinds, and a product of all that commutes with none of them."""
    torch.manual_seed(1)
    return {
        "turns": the_map._turning(dim),
        "shears": the_map._shearing(dim - 2, 0.5),
        "scales": the_map._turning_and_scaling(dim),
        "any": 0.002 * torch.randn(dim, dim, dtype=torch.float64),
    }


def close(a, b, size=1e-9):
    return (a - b).abs().max() <= size * max(1, b.abs().max())


@pytest.mark.claim(
    "map-rope-is-a-one-parameter-group",
    "RoPE at position n is the exponential of n times one skew-symmetric matrix, which has rank two for "
    "each pair, so rotating by n and by m is rotating by n + m, also for negative positions.",
)
@each_of("dim", [2, 8, 64])
def test_rope_is_the_exponential_of_a_skew_matrix(dim):
    step, x = the_map._turning(dim), torch.eye(dim, dtype=torch.float64)
    assert step.T.equal(-step) and torch.linalg.matrix_rank(step) == dim
    assert all(torch.linalg.matrix_rank(step[2 * p : 2 * p + 2]) == 2 for p in range(dim // 2))
    for n in OFFSETS:
        tables = rope_tables(torch.tensor([n]), rope_frequencies(dim, base=10000), torch.float64)
        turned = apply_rope(x[:, None], *tables, "interleaved")[:, 0].T
        assert close(exp(step, n), turned)
        for m in OFFSETS:
            assert close(exp(step, n) @ exp(step, m), exp(step, n + m))


@pytest.mark.claim(
    "map-alibi-is-a-unipotent-action",
    "With two more channels for query and key, ALiBi's score is the product of a query and a key that are "
    "transformed by the identity plus position times slope times one matrix whose square is zero, for all "
    "slopes of eight heads.",
)
@each_of("head", range(8))
def test_alibi_is_a_shear_of_two_channels(head):
    q, k = torch.randn(2, 16, dtype=torch.float64)
    slope = alibi_slopes(8)[head].double()
    step = the_map._shearing(16, slope)
    assert not (step @ step).any() and (step != 0).sum() == 1
    query, key = torch.cat((q / 4, torch.tensor([1.0, 0.0]))), torch.cat((k, torch.tensor([0.0, 1.0])))
    for n in OFFSETS:
        assert close(exp(step, n), torch.eye(18) + n * step, 1e-12)
    for i, j in ((0, 0), (5, 3), (905, 903), (1024, 0)):
        bias = alibi_bias(torch.tensor([i]), torch.tensor([j]), alibi_slopes(8))[head, 0, 0]
        moved = (exp(step, -i).T @ query) @ (exp(step, j) @ key)
        assert moved == pytest.approx((q @ k / 4 + bias).item(), abs=1e-10)


def test_what_the_page_shows_of_shears_is_alibi(printed):
    rows = [numbers(line) for line in printed("map.alibi_as_a_move")[1:]]
    assert all(row[2] == row[3] for row in rows) and rows[0][2] == rows[1][2]
    assert rows[2][2] == pytest.approx(rows[1][2] - 900 * alibi_slopes(8)[0].item(), abs=0.011)


@pytest.mark.claim(
    "map-a-group-of-moves-gives-relative-scores",
    "If keys are transformed by the powers of one matrix and queries by the transposed inverses of these "
    "powers, scores depend only on the offset, whether the matrix rotates, shears, scales or does all of "
    "these at once. If keys are transformed by matrices that do not follow this law, scores do not depend "
    "on the offset alone.",
)
@each_of("kind", ["turns", "shears", "scales", "any"])
def test_moves_that_form_a_group_give_relative_scores(kind):
    step, (q, k) = steps()[kind], torch.randn(2, 8, dtype=torch.float64)
    for offset in OFFSETS[1:-1]:
        scores = torch.stack([the_map._between(step, q, k, i, i + offset) for i in (0, 3, 90, 400)])
        assert close(scores, (q @ exp(step, offset) @ k).expand(4), 1e-8)
    far = the_map._between(step, q, k, 3, 9) - the_map._between(step, q, k, 3, 4)
    assert far.abs() > 1e-4, "and on the offset they do depend"
    moves = torch.linalg.qr(torch.randn(12, 8, 8, dtype=torch.float64))[0]  # one for each place, and no law
    scores = [(moves[i].mT.inverse() @ q) @ (moves[i + 2] @ k) for i in range(10)]
    assert torch.stack(scores).std() > 0.1


def test_xpos_turns_and_scales():
    step, (q, k) = the_map._turning_and_scaling(16), torch.randn(2, 16, dtype=torch.float64)
    for i, j in ((0, 0), (7, 3), (905, 850), (850, 905)):
        made = []
        for x, at, role in ((q, i, "query"), (k, j, "key")):
            tables = xpos_tables(torch.tensor([at]), 16, role, centre=0, dtype=torch.float64)
            made.append(apply_xpos(x[None], *tables)[0])
        assert the_map._between(step, q, k, i, j) == pytest.approx((made[0] @ made[1]).item(), abs=1e-9)


@pytest.mark.claim(
    "map-moved-caches",
    "A key that was transformed to its position by RoPE, by ALiBi's shear or by xPos can be moved to "
    "another position by the matrix of the difference in position, and then equals the key that was "
    "transformed to that position directly.",
)
def test_a_cached_key_is_moved_on_by_one_matrix():
    k, kinds = torch.randn(8, dtype=torch.float64), steps()
    for j in (0, 5, 700):
        for m in OFFSETS:
            for step in kinds.values():
                assert close(exp(step, m) @ (exp(step, j) @ k), exp(step, j + m) @ k)
            tables = [
                rope_tables(torch.tensor([n]), rope_frequencies(8, base=10000), torch.float64)
                for n in (j, m, j + m)
            ]
            cached = apply_rope(k[None], *tables[0], "half")
            there = apply_rope(k[None], *tables[2], "half")
            assert close(apply_rope(cached, *tables[1], "half"), there)


@pytest.mark.claim(
    "map-shears-add-up-on-the-way",
    "The shears of all tokens after a key up to the query, each with its own coefficient, add the sum of "
    "these coefficients to the score, in any order.",
)
@each_of("seed", SEEDS)
def test_shears_of_tokens_on_the_way_add_up(seed):
    torch.manual_seed(seed)
    q, k = torch.randn(2, 8, dtype=torch.float64)
    gates = torch.nn.functional.logsigmoid(torch.randn(30, dtype=torch.float64))
    query, key = torch.cat((q, torch.tensor([1.0, 0.0]))), torch.cat((k, torch.tensor([0.0, 1.0])))
    for order in (torch.arange(30), torch.randperm(30)):
        moved = key
        for gate in gates[order]:
            moved = moved + gate * the_map._shearing(8, 1.0) @ moved
        assert query @ moved == pytest.approx((q @ k + gates.sum()).item(), abs=1e-12)


@pytest.mark.claim(
    "map-what-grows-with-distance",
    "RoPE's matrices preserve every norm, and so keep every score within the product of the norms. "
    "ALiBi's matrices grow in proportion to the distance, and those of xPos grow by the same factor in "
    "each step.",
)
def test_turns_keep_lengths_shears_grow_in_proportion_and_scales_by_a_factor():
    kinds, (q, k) = steps(), torch.randn(2, 8, dtype=torch.float64)
    for n in (1, 10, 100, 1_000, 5_000):
        turned, sheared, scaled = (exp(kinds[kind], n) for kind in ("turns", "shears", "scales"))
        assert close(turned.T @ turned, torch.eye(8, dtype=torch.float64))
        assert (q @ turned @ k).abs() <= q.norm() * k.norm() * (1 + 1e-12)
        assert 0.5 * n <= torch.linalg.matrix_norm(sheared, 2) <= 0.5 * n + 1
        factor = xpos_decay(8).min() ** (-n / 512)
        assert torch.linalg.matrix_norm(scaled, 2) == pytest.approx(factor.item(), rel=1e-9)


def test_how_far_vectors_grow_is_what_the_table_shows(printed, returned):
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed("map.moves")]
    many = numbers(" ".join(rows[0][2:]))
    assert [row[:2] for row in rows[2:]] == [
        ["RoPE", "rotation"],
        ["ALiBi", "shear"],
        ["xPos", "rotation, scaling"],
    ]
    rope, alibi, xpos = (numbers(" ".join(row[2:])) for row in rows[2:])
    assert rope == [1, 1, 1] and alibi == [n / 2 for n in many]
    assert xpos == pytest.approx([3.5 ** (n / 512) for n in many], rel=0.03, abs=0.05)
    values = returned("map.moves")
    assert values["within"] <= 1e-10 and math.log10(values["within"]).is_integer()
    assert (values["dim"], values["query"], values["key"]) == (16, 905, 850)


@pytest.mark.claim(
    "map-added-rows-are-no-group",
    "Adding the sinusoidal row of n and then that of m is not the same as adding the row of n + m, and "
    "neither is it for the rows of a random table. The matrix that maps a sinusoidal row to that of a "
    "later position also changes the token.",
)
@each_of("seed", SEEDS)
def test_rows_do_not_add_up_and_their_shift_moves_the_token(seed):
    torch.manual_seed(seed)
    x, at = torch.randn(16, dtype=torch.float64), torch.arange(64)
    learned = torch.randn(64, 16, dtype=torch.float64)
    for rows in (sinusoidal_encoding(at, 16, dtype=torch.float64), learned):
        sums = rows[:, None] + rows - rows[(at[:, None] + at).clamp(max=63)]
        assert sums[1:32, 1:32].norm(dim=-1).min() > 0.1
    rows = sinusoidal_encoding(at, 16, dtype=torch.float64)
    for m in (1, 5, 31):
        shift = shift_matrix(torch.tensor(m), 16, dtype=torch.float64)
        assert close(shift @ rows[7], rows[7 + m])
        assert (shift @ (x + rows[7]) - x - rows[7 + m]).norm() > 0.1
