"""The picture of a page that is shared: what stands on it, and where."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from executable_prose.figures import svg
from executable_prose.figures.standalone import SVG
from executable_prose.site import pictures, social_cards

PAGE = """---
title: Lines
description: >-
  Lines that rise,
  one by one: how, why. And more.
---

# Lines: a story
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PAGE, ("Lines: a story", "Lines that rise, one by one")),
        ("# Only a heading\n", ("Only a heading", "")),
    ],
)
def test_a_card_has_the_heading_and_the_first_words_of_the_description(text, words):
    assert social_cards.words(text) == words


@pytest.fixture
def figure():
    svg.prepare()
    fig, ax = plt.subplots()
    ax.plot([0, 1], color="C0", lw=9)
    yield svg.to_svg(fig, "a")
    plt.close(fig)


def test_its_words_stand_at_the_left_and_the_figure_at_the_right(figure, here):
    square = '<rect width="1" height="1" fill="#c44e00"/>'
    mark = f'<svg xmlns="{SVG}" viewBox="0 0 1 1">{square}</svg>'

    def drawn(*parts):
        with Image.open(pictures.png(social_cards.draw(*parts), *social_cards.SIZE)) as card:
            assert card.size == social_cards.SIZE
            return np.asarray(card.convert("RGB")).astype(int)

    whole = drawn("A title of many words, all of which have room", "A sentence. " * 40, figure, mark)
    blue = (abs(whole - (0x00, 0x60, 0xA8)).sum(-1) < 60).nonzero()[1]
    assert len(blue) > 100 and blue.min() > 590
    other = drawn("", "", figure, mark)
    moved = (whole != other).any(-1).nonzero()
    assert moved[1].min() >= 50 and moved[1].max() < 590, "all words left of the figure"
    assert moved[0].min() >= 50 and moved[0].max() < 535, "and above the mark"
    assert (whole[550, 80] == (0xC4, 0x4E, 0x00)).all()
