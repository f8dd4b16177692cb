"""What stacks made of the configurations of docs/dialects.toml, in words.

Each rotation is compared with those that the snippets give for what a configuration may mean.
"""

import json
import tomllib
from pathlib import Path

import torch

from snippets.rope import rope_frequencies
from snippets.rope_scaling import dynamic_ntk, llama3, position_interpolation, yarn, yarn_attention_factor

ROOT = Path(__file__).parents[1]
DATA = tomllib.loads((ROOT / "docs" / "dialects.toml").read_text("utf-8"))
RESULTS = ROOT / "experiments" / "results" / "dialects.json"
DIM, BASE, LENGTH, ORIGINAL, FACTOR = 32, 500_000.0, 16384, 4096, 4.0
EQUAL = 0.002  # llama.cpp's angles are read from weights of attention in float32


def meanings():
    """What a configuration may mean: a step's angles, attention's factor."""
    plain = rope_frequencies(DIM, base=BASE)
    sharper = yarn_attention_factor(FACTOR)
    still = torch.zeros(DIM // 4, dtype=torch.float64)  # half of the pairs

    def yarned(original=ORIGINAL, **more):
        return yarn(plain, FACTOR, original, **more)

    halves = torch.cat((rope_frequencies(DIM // 2, base=BASE), still))
    return {
        "base 500,000": (plain, 1.0),
        "base 10,000": (rope_frequencies(DIM, base=10000), 1.0),
        "linear": (position_interpolation(plain, FACTOR), 1.0),
        "half of each head": (halves, 1.0),
        "half of the frequencies of the whole head": (
            torch.cat((plain[: DIM // 4], still)),
            1.0,
        ),
        "dynamic": (dynamic_ntk(plain, 2.0, LENGTH, 2 * LENGTH), 1.0),
        "YaRN": (yarned(), sharper),
        "YaRN without attention factor": (yarned(), 1.0),
        "YaRN, beta_fast 8": (yarned(beta_fast=8.0), sharper),
        "YaRN, unrounded": (yarned(truncate=False), sharper),
        "YaRN from 16,384": (yarned(LENGTH), sharper),
        "Llama 3.1": (llama3(plain), 1.0),
        "YaRN of half of each head": (
            torch.cat((yarn(halves[: DIM // 4], FACTOR, ORIGINAL), still)),
            sharper,
        ),
        "Llama 3.1 with a factor of 32": (llama3(plain, factor=32.0), 1.0),
        "Llama 3.1 from 131,072": (
            llama3(plain, original_length=131072),
            1.0,
        ),
    }


STACKS = [stack["name"] for stack in DATA["stack"][:6]]  # run on each case of a config.json


def results():
    """Return what each stack made of each case."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def is_equal(found, meaning):
    angles, attention = meanings()[meaning]
    gap = (torch.tensor(found["angles"], dtype=torch.float64) - angles).abs()
    near = bool((gap <= EQUAL * angles).all())
    return near and abs(found["stretch"] - attention) <= EQUAL


def outcome(found):
    """What a result means, in words, or the error."""
    if "refuses" in found:
        return "refuses"
    named = [name for name in meanings() if is_equal(found, name)]
    return named[0] if named else "other"
