"""Where a method acts, how and by what: asked of what comes out of it."""

from typing import NamedTuple

import torch

from exhibits._methods import Sizes, attend

SIZES = Sizes(width=32, heads=2, length=64, threshold=4)
TOKENS, QUERY, KEY = 12, 9, 4  # a text, and a pair of its places
BEFORE, BETWEEN = 21, 4  # tokens that move the pair, and that part it
NOTHING = 1e-4  # a change that is none: some files round to float32
STEPS = ("input", "q and k", "scores", "softmax", "output")
ACTS = ("add", "rotate", "scale", "mix", "gate")


class Place(NamedTuple):
    """Where a method stands on the map."""

    acts: dict[str, tuple]  # by step, what it does there
    by: tuple  # by what it does it
    changes: tuple  # the sizes of all changes that were looked at


class _Probe:
    """A method under questions. Each asks whether something changes."""

    def __init__(self, method, axes):
        if method.module:
            method.module.double()
        self.method, self.axes, self.changes = method, axes, []
        self.x = self.tokens(TOKENS)
        self.at = self.places(TOKENS)
        steps = attend(method, self.x, self.at, SIZES.heads)
        self.v, self.weights = steps.v, steps.weights
        self.only = torch.zeros_like(steps.weights)
        self.only[:, QUERY, KEY] = 1  # of all that the query may take

    def tokens(self, count):
        return torch.randn(count, SIZES.width, dtype=torch.float64)

    def places(self, tokens):
        at = torch.arange(tokens)
        if self.axes == 1:
            return at
        # tokens that come first move each coordinate of all others alike
        other = at % 3 + 5 * (at // BEFORE)
        return torch.stack((at, *[other] * (self.axes - 1)), -1)

    def seen(self, change):
        """Whether a change is one; how large it was is kept."""
        self.changes.append(change.abs().max().item())
        return self.changes[-1] > NOTHING

    def vectors(self, step, x):
        """What a step does with each of the vectors x, on its own.

        A map that is not affine gates. One that is adds what it makes of
        zeros; its matrix rotates and scales, by its polar factors.
        """
        if not self.seen(step(x) - x):
            return ()
        zeros, other = torch.zeros_like(x), torch.randn_like(x)
        made = step(zeros)
        if self.seen(step(x + other) - step(x) - step(other) + made):
            return ("gate",)
        units = torch.eye(x.shape[-1], dtype=x.dtype)
        images = [step(zeros + unit) - made for unit in units]
        left, sizes, right = torch.linalg.svd(torch.stack(images, -1))
        changes = {"add": made, "rotate": left @ right - units}
        changes["scale"] = sizes - 1
        return tuple(act for act in changes if self.seen(changes[act]))

    def input(self):
        return self.vectors(lambda x: self.method.add(x, self.at), self.x)

    def turned(self):
        def by_role(role):
            return lambda x: self.method.turn(x, self.at, role)

        query, key = (
            self.vectors(by_role(role), self.v) for role in ("query", "key")
        )
        return tuple(act for act in ACTS if act in query + key)

    def beside(self, x):
        """What the score of the pair is beside its product."""
        steps = attend(self.method, x, self.at, SIZES.heads)
        product = (steps.q[:, QUERY] * steps.k[:, KEY]).sum(-1)
        return steps.scores[:, QUERY, KEY] - product * SIZES.dim**-0.5

    def scores(self):
        """What is done to the score of a pair, and whose contents decide it.

        The same for all contents: it adds. Affine in those of the query, of
        the key, and of those between: it mixes. Else it gates.
        """
        first, other = self.beside(self.x), self.tokens(TOKENS)
        if not self.seen(first):
            return (), ()

        def with_rows(rows, content):
            x = self.x.clone()
            x[rows] = content[rows]
            return self.beside(x)

        heard, bent = [], []
        for name, rows in (
            ("query", QUERY),
            ("key", KEY),
            ("tokens between", slice(KEY + 1, QUERY)),
        ):
            swapped = with_rows(rows, other)
            if self.seen(swapped - first):
                heard.append(name)
            both = with_rows(rows, self.x + other)
            neither = with_rows(rows, 0 * other)
            bent.append(both - swapped - first + neither)
        if not heard:
            return ("add",), ()
        gates = self.seen(torch.stack(bent))
        return ("gate" if gates else "mix",), tuple(heard)

    def softmax(self):
        return ("add",) if self.seen(1 - self.weights.sum(-1)) else ()

    def output(self):
        """What the query is given beside the value of the key."""

        def beside(v):
            taken = self.method.take(self.only, v, self.at)
            return (taken - self.only @ v)[:, QUERY]

        first, other = beside(self.v), torch.randn_like(self.v)
        if not self.seen(first):
            return ()
        return ("mix",) if self.seen(beside(other) - first) else ("add",)

    def pair(self, x, at, query=QUERY, key=KEY):
        """All that tells where two tokens stand: their score, and what the
        one is given beside the value of the other.
        """
        steps = attend(self.method, x, at, SIZES.heads)
        only = torch.zeros_like(steps.weights)
        only[:, query, key] = 1
        given = self.method.take(only, steps.v, at) - only @ steps.v
        score = steps.scores[:, query, key, None]
        return torch.cat((score, given[:, query]), -1)

    def by_place(self):
        """Whether it matters that other tokens come first."""
        moved = self.pair(
            torch.cat((self.tokens(BEFORE), self.x)),
            self.places(BEFORE + TOKENS),
            BEFORE + QUERY,
            BEFORE + KEY,
        )
        return self.seen(moved - self.pair(self.x, self.at))

    def by_distance(self):
        """Whether tokens between the two matter, whatever they hold."""
        here, kinds = self.pair(self.x, self.at), self.tokens(9)
        kinds[8] = self.x[QUERY]  # and none, and long ones that shut gates
        kinds = torch.cat((kinds, 0 * kinds[:1], 1e3 * kinds, -1e3 * kinds))
        return all(
            self.seen(
                self.pair(
                    torch.cat(
                        (
                            self.x[: KEY + 1],
                            kind.expand(BETWEEN, -1),
                            self.x[KEY + 1 :],
                        )
                    ),
                    self.places(TOKENS + BETWEEN),
                    QUERY + BETWEEN,
                )
                - here
            )
            for kind in kinds
        )

    def by_axes(self):
        """Whether each of several coordinates of a position matters."""
        here, change = self.pair(self.x, self.at), []
        for step in torch.eye(self.axes).long():
            at = self.at.clone()
            at[KEY] = at[KEY] + step
            change.append(self.seen(self.pair(self.x, at) - here))
        return self.axes > 1 and all(change)


@torch.no_grad()
def place(method, axes=1):
    """Where a method acts, how, and by what, as found by running it."""
    probe = _Probe(method, axes)
    on_scores, heard = probe.scores()
    acts = dict(
        zip(
            STEPS,
            (
                probe.input(),
                probe.turned(),
                on_scores,
                probe.softmax(),
                probe.output(),
            ),
            strict=True,
        )
    )
    by_place, by_distance = probe.by_place(), probe.by_distance()
    # A place is also a distance from another, but only pairs are given it.
    of_pairs = bool(acts["scores"] or acts["output"]) or not by_place
    by = {
        "distance": by_distance and of_pairs,
        "position": by_place,
        "each axis": probe.by_axes(),
        "own content": "gate" in acts["input"],
    }
    by = (*(name for name in by if by[name]), *heard)
    return Place(acts, by, tuple(probe.changes))
