"""Real text that is always there: the source code of Python's standard library, as bytes."""

import hashlib
import sysconfig
from functools import cache
from pathlib import Path

import torch

END = 0  # the byte between two files; no source file holds it
VOCABULARY = 256
LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3"}
HELD_OUT = 10  # one file in so many is never trained on


LIBRARY = Path(sysconfig.get_path("stdlib"))


def sources():
    """The files, as paths below LIBRARY, in an order that does not depend on the machine."""
    found = (path.relative_to(LIBRARY).as_posix() for path in LIBRARY.rglob("*.py"))
    return sorted(name for name in found if not LEFT_OUT & set(name.split("/")))


def is_held_out(name):
    """By the path alone, so that a file never changes sides."""
    return hashlib.sha256(name.encode()).digest()[0] % HELD_OUT == 0


@cache
def corpus():
    """The bytes to train on and the bytes held out, each file followed by END: two int64 tensors."""
    parts = [], []
    for name in sources():
        text = (LIBRARY / name).read_bytes()
        if END not in text:
            parts[is_held_out(name)].append(text + bytes([END]))
    return tuple(torch.frombuffer(bytearray(b"".join(part)), dtype=torch.uint8).long() for part in parts)


def provenance():
    """What identifies the corpus: how many bytes each part has, and a digest of both."""
    train, held_out = corpus()
    digest = hashlib.sha256(b"".join(part.byte().numpy().tobytes() for part in (train, held_out)))
    return {"train_bytes": len(train), "held_out_bytes": len(held_out), "sha256": digest.hexdigest()}


def spread(text, count, length):
    """Stretches of each file that is long enough, evenly spread over it: (files, count, length)."""
    ends = (text == END).nonzero()[:, 0].tolist()
    middles = torch.arange(1, 2 * count, 2)[:, None] / (2 * count)
    found = []
    for start, end in zip([0, *(end + 1 for end in ends)], ends, strict=False):
        if end - start >= length:
            starts = start + (middles * (end - start - length)).long()
            found.append(text[starts + torch.arange(length)])
    return torch.stack(found)


def windows(text, count, length, generator):
    """Random stretches of a text: (count, length), from a generator on the CPU."""
    starts = torch.randint(len(text) - length + 1, (count, 1), generator=generator)
    return text[starts + torch.arange(length)]
