"""visualize.py: what its figures hold, in both themes, and that nothing else is touched."""

import io
import math
import subprocess
import sys
from functools import partial
from pathlib import Path

import matplotlib
import numpy
import pytest
import torch
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure

from snippets.visualize import (
    THEMES,
    attention_by_distance,
    attention_heads,
    encoding_heatmap,
    similarity_map,
)
from tests.snippets.common import refusals, refused

WORDS = ["the", "cat", "$at", "$down$"]
both_themes = pytest.mark.parametrize("theme", ["light", "dark"])


def heads(count=2, queries=4, keys=4):
    return torch.rand(count, queries, keys).softmax(-1)


def every_figure(theme="light"):
    square = torch.eye(5)
    return [
        encoding_heatmap(torch.randn(6, 3), theme),
        similarity_map(square, theme),
        attention_heads(heads(), WORDS, theme=theme),
        attention_by_distance(torch.rand(3, 9), torch.rand(9), theme),
    ]


def luminance(color):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgba(color)[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def page_of(theme):
    return dict(THEMES)[theme].split()[0]


def drawn(figure):
    """The figure as an array of pixels, (height, width, 4)."""
    picture = io.BytesIO()
    figure.savefig(picture, format="rgba", dpi=50)
    height = round(figure.get_figheight() * 50)
    return numpy.frombuffer(picture.getvalue(), dtype=numpy.uint8).reshape(height, -1, 4)


# --- what the figures hold


def test_a_heatmap_holds_the_encoding_on_a_scale_that_is_the_same_on_both_sides():
    encoding = torch.tensor([[0.5, -2.0, 0.0], [1.0, 0.25, -0.5]])
    ax, bar = encoding_heatmap(encoding).axes
    (image,) = ax.images
    assert image.get_array().tolist() == encoding.tolist()
    assert image.get_clim() == (-2.0, 2.0)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("dimension", "position")
    assert ax.get_ylim() == (1.5, -0.5)  # position 0 is on top
    assert bar.get_ylim() == (-2.0, 2.0)


def test_colors_are_blue_below_clear_at_and_orange_above_zero():
    (image,) = encoding_heatmap(torch.eye(2)).axes[0].images
    _, _, _, blue, orange, *_ = dict(THEMES)["light"].split()
    assert to_hex(image.cmap(0.0), keep_alpha=True) == f"{blue}ff"
    assert to_hex(image.cmap(1.0), keep_alpha=True) == f"{orange}ff"
    assert image.cmap(0.499)[3] < 0.02
    assert image.cmap(0.501)[3] < 0.02
    assert to_hex(image.cmap(0.3)) == blue  # paler, not darker


def test_an_encoding_of_zeros_has_a_scale():
    assert encoding_heatmap(torch.zeros(3, 3)).axes[0].images[0].get_clim() == (-1.0, 1.0)


def test_a_similarity_map_is_drawn_from_minus_one_to_one():
    similarity = torch.tensor([[1.0, 0.5], [0.5, 1.0]])
    ax = similarity_map(similarity).axes[0]
    assert ax.images[0].get_array().tolist() == similarity.tolist()
    assert ax.images[0].get_clim() == (-1.0, 1.0)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("position", "position")
    assert similarity_map(similarity / 4).axes[0].images[0].get_clim() == (-1.0, 1.0)


def test_each_head_has_a_map_with_the_texts_of_the_tokens():
    weights = heads(3)
    *axes, _ = attention_heads(weights, WORDS).axes
    assert [ax.get_title() for ax in axes] == ["head 0", "head 1", "head 2"]
    for ax, head in zip(axes, weights, strict=True):
        assert torch.equal(torch.tensor(ax.images[0].get_array().data), head.double())
        assert ax.images[0].get_clim() == (0.0, weights.double().max().item())
        for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
            assert [label.get_text() for label in labels] == WORDS
            assert not any(label.get_parse_math() for label in labels)
        assert ax.get_xticks().tolist() == ax.get_yticks().tolist() == [0, 1, 2, 3]


def test_weights_of_zero_are_weights():
    assert attention_heads(torch.eye(4)[None], WORDS).axes[0].images[0].get_clim() == (0.0, 1.0)


def test_a_bias_has_a_sign_and_one_scale_for_all_heads():
    bias = torch.tensor([[[0.0, -1.0], [2.0, 0.0]], [[0.0, -4.0], [1.0, 0.0]]])
    first, second, bar = attention_heads(bias, ["a", "b"]).axes
    _, _, _, blue, orange, *_ = dict(THEMES)["light"].split()
    for ax, head in zip((first, second), bias, strict=True):
        (image,) = ax.images
        assert image.get_array().tolist() == head.tolist()
        assert image.get_clim() == (-4.0, 4.0)
        assert to_hex(image.cmap(0.0), keep_alpha=True) == f"{blue}ff"
        assert to_hex(image.cmap(1.0), keep_alpha=True) == f"{orange}ff"
    assert bar.get_ylim() == (-4.0, 4.0)


@both_themes
@pytest.mark.parametrize(
    ("bias", "scale"),
    [([[0.0, -math.inf], [-0.5, 0.0]], (-0.5, 0.5)), ([[0.0, -math.inf], [0.0, 0.0]], (0.0, 1.0))],
)
def test_a_hidden_key_is_grey_and_sets_no_scale(bias, scale, theme):
    bias = torch.tensor([bias])
    (image,) = attention_heads(bias, ["a", "b"], theme=theme).axes[0].images
    assert image.get_clim() == scale
    colors = image.to_rgba(image.get_array())
    _, _, grey, *_ = dict(THEMES)[theme].split()
    assert to_hex(colors[0, 1], keep_alpha=True) == f"{grey}ff"
    assert [to_hex(color) for color in colors.reshape(4, 4)].count(grey) == 1
    assert bias[0, 0, 1] == -math.inf


def test_queries_run_down_and_keys_across():
    ax = attention_heads(heads(1, 2, 3), ["a", "b"], ["x", "y", "z"]).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["x", "y", "z"]


@pytest.mark.parametrize(("count", "rows", "columns"), [(1, 1, 1), (4, 1, 4), (6, 2, 4), (9, 3, 4)])
def test_heads_stand_in_rows_of_four_and_no_panel_is_empty(count, rows, columns):
    figure = attention_heads(heads(count), WORDS)
    *axes, _ = figure.axes
    assert len(axes) == count
    assert all(ax.images for ax in axes)
    assert axes[0].get_subplotspec().get_gridspec().get_geometry() == (rows, columns)


@pytest.mark.parametrize(
    ("count", "queries", "keys", "rows", "columns"),
    [(1, 1, 1, 1, 1), (1, 5, 10, 1, 1), (3, 10, 5, 1, 3), (6, 5, 10, 2, 4), (9, 30, 30, 3, 4)],
)
def test_every_head_and_every_token_gets_the_same_room(count, queries, keys, rows, columns):
    figure = attention_heads(heads(count, queries, keys), ["x"] * queries, ["y"] * keys)
    labels, token, bar = 0.9, 0.22, 0.8  # inches
    wide, high = (labels + token * tokens for tokens in (keys, queries))
    assert figure.get_size_inches().tolist() == pytest.approx([bar + columns * wide, rows * high])


def test_the_bar_stands_beside_all_heads_and_is_as_high_as_they_are():
    figure = attention_heads(heads(6), WORDS)
    figure.draw_without_rendering()
    *panels, bar = (ax.get_position() for ax in figure.axes)
    assert bar.x0 > max(panel.x1 for panel in panels)
    assert bar.y0 == pytest.approx(min(panel.y0 for panel in panels), abs=0.01)
    assert bar.y1 == pytest.approx(max(panel.y1 for panel in panels), abs=0.01)


def test_texts_of_keys_stand_upright_and_those_of_queries_lie():
    for ax in attention_heads(heads(), WORDS).axes[:-1]:
        assert {label.get_rotation() for label in ax.get_xticklabels()} == {90}
        assert {label.get_rotation() for label in ax.get_yticklabels()} == {0}


@pytest.mark.parametrize("word", ["a", "uncharacteristically"])
def test_no_text_is_cut_off(word):
    for figure in [*every_figure(), attention_heads(heads(5), [word] * 4)]:
        figure.draw_without_rendering()
        inside, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
        assert min(inside.x0, inside.y0) >= 0
        assert inside.x1 <= width
        assert inside.y1 <= height


def test_small_type_is_8_points_and_a_title_9():
    for ax in [ax for figure in every_figure() for ax in figure.axes]:
        small = [*ax.get_xticklabels(), *ax.get_yticklabels()]
        if ax.get_legend():
            small += ax.get_legend().get_texts()
        assert {text.get_fontsize() for text in small} == {8}
        assert not ax.get_title() or ax.title.get_fontsize() == 9


@pytest.mark.parametrize("shape", [(40, 2), (2, 40)])
def test_a_picture_of_any_shape_fills_its_panel(shape):
    figure = encoding_heatmap(torch.rand(shape))
    figure.draw_without_rendering()
    room = figure.axes[0].get_position()
    assert min(room.width, room.height) > 0.6


def test_a_single_panel_is_as_wide_as_a_phone_and_less_high():
    heatmap, similarity, _, distance = every_figure()
    sizes = [tuple(figure.get_size_inches()) for figure in (heatmap, similarity, distance)]
    assert sizes == [(4.4, 3.4), (4.0, 3.4), (4.4, 2.9)]


def test_a_token_with_dollar_signs_is_drawn_as_it_is():
    words = ["$x^$", "$$", "a$b", "$\\frac$"]
    assert drawn(attention_heads(heads(1), words)).size


def test_lines_hold_the_mass_of_each_head_and_that_of_equal_weights():
    mass, equal = torch.rand(3, 9), torch.rand(9)
    (ax,) = attention_by_distance(mass, equal).axes
    grey, *lines = ax.lines
    assert torch.equal(torch.tensor(grey.get_ydata()), equal.double())
    for line, head in zip(lines, mass, strict=True):
        assert torch.equal(torch.tensor(line.get_ydata()), head.double())
        assert line.get_xdata().tolist() == list(range(9))
    told = [text.get_text() for text in ax.get_legend().get_texts()]
    assert told == ["equal weights", "head 0", "head 1", "head 2"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("distance in tokens", "mean weight")
    assert len(attention_by_distance(mass).axes[0].lines) == 3


def test_sixteen_heads_have_sixteen_looks_and_more_are_refused():
    lines = attention_by_distance(torch.rand(16, 5)).axes[0].lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 16
    message = "mass must be of 16 heads or fewer, such as mass[:16], got 17"
    refused(message, attention_by_distance, torch.rand(17, 5))


def test_equal_weights_are_a_grey_line_twice_as_wide_as_a_head():
    grey, *lines = attention_by_distance(torch.rand(4, 5), torch.rand(5)).axes[0].lines
    _, _, color, *series = dict(THEMES)["light"].split()
    assert grey.get_color() == color
    assert [line.get_color() for line in lines] == series
    assert {grey.get_linewidth() / line.get_linewidth() for line in lines} == {2}


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (5, 1), (6, 2), (10, 2), (11, 3)])
def test_a_legend_has_up_to_five_lines_a_column_and_no_frame(count, columns):
    figure = attention_by_distance(torch.rand(count, 5))
    figure.draw_without_rendering()
    legend = figure.axes[0].get_legend()
    assert len({round(text.get_window_extent().x0) for text in legend.get_texts()}) == columns
    assert not legend.get_frame_on()


def test_distances_are_whole_numbers():
    (ax,) = attention_by_distance(torch.rand(1, 5)).axes
    assert all(tick == round(tick) for tick in ax.get_xticks())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64])
def test_tensors_of_any_dtype_with_or_without_gradient_are_drawn(dtype):
    encoding = torch.tensor([[1, -2], [0, 3]], dtype=dtype)
    if dtype.is_floating_point:
        encoding.requires_grad_()
    before = encoding.detach().clone()
    assert encoding_heatmap(encoding).axes[0].images[0].get_array().tolist() == before.tolist()
    assert torch.equal(encoding, before)


class OnADevice(torch.Tensor):
    """Like a tensor on a GPU: numpy gets it only once it is on the CPU."""

    def to(self, device):
        return self.as_subclass(torch.Tensor) if device == "cpu" else self

    def numpy(self):
        raise TypeError("copy the tensor to host memory first")


def test_tensors_on_another_device_are_drawn():
    mass = torch.rand(3, 4)
    lines = attention_by_distance(mass.as_subclass(OnADevice)).axes[0].lines
    assert torch.equal(torch.tensor([line.get_ydata().tolist() for line in lines]), mass)


# --- light and dark


@both_themes
def test_every_text_and_line_can_be_read_on_its_page(theme):
    page, ink, grey, *series = dict(THEMES)[theme].split()
    assert contrast(ink, page) > 7
    assert min(contrast(color, page) for color in (grey, *series)) > 3
    for figure in every_figure(theme):
        assert to_hex(figure.get_facecolor()) == page
        for ax in figure.axes:
            assert ax.get_facecolor()[3] == 0
            texts = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels(), *ax.get_yticklabels()]
            if ax.get_legend():
                texts += ax.get_legend().get_texts()
            assert {to_hex(text.get_color()) for text in texts if text.get_text()} == {ink}
            assert {to_hex(line.get_color()) for line in ax.lines} <= {grey, *series}
            edges = [*ax.spines.values()] if ax.images or ax.lines else [ax.spines["outline"]]
            assert {to_hex(edge.get_edgecolor()) for edge in edges} == {grey}
            ticks = [*ax.get_xticklines(), *ax.get_yticklines()]
            assert {to_hex(tick.get_markeredgecolor()) for tick in ticks} == {grey}


def test_panels_are_open_above_and_on_the_right():
    for figure in every_figure():
        panels = [ax for ax in figure.axes if ax.images or ax.lines]
        assert panels
        for ax in panels:
            assert {side for side, edge in ax.spines.items() if edge.get_visible()} == {"bottom", "left"}


@both_themes
def test_zero_has_the_color_of_the_page(theme):
    pixels = drawn(encoding_heatmap(torch.zeros(4, 4), theme))
    height, width, _ = pixels.shape
    wanted = [255 * part for part in to_rgba(page_of(theme))]
    assert pixels[height // 2, width // 2].tolist() == pytest.approx(wanted, abs=1)


def test_light_is_the_theme_unless_another_is_given():
    makers = (
        lambda: encoding_heatmap(torch.eye(2)),
        lambda: similarity_map(torch.eye(2)),
        lambda: attention_heads(heads(), WORDS),
        lambda: attention_by_distance(torch.rand(1, 3)),
    )
    for make in makers:
        assert to_hex(make().get_facecolor()) == page_of("light")


# --- nothing else is touched


def test_no_setting_is_changed_and_no_color_map_is_registered():
    settings, maps = dict(matplotlib.rcParams), list(matplotlib.colormaps)
    for theme in ("light", "dark"):
        for figure in every_figure(theme):
            drawn(figure)
    assert dict(matplotlib.rcParams) == settings
    assert list(matplotlib.colormaps) == maps


@pytest.mark.parametrize("grid", [True, False])
def test_settings_of_the_reader_do_not_turn_or_cover_the_picture(grid):
    with matplotlib.rc_context(
        {"image.origin": "lower", "axes.grid": grid, "image.interpolation": "bicubic"}
    ):
        ax = encoding_heatmap(torch.rand(3, 2)).axes[0]
    assert ax.get_ylim() == (2.5, -0.5)
    assert ax.images[0].get_interpolation() == "none"
    assert not any(line.get_visible() for line in (*ax.get_xgridlines(), *ax.get_ygridlines()))


def test_pyplot_is_not_imported_and_no_window_system_is_needed():
    code = (
        "import sys, torch; from snippets.visualize import encoding_heatmap, attention_by_distance\n"
        "encoding_heatmap(torch.eye(3)).savefig(sys.stdout.buffer, format='png')\n"
        "attention_by_distance(torch.rand(2, 3)).savefig(sys.stdout.buffer, format='svg')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"PNG" in done.stdout
    assert b"<svg" in done.stdout


def test_each_figure_is_new_and_pyplot_does_not_hold_it():
    import matplotlib.pyplot as plt

    known = plt.get_fignums()
    one, other = encoding_heatmap(torch.eye(2)), encoding_heatmap(torch.eye(2))
    assert isinstance(one, Figure)
    assert one is not other
    assert plt.get_fignums() == known


# --- what is refused, and in which words


@refusals
def test_refuses():
    for theme in ("black", "Light", ""):
        message = f"theme must be 'light' or 'dark', got {theme!r}"
        yield message, encoding_heatmap, torch.eye(2), theme
        yield message, similarity_map, torch.eye(2), theme
        yield message, partial(attention_heads, theme=theme), heads(), WORDS
        yield message, partial(attention_by_distance, theme=theme), torch.zeros(1, 2)
    for given in (torch.zeros(3), torch.zeros(0, 3), torch.zeros(1, 2, 3, 4), torch.eye(2) + 0j):
        got = f"of real numbers, got {tuple(given.shape)} of {given.dtype}"
        yield f"encoding must be (positions, dim) {got}", encoding_heatmap, given
        yield f"similarity must be (positions, positions) {got}", similarity_map, given
        yield f"weights must be (heads, queries, keys) {got}", attention_heads, given, WORDS
        yield f"mass must be (heads, distances) {got}", attention_by_distance, given
        if given.ndim > 1:
            yield f"equal must be (distances,) {got}", attention_by_distance, torch.eye(2), given
    for bad in (torch.tensor(math.nan), torch.tensor(math.inf)):
        yield "encoding must be finite, got nan or inf", encoding_heatmap, bad.expand(2, 2)
        yield "mass must be finite, got nan or inf", attention_by_distance, bad.expand(2, 2)
        yield "weights must be finite, got nan or inf", attention_heads, bad.expand(1, 4, 4), WORDS
    yield "similarity must be square, got (2, 3)", similarity_map, torch.zeros(2, 3)
    for number in (-2.5, 1.002):
        yield f"similarity must be -1 to 1, got {number}", similarity_map, torch.full((2, 2), number)
    yield "queries must be 4 labels, got 3", attention_heads, heads(), WORDS[:3]
    yield "keys must be 4 labels, got 2", attention_heads, heads(), WORDS, WORDS[:2]
    yield "keys must be 3 labels, got 4", attention_heads, heads(1, 4, 3), WORDS
    yield "equal must have 9 distances, got 8", attention_by_distance, torch.zeros(2, 9), torch.zeros(8)


def test_a_similarity_may_be_rounded():
    most = torch.full((2, 2), 1 + 1e-3, dtype=torch.float64)
    assert similarity_map(most).axes[0].images[0].get_clim() == (-1.0, 1.0)
