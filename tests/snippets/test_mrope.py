"""mrope.py against its definition, three models of transformers, and RoPE."""

import random as dice
from types import SimpleNamespace

import pytest
import torch
from torch.testing import assert_close

from snippets.mrope import Grid, mrope_positions, mrope_tables, pair_axes
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from tests.peers import peer
from tests.snippets.common import EXACT, random, refusals

MODELS = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
SECTIONS = ([16, 24, 24], [24, 20, 20], [3, 2, 2], [2, 2, 2], [4, 0, 0], [1, 0, 1])


def drawn(seed, frames=7):
    """A prompt: words, pictures and films, never two of one kind beside each other."""
    draw = dice.Random(seed)
    prompt = [draw.randint(1, 9)]
    for _ in range(draw.randint(0, 4)):
        sides = (2 * draw.randint(1, 6), 2 * draw.randint(1, 6))
        prompt += [Grid(draw.choice((1, draw.randint(1, frames))), *sides), draw.randint(1, 9)]
    return prompt[draw.randint(0, 1) :] if len(prompt) > 1 else prompt


# --- what the definition says


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("after", ["largest", "space"])
def test_every_position_is_its_definition(after, seed):
    expected, begin = [], 0
    for segment in drawn(seed):
        if isinstance(segment, int):
            made = [(begin + n,) * 3 for n in range(segment)]
            begin += segment
        else:
            frames, rows, columns = segment.frames, segment.rows // 2, segment.columns // 2
            made = [
                (begin + t, begin + y, begin + x)
                for t in range(frames)
                for y in range(rows)
                for x in range(columns)
            ]
            begin += max(frames, rows, columns) if after == "largest" else max(rows, columns)
        expected += made
    made = mrope_positions(drawn(seed), spatial_merge_size=2, text_start=after)
    assert made.tolist() == [list(each) for each in expected]


@pytest.mark.parametrize("sections", SECTIONS)
def test_every_pair_has_the_axis_of_its_definition(sections):
    chunks = [axis for axis in range(3) for _ in range(sections[axis])]
    assert pair_axes(sections, "chunks").tolist() == chunks
    woven = [p % 3 if p < 3 * sections[p % 3] else 0 for p in range(sum(sections))]
    if [woven.count(axis) for axis in (1, 2)] == sections[1:]:
        assert pair_axes(sections, "interleaved").tolist() == woven


@pytest.mark.parametrize("seed", range(3))
def test_every_angle_is_that_of_its_axis(seed):
    torch.manual_seed(seed)
    at, w = torch.randint(0, 500, (2, 5, 3)), rope_frequencies(14, base=10000)
    axes = pair_axes([3, 2, 2], "interleaved")
    cos, sin = mrope_tables(at, w, axes, torch.float64)
    for p in range(7):
        angle = at[..., axes[p]].double() * w[p]
        assert_close(cos[..., p], angle.cos(), **EXACT)
        assert_close(sin[..., p], angle.sin(), **EXACT)


# --- other libraries


def their_positions(name, prompt, step=1.0):
    """What a model of transformers gives for the same prompt: (tokens, 3)."""
    modeling = peer(f"transformers.models.{name}.modeling_{name}")
    model = getattr(
        modeling, {"qwen2_vl": "Qwen2VL", "qwen2_5_vl": "Qwen2_5_VL", "qwen3_vl": "Qwen3VL"}[name] + "Model"
    )
    vision = SimpleNamespace(spatial_merge_size=2, tokens_per_second=step)
    asked = SimpleNamespace(
        config=SimpleNamespace(vision_config=vision),
        get_vision_position_ids=lambda *given, **more: model.get_vision_position_ids(None, *given, **more),
    )
    kinds, films, pictures = [], [], []
    for segment in prompt:
        if isinstance(segment, int):
            kinds += [0] * segment
        else:
            film = segment.frames > 1
            (films if film else pictures).append(segment[:3])
            kinds += [2 if film else 1] * (segment.frames * segment.rows * segment.columns // 4)
    grids = {
        "image_grid_thw": torch.tensor(pictures) if pictures else None,
        "video_grid_thw": torch.tensor(films) if films else None,
    }
    if name == "qwen2_5_vl":
        grids["second_per_grid_ts"] = [1.0] * len(films)
    kinds = torch.tensor([kinds])
    ids, deltas = model.get_rope_index(asked, torch.zeros_like(kinds), kinds, **grids)
    return ids[:, 0].T, deltas.item()


@pytest.mark.claim(
    "mrope-positions-agree-with-transformers",
    "For randomly sampled prompts of text, images and videos, the snippet's positions with "
    'text_start="space" equal those of get_rope_index of Qwen2-VL, Qwen2.5-VL and Qwen3-VL in '
    "transformers 5.23.0. In Qwen3-VL, video frames are images with text between them.",
)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", range(40))
def test_agrees_with_models_of_transformers(name, seed, same_as):
    step = (1.0, 2.0, 0.7, 25.0)[seed % 4] if name == "qwen2_5_vl" else 1.0
    prompt = drawn(seed, frames=1 if name == "qwen3_vl" else 7)
    prompt = [each if isinstance(each, int) else each._replace(step=step) for each in prompt]
    theirs, delta = their_positions(name, prompt, step)
    ours = mrope_positions(prompt, spatial_merge_size=2, text_start="space")
    assert torch.equal(ours, theirs)
    assert delta == ours.max() + 1 - len(ours)
    same_as(f"transformers.models.{name}.modeling_{name}.get_rope_index", ours, theirs)


def test_frames_of_qwen3_are_pictures_with_words_between():
    prompt = [4, Grid(1, 4, 6), 3, Grid(1, 4, 6), 3, Grid(1, 4, 6), 2]
    modeling = peer("transformers.models.qwen3_vl.modeling_qwen3_vl")
    kinds = torch.tensor([[0] * 4 + ([2] * 6 + [0] * 3) * 2 + [2] * 6 + [0] * 2])
    asked = SimpleNamespace(
        config=SimpleNamespace(vision_config=SimpleNamespace(spatial_merge_size=2)),
        get_vision_position_ids=lambda *given, **more: modeling.Qwen3VLModel.get_vision_position_ids(
            None, *given, **more
        ),
    )
    film = torch.tensor([[3, 4, 6]])
    ids, _ = modeling.Qwen3VLModel.get_rope_index(asked, torch.zeros_like(kinds), kinds, video_grid_thw=film)
    assert torch.equal(mrope_positions(prompt, spatial_merge_size=2, text_start="space"), ids[:, 0].T)


def their_tables(name, at, sections, dim):
    modeling = peer(f"transformers.models.{name}.modeling_{name}")
    config, rotary = {
        "qwen2_vl": ("Qwen2VLTextConfig", "Qwen2VLRotaryEmbedding"),
        "qwen2_5_vl": ("Qwen2_5_VLTextConfig", "Qwen2_5_VLRotaryEmbedding"),
        "qwen3_vl": ("Qwen3VLTextConfig", "Qwen3VLTextRotaryEmbedding"),
    }[name]
    parameters = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": sections}
    config = getattr(peer("transformers"), config)(
        hidden_size=2 * dim, num_attention_heads=2, num_key_value_heads=2, rope_parameters=parameters
    )
    config.head_dim = dim
    cos, sin = getattr(modeling, rotary)(config)(torch.zeros(1, dtype=torch.float32), at.movedim(-1, 0))
    return cos[..., : dim // 2], sin[..., : dim // 2]


@pytest.mark.claim(
    "mrope-tables-agree-with-transformers",
    "The snippet's cosines and sines, in chunks for Qwen2-VL and Qwen2.5-VL and interleaved for Qwen3-VL, "
    "equal those of transformers 5.23.0 to 1e-4 at positions up to 1,000, where those of transformers are "
    "rounded to float32.",
)
@pytest.mark.parametrize(
    ("name", "sections"),
    [(name, sections) for name in MODELS[:2] for sections in ([16, 24, 24], [24, 20, 20], [2, 3, 3])]
    + [("qwen3_vl", sections) for sections in ([24, 20, 20], [4, 2, 2], [11, 11, 10])],
)
def test_tables_agree_with_models_of_transformers(name, sections, same_as):
    layout = "interleaved" if name == "qwen3_vl" else "chunks"
    at, dim = torch.randint(0, 1000, (2, 9, 3)), 2 * sum(sections)
    ours = mrope_tables(at, rope_frequencies(dim, 1e6), pair_axes(sections, layout))
    theirs = their_tables(name, at, sections, dim)
    for mine, other in zip(ours, theirs, strict=True):
        assert_close(mine, other, rtol=0, atol=1e-4)
        same_as(f"transformers.models.{name}.modeling_{name} (tables)", mine, other)


# --- what it is for


@pytest.mark.claim(
    "mrope-of-text-is-rope",
    "Where time, row and column of each token are equal, as in text, the tables are those of RoPE, "
    "whatever the sections and the layout.",
)
@pytest.mark.parametrize("layout", ["chunks", "interleaved"])
@pytest.mark.parametrize("dim", [14, 128])
def test_text_is_turned_as_by_rope(layout, dim):
    at, w = (
        mrope_positions([700], spatial_merge_size=2, text_start="largest"),
        rope_frequencies(dim, base=10000),
    )
    sections = [3, 2, 2] if dim == 14 else [24, 20, 20]
    for mine, other in zip(
        mrope_tables(at, w, pair_axes(sections, layout)), rope_tables(torch.arange(700), w), strict=True
    ):
        assert torch.equal(mine, other)


@pytest.mark.claim(
    "mrope-by-heads-knows-one-axis",
    "In a head whose pairs all rotate by one axis, the score depends only on the offset along this axis, "
    "and text is rotated as in RoPE.",
)
@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("dim", [4, 64])
def test_a_head_of_one_axis(axis, dim):
    w, axes = rope_frequencies(dim, base=10000), torch.full((dim // 2,), axis)
    for mine, other in zip(
        mrope_tables(mrope_positions([90], spatial_merge_size=1, text_start="largest"), w, axes),
        rope_tables(torch.arange(90), w),
        strict=True,
    ):
        assert torch.equal(mine, other)
    x, at = random(2, dim), torch.randint(0, 300, (2, 3))

    def score(at):
        return apply_rope(x, *mrope_tables(at, w, axes, torch.float64), "half").prod(0).sum()

    for other in range(3):
        moved = at.clone()
        moved[0, other] += 5
        assert ((score(moved) - score(at)).abs() > 1e-6) == (other == axis)


@pytest.mark.claim(
    "mrope-scores-know-offsets-alone",
    "The score of a query and a key rotated by M-RoPE stays the same if the times, the rows or the "
    "columns of both are shifted by the same number.",
)
@pytest.mark.parametrize("layout", ["chunks", "interleaved"])
@pytest.mark.parametrize("seed", range(3))
def test_scores_stay_if_both_move(layout, seed):
    torch.manual_seed(seed)
    (q, k), w = random(2, 14), rope_frequencies(14, base=10000)
    i, j = torch.randint(0, 300, (2, 3))

    def score(i, j):
        turned = (
            apply_rope(
                x[None], *mrope_tables(at[None], w, pair_axes([3, 2, 2], layout), torch.float64), "half"
            )
            for x, at in ((q, i), (k, j))
        )
        return torch.stack([each[0] for each in turned]).prod(0).sum()

    for by in (torch.tensor([40, 0, 0]), torch.tensor([0, 7, 0]), torch.tensor([1, 2, 900])):
        assert_close(score(i + by, j + by), score(i, j), rtol=0, atol=1e-9)
        assert (score(i + by, j) - score(i, j)).abs() > 1e-6


@pytest.mark.claim(
    "mrope-goes-on-after-the-picture",
    "An image takes as many positions as its longer side has tokens, however many tokens it has, and text "
    "continues from there. After a video with more frames than tokens on its longer side, "
    'text_start="largest" continues after the last frame, and text_start="space" gives text tokens times '
    "that frames already have.",
)
@pytest.mark.parametrize("frames", [1, 3, 12, 40])
@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (4, 10), (24, 6)])
def test_where_text_goes_on(frames, rows, columns):
    prompt, longer = [5, Grid(frames, rows, columns), 4], max(rows, columns) // 2
    largest, space = (
        mrope_positions(prompt, spatial_merge_size=2, text_start=after) for after in ("largest", "space")
    )
    assert len(space) == 5 + frames * rows * columns // 4 + 4
    assert largest[-4].tolist() == [5 + max(frames, longer)] * 3
    assert space[-4].tolist() == [5 + longer] * 3
    shared = set(space[5:-4, 0].tolist()) & set(space[-4:, 0].tolist())
    assert bool(shared) == (frames > longer)
    assert not set(largest[5:-4].flatten().tolist()) & set(largest[-4:].flatten().tolist())


@pytest.mark.claim(
    "mrope-read-and-written-differ",
    "In Qwen2-VL and Qwen2.5-VL of transformers 5.23.0, a token that is generated after a prompt gets the "
    "largest position of the prompt plus one. If the prompt ends with a video and four tokens of text, "
    "and the last frame has a later position than this text, the same token has a different position as "
    "the next token of the prompt; after an image, it has the same one.",
)
@pytest.mark.parametrize("name", MODELS[:2])
@pytest.mark.parametrize("frames", [1, 12, 40])
def test_a_token_that_is_written_goes_on_from_the_largest(name, frames):
    prompt = [5, Grid(frames, 4, 4), 4]
    read, delta = their_positions(name, prompt)
    longer, _ = their_positions(name, [*prompt[:2], 5])
    written = len(read) + delta
    assert written == read.max() + 1
    assert longer[-1].tolist() == [read[-1, 0] + 1] * 3
    assert (written == longer[-1, 0]) == (frames == 1)
    if frames == 40:
        assert (written, longer[-1, 0]) == (45, 11)


def test_time_goes_on_by_its_step_rounded_down():
    positions = mrope_positions([1, Grid(5, 2, 2, step=1.5)], spatial_merge_size=2, text_start="largest")
    assert positions[1:, 0].tolist() == [1, 2, 4, 5, 7]
    assert positions[1:, 1:].tolist() == [[1, 1]] * 5
    still = mrope_positions([Grid(3, 2, 2, step=0), 1], spatial_merge_size=2, text_start="largest")
    assert still[:, 0].tolist() == [0, 0, 0, 1]


def test_swapped_axes_are_another_encoding():
    at = mrope_positions([2, Grid(1, 6, 4)], spatial_merge_size=1, text_start="largest")
    axes = pair_axes([2, 3, 3], "chunks")
    swapped = torch.where(axes > 0, 3 - axes, axes)
    w = rope_frequencies(16, base=10000)
    assert not torch.equal(mrope_tables(at, w, axes)[0], mrope_tables(at, w, swapped)[0])
    assert torch.equal(mrope_tables(at[:, [0, 2, 1]], w, axes)[0], mrope_tables(at, w, swapped)[0])


# --- what it refuses


def wrong():
    def positions(message, segments, size=2, start="space"):
        return message, lambda: mrope_positions(segments, spatial_merge_size=size, text_start=start)

    yield positions("text_start must be 'largest' or 'space', got 'last'", [3], start="last")
    yield positions("spatial_merge_size must be at least 1, got 0", [3], size=0)
    yield positions("segments must contain at least one segment, got none", [])
    for words in (0, -2, 2.0, "two"):
        yield positions(f"a segment must be a Grid, or a number of words from 1 on, got {words!r}", [words])
    for grid in (Grid(0, 2, 2), Grid(1, 0, 2), Grid(1, 2, 0), Grid(1, 3, 2), Grid(1, 2, 5)):
        words = "a grid must have a frame or more, and rows and columns that are multiples of "
        words += "spatial_merge_size, 2, got "
        yield positions(f"{words}{grid.frames}, {grid.rows} and {grid.columns}", [1, grid])
    for step in (-1.0, float("nan"), float("inf")):
        yield positions(f"step must be a number from 0 on, got {step}", [Grid(2, 2, 2, step)])
    yield "layout must be 'chunks' or 'interleaved', got 'half'", pair_axes, [1, 1, 1], "half"
    for sections in ([1, 1], [1, 1, 1, 1], [2, -1, 1], [0, 0, 0]):
        words = f"sections must be three numbers of pairs, of time, row and column, got {sections}"
        yield words, pair_axes, sections, "chunks"
    yield (
        "sections[1] must be at most 21 for 64 interleaved pairs, got 24",
        pair_axes,
        [16, 24, 24],
        "interleaved",
    )
    yield "sections[2] must be at most 1 for 3 interleaved pairs, got 2", pair_axes, [1, 0, 2], "interleaved"
    at, w, axes = torch.zeros(4, 3, dtype=torch.int64), torch.ones(4), torch.zeros(4, dtype=torch.int64)
    for bad, got in ((axes[:3], "torch.int64 (3,)"), (axes.int(), "torch.int32 (4,)")):
        words = f"axes must be int64 (4,), as frequencies, got {got}: sections must sum to the pairs"
        yield words, mrope_tables, at, w, bad
    yield "frequencies must be (pairs,), at least one pair, got (1, 4)", mrope_tables, at, w[None], axes
    yield "frequencies must be (pairs,), at least one pair, got (0,)", mrope_tables, at, w[:0], axes[:0]
    yield "frequencies must be float32 or float64, got torch.bfloat16", mrope_tables, at, w.bfloat16(), axes
    yield "dtype must be float32 or float64, got torch.bfloat16", mrope_tables, at, w, axes, torch.bfloat16
    yield "positions must be (..., tokens, 3), got (4, 2)", mrope_tables, at[:, :2], w, axes
    yield "positions must be (..., tokens, 3), got (3,)", mrope_tables, at[0], w, axes
    yield "positions must be (..., tokens, 3), got ()", mrope_tables, at[0, 0], w, axes


test_refuses = refusals(wrong)
