"""How many faults does check_positions.py find without a reference? Of mutants of our own files.

python -m tests.power [rope alibi ...]    writes experiments/results/power.json

tests/mutants.py makes the mutants. A mutant counts if it is silent, that is, raises nothing on good input
and gives something else than its file. It is found if a check fails. No check is told the right numbers:
only what a user would know, which is the configuration.
"""

import json
import types
from collections import Counter
from pathlib import Path

import torch
from torch.nn.functional import rms_norm
from tqdm import tqdm

from executable_prose.command import run
from executable_prose.execution.provenance import code_of
from experiments import arguments
from snippets.check_positions import check_attention, check_model, check_rotation
from tests.mutants import mutants_of

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "experiments" / "results" / "power.json"
DIM, HEADS, WORDS = 16, 2, 40
DEFAULT = {"rope_type": "default", "rope_theta": 10_000.0}
YARN = DEFAULT | {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
LLAMA = DEFAULT | {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}
LLAMA |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}


def rope(file):
    def rotate(layout):
        def turned(x, positions):
            cos, sin = file.rope_tables(positions, file.rope_frequencies(DIM, base=10000))
            return file.apply_rope(x, cos, sin, layout)

        return turned

    for layout in ("half", "interleaved"):
        yield rotate(layout), lambda f, layout=layout: check_rotation(f, DIM, settings=DEFAULT, layout=layout)


def xpos(file):
    def rotate(role):
        def turned(x, positions):
            tables = file.xpos_tables(positions, DIM, role, centre=0.0)
            return file.apply_xpos(x, *tables)

        return turned

    yield rotate("query"), lambda f: check_rotation(f, DIM, rotate_keys=rotate("key"), length=1024)


def rope_scaling(file):
    frequencies = 10_000.0 ** -(torch.arange(0, 64, 2) / 64)

    def rotate(scaled, factor=lambda: 1.0):
        def turned(x, positions):
            angle = positions[:, None] * scaled(frequencies)
            a, b = x.chunk(2, dim=-1)
            cos, sin = angle.cos() * factor(), angle.sin() * factor()
            return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

        return turned

    linear = DEFAULT | {"rope_type": "linear", "factor": 4.0}
    yarn = rotate(lambda w: file.yarn(w, 4.0, 4096), lambda: file.yarn_attention_factor(4.0))
    for turned, settings in (
        (yarn, YARN),
        (rotate(lambda w: file.llama3(w, 8.0, 8192)), LLAMA),
        (rotate(lambda w: file.position_interpolation(w, 4.0)), linear),
    ):
        yield turned, lambda f, settings=settings: check_rotation(f, 64, settings=settings)


def bias(make):
    def attend(q, k, v, i, j):
        scores = q @ k.mT / q.shape[-1] ** 0.5 + make(i, j)
        return scores.masked_fill(j > i[:, None], -torch.inf).softmax(-1) @ v

    return attend, lambda f: check_attention(f, DIM, HEADS, causal=True)


def alibi(file):
    for heads in (4, 6):
        attend, _ = bias(lambda i, j, heads=heads: file.alibi_bias(i, j, file.alibi_slopes(heads)))
        powers = range(1, 5) if heads == 4 else (1, 2, 3, 4, 0.5, 1.5)
        slopes = [2 ** (-8 * power / 4) for power in powers]
        yield (
            attend,
            lambda f, slopes=slopes: check_attention(f, DIM, len(slopes), causal=True, slopes=slopes),
        )


def t5_bias(file):
    torch.manual_seed(0)
    module = file.T5Bias(HEADS, bidirectional=False).requires_grad_(False)
    module.table.normal_()
    yield bias(module)


def decoding(file):
    def attend(window):
        def looked(q, k, v, i, j):
            one = torch.zeros_like
            return file.attend(q, k, v, file.attention_mask(i, j, one(i), one(j), window=window))

        return looked

    yield attend(None), lambda f: check_attention(f, DIM, HEADS, causal=True)
    yield attend(9), lambda f: check_attention(f, DIM, HEADS, causal=True, window=9)
    model = decoder(file)
    yield model, lambda f: check_model(f, WORDS, packs=True, moves=True)


def decoder(file):
    """One layer that turns queries and keys, masks and caches as decoding.py does."""
    made = torch.Generator().manual_seed(0)
    table = torch.randn(WORDS, HEADS * DIM, generator=made)
    weights = [torch.randn(HEADS * DIM, HEADS * DIM, generator=made) / 3 for _ in range(3)]
    w = 10_000.0 ** -(torch.arange(0, DIM, 2) / DIM)

    def turned(x, positions):
        angle = (positions[..., None] * w)[:, None]
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), dim=-1)

    def model(ids, mask=None, positions=None, cache=None):
        batch, tokens = ids.shape
        done = cache.positions.shape[-1] if cache else 0
        if positions is None:
            positions = done + torch.arange(tokens).expand(batch, -1)
        documents = (positions == 0).cumsum(-1) if mask is None else mask[:, -tokens:].long()
        x = rms_norm(table[ids], (HEADS * DIM,))
        q, k, v = ((x @ each).unflatten(-1, (HEADS, DIM)).transpose(1, 2) for each in weights)
        q, k = turned(q, positions), turned(k, positions)
        if mask is None:
            documents = file.document_positions(documents).eq(0).cumsum(-1)
        add = cache.extend if cache else file.KeyValueCache
        cache = add(k, v, positions, documents)
        seen = file.attention_mask(positions, cache.positions, documents, cache.documents)
        out = file.attend(q, cache.k, cache.v, seen).transpose(1, 2).flatten(-2)
        return (table[ids] + out) @ table.T, cache

    return model


FILES = {f.__name__: f for f in (rope, xpos, rope_scaling, alibi, t5_bias, decoding)}


def load_module(source):
    module = types.ModuleType("mutant")
    exec(compile(source, "mutant.py", "exec"), vars(module))
    return module


def run_checks(stem, source):
    """What each way of calling a file gives, and which checks fail on it; None where something raised."""
    given, failed = [], []
    try:
        for call, check in FILES[stem](load_module(source)):
            kept, raised = [], []

            def keep(*arguments, call=call, kept=kept, raised=raised):
                try:
                    made = call(*arguments)
                except Exception:
                    raised.append(call)
                    raise
                kept.append(made[0] if isinstance(made, tuple) else made)
                return made

            failed += [f.check for f in check(keep) if f.verdict == "fails"]
            given.append(kept)
            if raised:
                return None
    except Exception:
        return None
    return given, failed


def same_outputs(some, others):
    """Are these calls' results equal, but for rounding?"""
    return all(
        len(a) == len(b) and all(x.shape == y.shape and close(x, y) for x, y in zip(a, b, strict=True))
        for a, b in zip(some, others, strict=True)
    )


def close(x, y):
    return torch.allclose(x.double(), y.double(), rtol=1e-6, atol=1e-6, equal_nan=True)


def count_detected(stem):
    """How many mutants are silent, how many of them are found and by which checks, and what is not found."""
    source = (ROOT / "snippets" / f"{stem}.py").read_text(encoding="utf-8")
    right, failed = run_checks(stem, source)
    if failed:
        raise SystemExit(f"{stem}.py itself must pass; {', '.join(failed)} fail")
    silent, by, missed = 0, Counter(), []
    for mutant in tqdm(list(mutants_of(stem, source)), desc=stem, leave=False):
        told = run_checks(stem, mutant.source)
        if told is None or (same_outputs(right, told[0]) and not told[1]):
            continue
        silent += 1
        by.update(set(told[1]))
        if not told[1]:
            missed.append(mutant.line)
    return {"silent": silent, "found": silent - len(missed), "by": dict(sorted(by.items())), "missed": missed}


def main(stems):
    torch.set_num_threads(1)
    known = json.loads(RESULT.read_text("utf-8")) if RESULT.exists() else {}
    for stem in stems or FILES:
        code = code_of(dict.fromkeys(("snippets/check_positions.py", f"snippets/{stem}.py")))
        known[stem] = {"code": code, **count_detected(stem)}
        RESULT.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run(lambda: main(arguments.names(__doc__, "snippet", FILES)))
