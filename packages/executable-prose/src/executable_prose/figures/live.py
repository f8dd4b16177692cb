"""What makes a figure live: the reader moves its controls, and what is named
in `moves` takes new numbers.

An exhibit returns a Live beside its figure. Its function, one of snippets and
plain torch, is exported while the site is built, and the page runs that
graph. See docs/contributing.md.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from matplotlib.artist import Artist
from torch import Tensor


@dataclass(frozen=True)
class Slider:
    """A number to set, from low to high; the function gets it as a tensor of
    no axis, in float64.

    log: it spans powers of ten, and stops at numbers of three digits.
    shows: what stands beside the label, a format string of `value`; as it is,
    with all digits that the number has.
    drag, along: the artist by which the figure itself is dragged, and the
    axis of it that the slider follows, x or y.
    button: words on a button that moves the slider by one step.
    """

    label: str
    low: float
    high: float
    start: float
    step: float = 1.0
    log: bool = False
    shows: str = "{value:,}"
    drag: str = ""
    along: str = "x"
    button: str = ""


@dataclass(frozen=True)
class Choice:
    """One of a few; the function gets its text. A graph is made for each.

    A click on the same words in the figure chooses as well.
    """

    label: str
    options: tuple[str, ...]
    start: str


@dataclass(frozen=True)
class Order:
    """A row of cards; the function gets, as a tensor (cards,) in float64,
    which of them, counted from 0, stands in each place.

    In words, {name} is what the cards say, in their order.
    """

    label: str
    cards: tuple[str, ...]

    @property
    def start(self) -> list[int]:
        return list(range(len(self.cards)))


@dataclass
class Live:
    """A function of the controls, and what its numbers move.

    moves names artists of the figure. What the function returns under a name
    is for
      a line or points    (points, 2): x and y, in the units of the axes;
                          inf leaves a gap
      bars                (bars,): how high each is
      an image            (rows, columns), within the limits of its colours
      a text              (2,): where it stands; none if it stays there
    Other names are single numbers, for words: says, what the figure shows
    now, for those who do not see it; texts, what text artists say. In these
    {name} is a chosen text, or a number with all digits that it has,
    {name:.2f} a number, {name:,.2f} one with commas and a true minus,
    {name:.2f up} or {name:.2f down} a bound on its safe side, and
    {name|none|one|more} picks words by a number. tolerance is how far the
    numbers of the page may be from those of torch.

    call, where there is one, is code that gives the sentence's numbers, those of `function`, one
    after the other in lines that assign nothing; draws names artists, and
    what of the code they draw. It runs beside the copied files, with what is
    `given` besides; title says otherwise if there is such a thing. Without a
    call no code is offered.
    """

    function: Callable[..., dict[str, Tensor]]
    controls: dict[str, Slider | Choice | Order]
    says: str
    call: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    title: str = "The code that gives this"
    draws: dict[str, str] = field(default_factory=dict)
    given: dict[str, object] = field(default_factory=dict)
    tolerance: float = 0.0
    moves: dict[str, Artist] = field(default_factory=dict)

    def start(self) -> dict[str, Tensor]:
        """What the function returns before anything was moved."""
        return self.function(
            **{
                name: each.start
                if isinstance(each, Choice)
                else torch.tensor(each.start, dtype=torch.float64)
                for name, each in self.controls.items()
            }
        )

    def words(self, values: dict[str, Any]) -> dict[str, Any]:
        """Values of the controls as they are told in words."""
        orders = {
            name: " ".join(each.cards[card] for card in values[name])
            for name, each in self.controls.items()
            if isinstance(each, Order)
        }
        return values | orders
