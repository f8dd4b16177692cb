"""What else is asked about the models and the bytes of language.py?

with a window       no key is seen that stands so many bytes back or farther, nothing retrained; the learned
                    table ends where training ended, and gives every place past it its last row
with a slow fade    trained as there, with a fade made for eight times the trained length
both ways           the same bytes in windows that slide, and in windows that lie side by side
5-gram              no model: counts of five bytes in a row, in the windows that the models learned from
"""

import torch

from experiments import corpus, language
from experiments.encodings import make
from experiments.language import ASKED, BATCH, CLIP, DIM, EACH, FAR, HEADS, TRAINED, UPDATES
from experiments.regimes import clamped, windowed

WINDOWS = (32, 64, 128, ASKED)  # bytes seen, the one that asks included; the last hides nothing
SLOWER = 8
LENGTHS = (128, 256, 512, 1024)  # of windows that slide or lie side by side
ORDER = 5
provenance = language.provenance


def with_a_window(name, seed, device, updates, far):
    """The losses of the same bytes by window, then by the bytes read before them."""
    model = language.decoder("none" if name == "learned" else name, seed)
    model.encoding = clamped() if name == "learned" else model.encoding
    encoding, found = language.train(model, seed, device, updates).encoding, {}
    for window in WINDOWS:
        model.encoding = windowed(encoding, window)
        found[str(window)] = language.by_context(model, far, device)
    return found


def with_a_slow_fade(name, seed, device, updates, far):
    """The losses of the same bytes by the bytes read before them."""
    model = language.decoder("none", seed)
    model.encoding = make(name, DIM, HEADS, SLOWER * ASKED, CLIP)
    return language.by_context(language.train(model, seed, device, updates), far, device)


def both_ways(name, seed, device, updates, far):
    """The losses of the last FAR bytes of one stretch of each file, by the length of the windows read.

    Sliding: with as many bytes before them as the window holds. Side by side: with as many as happen to stand
    between the window's beginning and them, each multiple of FAR equally often.
    """
    model = language.train(language.decoder(name, seed), seed, device, updates)
    ids = corpus.spread(corpus.corpus()[1], 1, ASKED + 1).flatten(0, 1)
    losses = []
    for end in range(FAR, ASKED + 1, FAR):
        with torch.no_grad():
            parts = ids[:, -(end + 1) :].to(device).split(4 * ASKED // end)
            losses.append(torch.cat([language.losses(model, part)[:, -FAR:].mean(-1) for part in parts]))
    losses = torch.stack(losses).cpu()
    return {
        "sliding": {str(length): rounded(losses[length // FAR - 1]) for length in LENGTHS},
        "side by side": {str(length): rounded(losses[: length // FAR].mean(0)) for length in LENGTHS},
    }


def rounded(losses):
    return [round(each, 3) for each in losses.tolist()]


def grams(name, seed, device, updates, far):
    """The losses of the last FAR bytes of each window, by how many bytes are looked at, the last included.

    Each number falls back on the one below, by Witten and Bell's rule: the more kinds of bytes followed what
    stands before, the more.
    """
    generator = torch.Generator().manual_seed(seed)
    train = corpus.corpus()[0]
    seen = torch.cat([corpus.windows(train, BATCH, TRAINED + 1, generator) for _ in range(updates)])
    chance, found = torch.full((len(far), FAR), 1 / corpus.VOCABULARY, dtype=torch.float64), {}
    for order in range(1, ORDER + 1):
        kinds, many = coded(seen.unfold(1, order, 1)).unique(return_counts=True)
        before, which, follow = (kinds // corpus.VOCABULARY).unique(return_inverse=True, return_counts=True)
        total = torch.zeros_like(before).index_add(0, which, many)
        asked = coded(far[:, -(FAR + order - 1) :].unfold(1, order, 1))
        count = looked_up(asked, kinds, many)
        times, others = (looked_up(asked // corpus.VOCABULARY, before, each) for each in (total, follow))
        likely = (count + others * chance) / (times + others)
        chance = torch.where(times > 0, likely, chance)
        found[str(order)] = rounded(-chance.log().mean(-1))
    return found


def coded(grams):
    """Bytes in a row as one number: (..., bytes) to (...)."""
    return (grams * corpus.VOCABULARY ** torch.arange(grams.shape[-1]).flip(0)).sum(-1)


def looked_up(asked, keys, values):
    """The value of each key that is asked for, 0 where there is none; keys are sorted."""
    at = torch.searchsorted(keys, asked).clamp(max=len(keys) - 1)
    return torch.where(keys[at] == asked, values[at], 0)


VARIANTS = {
    "with a window": with_a_window,
    "with a slow fade": with_a_slow_fade,
    "both ways": both_ways,
    "5-gram": grams,
}


def run(method, seed, device, updates=UPDATES, each=EACH):
    far = corpus.spread(corpus.corpus()[1], each, ASKED).flatten(0, 1)
    name, _, variant = method.partition(" ")
    return {"far": VARIANTS[variant or name](name, seed, device, updates, far)}
