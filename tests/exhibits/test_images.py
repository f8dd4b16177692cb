"""What the chapter on images and video says of its figures, and of models."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch.testing import assert_close

from exhibits import images
from snippets.axial_rope import apply_axial_rope, axial_frequencies, axial_rope_tables
from snippets.mrope import mrope_positions
from snippets.rope import rope_frequencies
from snippets.sinusoidal_2d import axial_sinusoids, grid_positions
from snippets.vit_table import CONVENTIONS
from tests.exhibits.common import numbers
from tests.peers import peer
from tests.rows import each_of


def test_two_squares_stand_between_those_that_touch():
    assert images.torn()[1] == {"between": 2}


def test_axial_makes_a_cross_and_golden_directions_none():
    _, values, live = images.field()
    row, column = torch.tensor(7.0).double(), torch.tensor(9.0).double()
    made = {kind: live.function(kind, row, column)["field"] for kind in ("axial RoPE", "golden directions")}
    for field in made.values():
        assert field[7, 9] == pytest.approx(1) and field.max() <= 1 + 1e-6
    far = torch.tensor([abs(n - 9) > 5 for n in range(values["side"])])
    cross = made["axial RoPE"]
    assert cross[7, far].min() > 0.45 and (cross[7, far] > cross[0, far]).all()
    assert made["golden directions"][7, far].max() < 0.35


@pytest.mark.claim(
    "two-sinusoids-make-the-same-cross",
    "The products of two-axis sinusoidal encodings, divided by their number of pairs, equal the scores of "
    "two vectors of equal channels that are rotated by axial RoPE with the same base, divided by their "
    "number of channels.",
)
@each_of("patch", [(0, 0), (7, 9), (14, 3)])
def test_two_sinusoids_make_the_same_cross(patch):
    places = grid_positions((15, 15), start=0).flatten(0, 1)
    options = {"order": (0, 1), "layout": "sin_cos", "base": 100}
    rows = axial_sinusoids(places, images.DIM, **options)
    products = rows @ rows[15 * patch[0] + patch[1]] / (images.DIM // 2)
    live = images.field()[-1]
    field = live.function("axial RoPE", *(torch.tensor(float(each)).double() for each in patch))["field"]
    assert_close(products.unflatten(0, (15, 15)), field.float(), rtol=0, atol=1e-5)


def test_heads_have_tables_of_their_own(printed, returned):
    assert returned("images.by_heads") == {"heads": 5}
    assert printed("images.by_heads") == ["(5, 9, 8)"]


@each_of(("name", "time"), [("wan", 44), ("flux", 16)])
def test_the_slowest_pair_of_time_of_who_makes_films(name, time, returned):
    slowest = 2 * math.pi * 10_000 ** ((time - 2) / time)
    assert returned("images.makers")[name] == pytest.approx(slowest)


def test_what_the_page_prints_of_a_prompt(printed, returned):
    header, *axes = [line.split() for line in printed("images.prompt")]
    time, row, column = ([int(each) for each in axis[1:]] for axis in axes)
    assert len(header) - 1 == len(time) == returned("images.prompt")["tokens"] == 11
    assert header.count("▦") == 6
    assert time == [0, 1, 2, 3, 3, 3, 3, 3, 3, 6, 7] and returned("images.prompt")["last"] == 7
    assert row == [0, 1, 2, 3, 3, 3, 4, 4, 4, 6, 7] and column == [0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 7]


@each_of("kind", images.PROMPTS)
def test_only_the_video_differs_by_where_text_goes_on(kind):
    live, words = images.prompts()[-1], images.PROMPTS[kind][-1]
    made = {after: live.function(kind, after) for after in ("largest", "space")}
    same = made["largest"]["next"] == made["space"]["next"]
    assert bool(same) == (kind != "a video")
    for after, values in made.items():
        positions = mrope_positions(images.PROMPTS[kind], spatial_merge_size=1, text_start=after)
        assert values["tokens"] == len(positions) <= images.TOKENS
        assert values["next"] == positions[-words, 0]
        late = values["next"] <= values["largest"]
        assert bool(late) == (kind == "a video" and after == "space")
        assert torch.equal(values["row"][: len(positions), 1], positions[:, 1].double())
        assert values["time"][len(positions) :, 1].isinf().all()


def test_a_lowered_pair_stays_within_a_turn():
    speeds, live = rope_frequencies(16, base=256), images.loop()[-1]
    for pair in range(8):
        for length in (10, 96, 120):
            made = live.function(torch.tensor(float(pair)), torch.tensor(float(length)))
            assert made["period"] == pytest.approx(2 * math.pi / speeds[pair].item())
            assert made["times"] * made["period"] == pytest.approx(length)
            lowered = min(speeds[pair].item(), 0.9 * 2 * math.pi / length)
            wave = made["lowered"][: length + 1, 1]
            assert_close(wave, (torch.arange(length + 1) * lowered).cos().to(wave), rtol=0, atol=1e-6)
            assert lowered * length <= 0.9 * 2 * math.pi + 1e-9
            assert made["as trained"][length + 1 :, 0].isinf().all()


@pytest.mark.claim(
    "images-far-places-fall-together",
    "The 64 patches of a row, counted from 65,536 on, share one position in bfloat16 and have 64 "
    "positions in float32; counted from 0, they have 64 in both. In bfloat16, a row of up to 257 patches "
    "that starts at 65,536 has one position, and a longer row has more than one.",
)
def test_far_places_fall_together(returned):
    values = returned("images.far_off")
    assert values["far"] == 65_536
    assert {key: values[key] for key in ("bfloat16_0", "float32_0", "float32_65536", "bfloat16_65536")} == {
        "bfloat16_0": 64,
        "float32_0": 64,
        "float32_65536": 64,
        "bfloat16_65536": 1,
    }
    for patches in (1, 64, 256, 257, 258, 512):
        places = (65_536 + torch.arange(patches)).bfloat16()
        assert (places.unique().numel() == 1) == (patches <= 257)
    assert values["bfloat16_256"] < 64 == values["float32_256"]
    assert (values["patches"], values["step"], values["most"]) == (64, 512, 257)


@pytest.mark.claim(
    "images-what-moves-and-cuts-change",
    "If all patches move by the same rows and columns, the scores of axial RoPE (with coordinates counted "
    "in patches or given as fractions of the image) and of mixed RoPE (with counted coordinates) do not "
    "change, and those of added sinusoids do. If columns are cut off at the right, scores do not change "
    "where coordinates are counted, and change where they are fractions.",
)
@each_of("seed", range(3))
def test_what_moves_and_cuts_change(seed):
    torch.manual_seed(seed)
    values = images.moved()
    changed = {key for key, change in values.items() if change > 1e-6}
    assert len(values) == 10 and changed == {
        "two_sinusoids_counted_moved",
        "two_sinusoids_in_shares_moved",
        "two_sinusoids_in_shares_cut",
        "axial_rope_centres_cut",
    }
    assert all(values[key] > 0.1 for key in changed)


def test_the_table_of_moves_says_what_was_found(printed, returned):
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed("images.moved")[2:]]
    values = returned("images.moved")
    for name, *cells in rows:
        (key,) = (key for key, coded in images.CODED.items() if coded == name)
        found = ["changed" if values[f"{key}_{what}"] > 1e-6 else "same" for what in ("moved", "cut")]
        assert cells == found


def test_no_table_comes_back_as_it_was(printed, returned):
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed("images.resized")[2:]]
    values = returned("images.resized")
    assert [row[0] for row in rows] == [f"`{convention}`" for convention in CONVENTIONS]
    for convention, row in zip(CONVENTIONS, rows, strict=True):
        finer, coarser = values[f"{convention}_finer"], values[convention]
        assert numbers(" ".join(row[1:])) == pytest.approx([finer, coarser], abs=6e-4)
        assert 0.005 < finer < 0.5 * coarser


@pytest.mark.claim(
    "images-gemma-4-has-two-encodings",
    "The vision part of Gemma 4 in transformers 5.23.0 adds a vector of a learned table for each "
    "coordinate, and its layers rotate queries and keys by axial RoPE.",
)
@torch.no_grad()
def test_gemma_4_adds_and_turns():
    modeling = peer("transformers.models.gemma4.modeling_gemma4")
    table = torch.randn(2, 9, 6)
    embedder = SimpleNamespace(position_embedding_table=table)
    places = torch.tensor([[[1, 2], [8, 0]]])
    hidden = torch.zeros(1, 2, dtype=torch.bool)
    made = modeling.Gemma4VisionPatchEmbedder._position_embeddings(embedder, places, hidden)
    for patch, (x, y) in enumerate(places[0].tolist()):
        assert_close(made[0, patch], table[0, x] + table[1, y])
    config = SimpleNamespace(rope_parameters={"rope_type": "axial", "rope_theta": 100.0}, head_dim=16)
    cos, sin = modeling.Gemma4VisionRotaryEmbedding(config)(torch.zeros(1), places)
    x = torch.randn(1, 2, 3, 16)
    turned = modeling.apply_multidimensional_rope(x, cos, sin, places)
    assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    assert ((turned - x).abs().amax((0, 2, 3)) > 0.1).all()  # no patch stands at zero on both axes
    tables = axial_rope_tables(places[0], axial_frequencies(16, "each", 100.0))
    expected = apply_axial_rope(x[0].transpose(0, 1), *tables, "half_by_axis").transpose(0, 1)
    assert_close(turned[0], expected, rtol=0, atol=1e-5)
    source = peer("inspect").getsource(modeling.Gemma4VisionAttention.forward)
    assert source.count("apply_multidimensional_rope(") == 2  # of queries and of keys


@pytest.mark.claim(
    "images-ernie-gives-time-the-slowest",
    "In ERNIE 4.5-VL of transformers 5.23.0, with its default sections, channel pairs for rows and for "
    "columns alternate from the highest frequency on, and every pair for time has a lower frequency than "
    "all of these.",
)
@torch.no_grad()
def test_ernie_interleaves_rows_and_columns_and_gives_time_the_slowest_pairs():
    folder = "transformers.models.ernie4_5_vl_moe"
    modeling = peer(f"{folder}.modeling_ernie4_5_vl_moe")
    config = peer(f"{folder}.configuration_ernie4_5_vl_moe").Ernie4_5_VLMoeTextConfig()
    rotary = modeling.Ernie4_5_VLMoeTextRotaryEmbedding(config)
    found = []
    for axis in range(3):  # of time, row and column, the only one that is not at zero
        places = torch.zeros(3, 1, 1)
        places[axis] = 1
        _, sin = rotary(torch.zeros(1), places)
        pairs = sin.flatten()[::2]  # each stands twice
        found.append(pairs[pairs > 0].asin())
    time, row, column = found
    assert time.max() < min(row.min(), column.min())
    both = torch.stack((row.sort(descending=True).values, column.sort(descending=True).values), 1).flatten()
    assert (both.diff() < 0).all()
