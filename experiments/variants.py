"""What else is measured of the models and the bytes of language.py.

with a window       no key is seen at that distance or farther, nothing retrained; the learned table ends
                    where training ended, and gives every position past it its last row
with a slow fade    trained as there, with a fade made for eight times the training length
both ways           the same bytes in windows that slide, and in windows that lie side by side
5-gram              no model: counts of five bytes in a row, in the windows that the models learned from
"""

import torch

from experiments import corpus, language
from experiments.language import EVAL_LENGTH, SCORED, TRAIN_LENGTH, UPDATES, WINDOWS_PER_FILE
from experiments.models import clamped_table, decoder, next_token_losses, windowed

WINDOWS = (32, 64, 128, EVAL_LENGTH)  # bytes that a layer sees, the current one included; the last hides none
SLOWER = 8
LENGTHS = (128, 256, 512, 1024)  # of windows that slide or lie side by side
ORDER = 5
provenance = language.provenance


def with_a_window(name, seed, device, updates, texts):
    """The losses of the same bytes by window, then by the bytes before them."""
    model = language.byte_decoder("none" if name == "learned" else name, seed)
    model.encoding = clamped_table(TRAIN_LENGTH) if name == "learned" else model.encoding
    encoding, found = language.trained(model, seed, device, updates).encoding, {}
    for window in WINDOWS:
        model.encoding = windowed(encoding, window)
        found[str(window)] = language.loss_by_context(model, texts, device)
    return found


def with_a_slow_fade(name, seed, device, updates, texts):
    """The losses of the same bytes by the bytes before them."""
    model = decoder(name, corpus.VOCABULARY, seed, SLOWER * EVAL_LENGTH)
    return language.loss_by_context(language.trained(model, seed, device, updates), texts, device)


def both_ways(name, seed, device, updates, texts):
    """The losses of the last SCORED bytes of one stretch of each file, by the length of the windows read.

    Sliding: with as many bytes before them as the window holds. Side by side: with as many as happen to stand
    between the window's beginning and them, each multiple of SCORED equally often.
    """
    model = language.trained(language.byte_decoder(name, seed), seed, device, updates)
    ids = corpus.spread(corpus.corpus()[1], 1, EVAL_LENGTH + 1).flatten(0, 1)
    losses = []
    for end in range(SCORED, EVAL_LENGTH + 1, SCORED):
        with torch.no_grad():
            parts = ids[:, -(end + 1) :].to(device).split(4 * EVAL_LENGTH // end)
            losses.append(torch.cat([next_token_losses(model, part)[:, -SCORED:].mean(-1) for part in parts]))
    losses = torch.stack(losses).cpu()
    return {
        "sliding": {str(length): rounded(losses[length // SCORED - 1]) for length in LENGTHS},
        "side by side": {str(length): rounded(losses[: length // SCORED].mean(0)) for length in LENGTHS},
    }


def rounded(losses):
    return [round(each, 3) for each in losses.tolist()]


def n_grams(name, seed, device, updates, texts):
    """The losses of the last SCORED bytes of each window, by n: the predicted byte is the last of n.

    Each n falls back on the one below, by Witten and Bell's rule: the more distinct bytes followed a context,
    the more.
    """
    windows = torch.cat([batch for (batch,) in language.training_windows(seed, updates)])
    probability = torch.full((len(texts), SCORED), 1 / corpus.VOCABULARY, dtype=torch.float64)
    found = {}
    for n in range(1, ORDER + 1):
        grams, counts = as_numbers(windows.unfold(1, n, 1)).unique(return_counts=True)
        contexts, which, distinct = (grams // corpus.VOCABULARY).unique(
            return_inverse=True, return_counts=True
        )
        totals = torch.zeros_like(contexts).index_add(0, which, counts)
        scored = as_numbers(texts[:, -(SCORED + n - 1) :].unfold(1, n, 1))
        count = looked_up(scored, grams, counts)
        total, kinds = (looked_up(scored // corpus.VOCABULARY, contexts, each) for each in (totals, distinct))
        smoothed = (count + kinds * probability) / (total + kinds)
        probability = torch.where(total > 0, smoothed, probability)
        found[str(n)] = rounded(-probability.log().mean(-1))
    return found


def as_numbers(grams):
    """Bytes in a row as one number: (..., bytes) to (...)."""
    return (grams * corpus.VOCABULARY ** torch.arange(grams.shape[-1]).flip(0)).sum(-1)


def looked_up(wanted, keys, values):
    """The value of each wanted key, 0 where there is none; keys are sorted."""
    place = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
    return torch.where(keys[place] == wanted, values[place], 0)


VARIANTS = {
    "with a window": with_a_window,
    "with a slow fade": with_a_slow_fade,
    "both ways": both_ways,
    "5-gram": n_grams,
}


def run(method, seed, device, updates=UPDATES, each=WINDOWS_PER_FILE):
    texts = language.windows_of_each_file(each)
    name, _, variant = method.partition(" ")
    return {"loss_by_context": VARIANTS[variant or name](name, seed, device, updates, texts)}
