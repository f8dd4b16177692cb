"""What figures of all chapters share."""

from itertools import pairwise

import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import same_color

from exhibits._drawing import COLORS, centred, name_lines, spaced
from experiments.runs import load
from tests.rows import each_of


def test_labels_keep_their_distance_and_their_order():
    assert spaced([0.0, 0.1, 5.0], 1.0) == [0.0, 1.0, 5.0]
    assert centred([0.0, 0.2, 5.0], 1.0) == pytest.approx([-0.4, 0.6, 5.0])
    assert centred([0.0, 0.9, 1.0, 1.1], 1.0) == pytest.approx([-0.75, 0.25, 1.25, 2.25])


def test_every_method_has_one_colour():
    assert COLORS.keys() == load("language").keys()


@each_of("scale", ["linear", "log"])
def test_each_line_has_its_name_in_its_colour_and_no_two_names_touch(scale):
    figure, ax = plt.subplots()
    for color, end in (("C0", 2.0), ("C1", 2.01), ("C2", 900.0)):
        ax.plot([1, 2], [1, end], color, label=color)
    ax.plot([1, 2], [5, 5])
    ax.set_yscale(scale)
    ax.set_ylim(1, 10)
    name_lines(ax)
    figure.draw_without_rendering()
    assert [text.get_text() for text in ax.texts] == ["C0", "C1", "C2"]
    assert all(same_color(text.get_color(), text.get_text()) for text in ax.texts)
    boxes = [text.get_window_extent() for text in ax.texts]
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(boxes))
    assert all(box.x0 > ax.transData.transform((2, 1))[0] for box in boxes)
    plt.close(figure)
