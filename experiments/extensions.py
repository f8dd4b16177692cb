"""Can a RoPE model that was trained on short texts be stretched to longer ones?

A model of chains with one head of DIM channels in each layer, trained as in chains.py, is evaluated with
the frequencies of each method of snippets/rope_scaling.py and with a larger base: as it is, and after a few
updates at the full length with those frequencies. "RoPE" itself is tuned likewise, for comparison.
"""

import copy
import functools

import torch

from experiments.chain_models import EVAL_LENGTH, LARGE_BASE, ROPE_BASE, TRAIN_LENGTH, chain_decoder
from experiments.chains import BANDS, EVAL_TEXTS, UPDATES, evaluation_texts, model_excess_loss, sample_chains
from experiments.chains import provenance as provenance
from experiments.chains import trained as trained_on_short_texts
from experiments.encodings import Rope
from experiments.models import DIM, train
from snippets import rope, rope_scaling

HEADS = 1
WIDTH = DIM // HEADS
FACTOR = EVAL_LENGTH / TRAIN_LENGTH
TUNING = {"updates": 150, "batch": 2, "rate": 1e-3}  # on texts of EVAL_LENGTH states
TUNING_SEED, SEARCH_SEED = 1000, 2000  # added to the seed of the texts of the tuning, and of the search
TRIALS, SEARCH_TEXTS = 48, 4  # of the search for LongRoPE's factors
PAST_TRAINING = [band for band in BANDS if band[1] >= TRAIN_LENGTH]


def methods(long_factors):
    """For each method the frequencies and the attention factor, for a text of a given length."""
    frequencies = rope.rope_frequencies(WIDTH, base=ROPE_BASE)
    larger, short = rope.rope_frequencies(WIDTH, base=LARGE_BASE), torch.ones_like(frequencies)
    scaling = rope_scaling
    return {
        "RoPE": lambda length: (frequencies, 1.0),
        "larger base": lambda length: (larger, 1.0),
        "position interpolation": lambda length: (scaling.position_interpolation(frequencies, FACTOR), 1.0),
        "NTK-aware": lambda length: (scaling.ntk_aware(frequencies, FACTOR), 1.0),
        "dynamic NTK": lambda length: (scaling.dynamic_ntk(frequencies, 1.0, TRAIN_LENGTH, length), 1.0),
        "NTK-by-parts": lambda length: (scaling.ntk_by_parts(frequencies, FACTOR, TRAIN_LENGTH), 1.0),
        "YaRN": lambda length: (
            scaling.yarn(frequencies, FACTOR, TRAIN_LENGTH),
            scaling.yarn_attention_factor(FACTOR),
        ),
        "LongRoPE": lambda length: (
            scaling.longrope(frequencies, short, long_factors, TRAIN_LENGTH, length),
            scaling.longrope_attention_factor(FACTOR, TRAIN_LENGTH),
        ),
        "Llama 3": lambda length: (scaling.llama3(frequencies, FACTOR, TRAIN_LENGTH), 1.0),
    }


def with_frequencies(model, frequencies, factor):
    """The same model with another RoPE."""
    stretched = copy.copy(model)
    stretched._modules = dict(model._modules, encoding=Rope(frequencies, factor).to(model.norm.weight.device))
    return stretched


def by_position(model, method, texts, device):
    """The excess loss in each band, each read as the end of a text that long."""
    found = {}
    for first, end in PAST_TRAINING:
        stretched = with_frequencies(model, *method(end))
        excess = model_excess_loss(stretched, texts[:, : end + 1], device)[:, first:]
        found[str(end)] = [round(each, 4) for each in excess.mean(-1).tolist()]
    return found


def search(model, device, seed, trials=TRIALS):
    """LongRoPE's factors, one for each pair: evolution from three known methods, judged by the excess loss.

    A factor is at least that of the pair before it, as in the paper, and at most the stretch.
    """
    frequencies = rope.rope_frequencies(WIDTH, base=ROPE_BASE)
    known = (
        rope_scaling.position_interpolation(frequencies, FACTOR),
        rope_scaling.ntk_aware(frequencies, FACTOR),
        rope_scaling.yarn(frequencies, FACTOR, TRAIN_LENGTH),
    )
    generator = torch.Generator().manual_seed(seed)
    texts = sample_chains(SEARCH_TEXTS, EVAL_LENGTH + 1, SEARCH_SEED + seed)
    attention = rope_scaling.longrope_attention_factor(FACTOR, TRAIN_LENGTH)

    @functools.cache
    def judge(factors):
        stretched = with_frequencies(model, frequencies / torch.tensor(factors), attention)
        return model_excess_loss(stretched, texts, device).mean().item()

    pool = [tuple((frequencies / each).tolist()) for each in known]
    while judge.cache_info().currsize < trials:
        parents = sorted(pool, key=judge)[:4]
        parent = parents[int(torch.randint(len(parents), (), generator=generator))]
        change = torch.randn(len(parent), generator=generator).mul(0.3).exp()
        child = (torch.tensor(parent) * change).clamp(1, FACTOR).cummax(0).values
        pool.append(tuple(child.tolist()))
        judge(pool[-1])
    return torch.tensor(min(pool, key=judge))


def run(method, seed, device, updates=UPDATES, count=EVAL_TEXTS, trials=TRIALS, tuning=TUNING):
    """Train once; then every method, untuned and tuned."""
    model = trained_on_short_texts(chain_decoder("RoPE", seed, HEADS), seed, device, updates)
    factors, found = search(model, device, seed, trials), {}
    for name, scaled in methods(factors).items():
        found[f"untuned {name}"] = by_position(model, scaled, evaluation_texts(count), device)
        tuned = with_frequencies(copy.deepcopy(model), *scaled(EVAL_LENGTH))
        texts = sample_chains(tuning["updates"] * tuning["batch"], EVAL_LENGTH + 1, TUNING_SEED + seed)
        train(tuned, zip(texts.split(tuning["batch"])), device, tuning["updates"], tuning["rate"])
        found[f"tuned {name}"] = by_position(tuned, scaled, evaluation_texts(count), device)
    return {"longrope_factors": [round(each, 4) for each in factors.tolist()], "excess_loss": found}
