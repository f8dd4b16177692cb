"""Each case of families/ on a CUDA device: `pytest -m cuda`, without which this file is not collected."""

import pytest
import torch

from tests.snippets.devices import checks
from tests.snippets.fitness import all_cases

if not torch.cuda.is_available():
    pytest.skip("torch finds no CUDA device here", allow_module_level=True)

ROWS = [
    pytest.param(case, check, id=f"{case.of.__name__}-{check.__name__}")
    for case in all_cases()
    for check in checks(case)
]


@pytest.mark.cuda
@pytest.mark.parametrize(("case", "check"), ROWS)
def test_a_case_on_a_cuda_device(case, check):
    check(case, "cuda")
