"""What every test relies on: checked shape comments, and the same random numbers in each run."""

import gc
import os
import re
import signal
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import settings

sys.path.append(str(Path(__file__).resolve().parent))

import shape_comments

# What is imported and collected stays, and need not be looked through for garbage; what tests import, such as
# models of transformers, seldom.
gc.disable()
gc.set_threshold(50_000, 20, 50)

shape_comments.install("snippets")
shape_comments.install("check_positions")

# Several workers with threads of their own would wait for one another; one nightly variant has two.
torch.set_num_threads(int(os.environ.get("TEST_THREADS", 1)))

# What a script starts in the background ignores interrupts, as would the programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("guide", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("guide")


def pytest_configure(config):
    if asks_for_cuda(config) and not torch.cuda.is_available():
        raise pytest.UsageError(
            "-m cuda needs a CUDA device, and torch finds none: torch.cuda.is_available()"
        )


def pytest_ignore_collect(collection_path, config):
    hidden = collection_path.name == "test_cuda.py" and not asks_for_cuda(config)
    return hidden or None  # None lets other plugins decide


def asks_for_cuda(config):
    """Whether -m names the marker, other than after "not"."""
    return bool(re.search(r"(?<!not )\bcuda\b", config.getoption("markexpr")))


def pytest_collection_finish():
    gc.enable()
    gc.freeze()


@pytest.fixture(autouse=True)
def same_random_numbers():
    torch.default_generator.manual_seed(0)  # not those of accelerators, which keep where they were set
