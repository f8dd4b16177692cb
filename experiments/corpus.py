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


def sources():
    """The files, in an order that does not depend on the machine."""
    library = Path(sysconfig.get_path("stdlib"))
    found = [path.relative_to(library) for path in library.rglob("*.py")]
    kept = [path for path in found if not LEFT_OUT & set(path.parts)]
    return [library / path for path in sorted(kept, key=Path.as_posix)]


def is_held_out(path):
    """By the file's name alone, so that a file never changes sides."""
    return hashlib.sha256(path.name.encode()).digest()[0] % HELD_OUT == 0


@cache
def corpus():
    """The bytes to train on and the bytes held out, each file followed by END: two int64 tensors."""
    parts = [], []
    for path in sources():
        text = path.read_bytes()
        if END not in text:
            parts[is_held_out(path)].append(text + bytes([END]))
    return tuple(torch.frombuffer(bytearray(b"".join(part)), dtype=torch.uint8).long() for part in parts)


def provenance():
    """What identifies the corpus: how many bytes each part has, and a digest of both."""
    train, held_out = corpus()
    digest = hashlib.sha256(b"".join(part.byte().numpy().tobytes() for part in (train, held_out)))
    return {"train_bytes": len(train), "held_out_bytes": len(held_out), "sha256": digest.hexdigest()}


def windows(text, count, length, generator):
    """Random stretches of a text: (count, length), from a generator on the CPU."""
    starts = torch.randint(len(text) - length + 1, (count, 1), generator=generator)
    return text[starts + torch.arange(length)]
