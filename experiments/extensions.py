"""Can a RoPE model that was trained on short texts be stretched to longer ones?

The RoPE model of language.py, trained at length 128, is asked about windows of 1024 with the
frequencies of each method of snippets/rope_scaling.py: as it is, and after a few updates at length
1024 with those frequencies. "RoPE" itself is tuned likewise, for comparison.
"""

import copy
import functools

import torch

from experiments import corpus, language
from experiments.encodings import Rope
from snippets import rope, rope_scaling

provenance = language.provenance

WIDTH = language.DIM // language.HEADS
TRAINED, ASKED = language.TRAINED, language.ASKED
FACTOR = ASKED / TRAINED
TUNING = {"updates": 40, "length": ASKED, "batch": 2, "rate": 1e-3}
STEP = 128  # positions that share a length, where the frequencies depend on the length
TRIALS, SEARCHED = 48, 4  # of the search for LongRoPE's factors, and the windows that it looks at


def methods(long_factors):
    """For each method the frequencies and the attention factor, for a text of a given length."""
    frequencies = rope.rope_frequencies(WIDTH, base=10000)
    short = torch.ones_like(frequencies)
    scaling = rope_scaling
    return {
        "RoPE": lambda length: (frequencies, 1.0),
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


def with_frequencies(model, frequencies, factor):
    """The same model with another RoPE."""
    stretched = copy.copy(model)
    stretched._modules = dict(model._modules, encoding=Rope(frequencies, factor).to(model.norm.weight.device))
    return stretched


def by_position(model, method, windows, device):
    """The loss at each position. Each stretch of STEP positions is read as the end of a text that long."""
    lengths = range(STEP, ASKED + 1, STEP)
    groups = {}
    for length in lengths:
        key = tuple(method(length)[0].tolist())
        groups.setdefault(key, []).append(length)
    loss = torch.empty(ASKED)
    for group in groups.values():
        stretched = with_frequencies(model, *method(group[-1]))
        found = language.by_position(stretched, windows[:, : group[-1] + 1], device)
        first = group[0] - STEP
        loss[first : group[-1]] = found[first:]
    return loss


def search(model, device, seed, trials=TRIALS):
    """LongRoPE's factors, one for each pair: evolution from three known methods, judged by the loss.

    A factor is at least that of the pair before it, as in the paper, and at most the stretch.
    """
    frequencies = rope.rope_frequencies(WIDTH, base=10000)
    known = (
        rope_scaling.position_interpolation(frequencies, FACTOR),
        rope_scaling.ntk_aware(frequencies, FACTOR),
        rope_scaling.yarn(frequencies, FACTOR, TRAINED),
    )
    generator = torch.Generator().manual_seed(seed)
    windows = corpus.windows(corpus.corpus()[0], SEARCHED, ASKED + 1, generator)
    attention = rope_scaling.longrope_attention_factor(FACTOR, TRAINED)

    @functools.cache
    def judge(factors):
        stretched = with_frequencies(model, frequencies / torch.tensor(factors), attention)
        return language.by_position(stretched, windows, device).mean().item()

    pool = [tuple((frequencies / each).tolist()) for each in known]
    while judge.cache_info().currsize < trials:
        parents = sorted(pool, key=judge)[:4]
        parent = parents[int(torch.randint(len(parents), (), generator=generator))]
        change = torch.randn(len(parent), generator=generator).mul(0.3).exp()
        child = (torch.tensor(parent) * change).clamp(1, FACTOR).cummax(0).values
        pool.append(tuple(child.tolist()))
        judge(pool[-1])
    return torch.tensor(min(pool, key=judge))


def run(method, seed, device, updates=language.UPDATES, count=language.WINDOWS, trials=TRIALS, tuning=TUNING):
    """Train once; then every method, untuned and tuned."""
    model = language.train(language.decoder("RoPE", seed), seed, device, updates)
    windows = language.held_out(count)
    factors = search(model, device, seed, trials)
    results = {"longrope_factors": [round(each, 4) for each in factors.tolist()], "untuned": {}, "tuned": {}}
    for name, scaled in methods(factors).items():
        results["untuned"][name] = language.binned(by_position(model, scaled, windows, device))
        tuned = with_frequencies(copy.deepcopy(model), *scaled(ASKED))
        language.train(tuned, seed + 1000, device, **tuning)
        results["tuned"][name] = language.binned(by_position(tuned, scaled, windows, device))
    return results
