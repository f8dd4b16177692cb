"""Can a RoPE model that was trained on short texts be stretched to longer ones?

A model of chains with one head of 64 in each layer, trained as in chains.py, is asked with the frequencies of
each method of snippets/rope_scaling.py and with a larger base: as it is, and after a few updates at the full
length with those frequencies. "RoPE" itself is tuned likewise, for comparison.
"""

import copy
import functools

import torch

from experiments.chains import BANDS, STATES, TEXTS, asked, asked_about, draw
from experiments.chains import provenance as provenance
from experiments.encodings import Rope
from experiments.recent import BASE
from experiments.recipes import train
from experiments.regimes import ASKED, BATCH, DIM, LAYERS, RATE, TRAINED, UPDATES
from snippets import rope, rope_scaling
from snippets.block import Decoder

HEADS = 1
WIDTH = DIM // HEADS
FACTOR = ASKED / TRAINED
TUNING = {"updates": 150, "batch": 2, "rate": 1e-3}  # on texts of ASKED states
AGAIN, SEARCH = 1000, 2000  # added to the seed of the texts of the tuning, and of the search
TRIALS, SEARCHED = 48, 4  # of the search for LongRoPE's factors, and the texts that it looks at
PLACES = [band for band in BANDS if band[1] >= TRAINED]


def methods(long_factors):
    """For each method the frequencies and the attention factor, for a text of a given length."""
    frequencies = rope.rope_frequencies(WIDTH, base=10000)
    larger, short = rope.rope_frequencies(WIDTH, base=BASE), torch.ones_like(frequencies)
    scaling = rope_scaling
    return {
        "RoPE": lambda length: (frequencies, 1.0),
        "larger base": lambda length: (larger, 1.0),
        "position interpolation": lambda length: (scaling.position_interpolation(frequencies, FACTOR), 1.0),
        "NTK-aware": lambda length: (scaling.ntk_aware(frequencies, FACTOR), 1.0),
        "dynamic NTK": lambda length: (scaling.dynamic_ntk(frequencies, 1.0, TRAINED, length), 1.0),
        "NTK-by-parts": lambda length: (scaling.ntk_by_parts(frequencies, FACTOR, TRAINED), 1.0),
        "YaRN": lambda length: (
            scaling.yarn(frequencies, FACTOR, TRAINED),
            scaling.yarn_attention_factor(FACTOR),
        ),
        "LongRoPE": lambda length: (
            scaling.longrope(frequencies, short, long_factors, TRAINED, length),
            scaling.longrope_attention_factor(FACTOR, TRAINED),
        ),
        "Llama 3": lambda length: (scaling.llama3(frequencies, FACTOR, TRAINED), 1.0),
    }


def decoder(seed):
    torch.manual_seed(seed)
    plain = Rope(rope.rope_frequencies(WIDTH, base=10000))
    return Decoder(plain, STATES, DIM, HEADS, LAYERS, scale=DIM**0.5)


def with_frequencies(model, frequencies, factor):
    """The same model with another RoPE."""
    stretched = copy.copy(model)
    stretched._modules = dict(model._modules, encoding=Rope(frequencies, factor).to(model.norm.weight.device))
    return stretched


def by_place(model, method, texts, device):
    """How far it is from the best possible in each band, each read as the end of a text that long."""
    found = {}
    for first, end in PLACES:
        stretched = with_frequencies(model, *method(end))
        far = asked_about(stretched, texts[:, : end + 1], device)[:, first:]
        found[str(end)] = [round(each, 4) for each in far.mean(-1).tolist()]
    return found


def search(model, device, seed, trials=TRIALS):
    """LongRoPE's factors, one for each pair: evolution from three known methods, judged by the distance.

    A factor is at least that of the pair before it, as in the paper, and at most the stretch.
    """
    frequencies = rope.rope_frequencies(WIDTH, base=10000)
    known = (
        rope_scaling.position_interpolation(frequencies, FACTOR),
        rope_scaling.ntk_aware(frequencies, FACTOR),
        rope_scaling.yarn(frequencies, FACTOR, TRAINED),
    )
    generator = torch.Generator().manual_seed(seed)
    texts = draw(SEARCHED, ASKED + 1, SEARCH + seed)
    attention = rope_scaling.longrope_attention_factor(FACTOR, TRAINED)

    @functools.cache
    def judge(factors):
        stretched = with_frequencies(model, frequencies / torch.tensor(factors), attention)
        return asked_about(stretched, texts, device).mean().item()

    pool = [tuple((frequencies / each).tolist()) for each in known]
    while judge.cache_info().currsize < trials:
        parents = sorted(pool, key=judge)[:4]
        parent = parents[int(torch.randint(len(parents), (), generator=generator))]
        change = torch.randn(len(parent), generator=generator).mul(0.3).exp()
        child = (torch.tensor(parent) * change).clamp(1, FACTOR).cummax(0).values
        pool.append(tuple(child.tolist()))
        judge(pool[-1])
    return torch.tensor(min(pool, key=judge))


def run(method, seed, device, updates=UPDATES, count=TEXTS, trials=TRIALS, tuning=TUNING):
    """Train once; then every method, untuned and tuned."""
    texts = draw(updates * BATCH, TRAINED + 1, seed)
    model = train(decoder(seed), texts.split(BATCH), updates, device, RATE, table=1)
    factors, found = search(model, device, seed, trials), {}
    for name, scaled in methods(factors).items():
        found[f"untuned {name}"] = by_place(model, scaled, asked(count), device)
        tuned = with_frequencies(copy.deepcopy(model), *scaled(ASKED))
        texts = draw(tuning["updates"] * tuning["batch"], ASKED + 1, AGAIN + seed)
        train(tuned, texts.split(tuning["batch"]), tuning["updates"], device, tuning["rate"], table=1)
        found[f"tuned {name}"] = by_place(tuned, scaled, asked(count), device)
    return {"longrope_factors": [round(each, 4) for each in factors.tolist()], "above": found}
