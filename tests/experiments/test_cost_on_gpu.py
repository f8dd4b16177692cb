"""What encodings cost on a GPU: the measurement itself, for which the CPU stands in."""

import json

import pytest
import torch

from experiments import __main__ as command
from experiments import cost_on_gpu as cost

SIZES = {"HEADS": 2, "WIDTH": 8, "BATCH": 1, "CLIP": 4, "WARM": 1, "TURNS": 1}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for name, size in SIZES.items():
        monkeypatch.setattr(cost, name, size)


def attention(name, queries=12, dtype=torch.float32):
    return cost.Attention(name, queries, 12, torch.device("cpu"), dtype)


def test_all_ways_give_the_same(subtests):
    for name in cost.encodings(12):
        for queries in (12, 1):
            with subtests.test(f"{name}, {queries} queries"):
                one = attention(name, queries)
                ways = [one.mask, one.written, *([one.rule()] if name in one.rules else [])]
                first, *others = (way() for way in ways)
                for other in others:
                    torch.testing.assert_close(other, first, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["RoPE", "T5"])
def test_transformers_give_what_ours_give(name):
    ours, theirs = attention(name), attention(f"{name}, transformers")
    torch.testing.assert_close(theirs.q, ours.q, rtol=0, atol=0)
    if name == "T5":
        table = torch.randn(32, cost.HEADS)
        ours.encoding.make.table.data = table
        theirs.encoding.layer.relative_attention_bias.weight.data = table
    torch.testing.assert_close(theirs.mask(), ours.mask(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_every_way_is_measured_and_kept(dtype, tmp_path, capsys):
    cost.main("cpu", tmp_path, dtype, lengths=(8,), cache=12)
    made = json.loads((tmp_path / cost.FILE).read_text())
    assert made["rows"] == [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert made["torch"] == torch.__version__ and made["date"]
    found = {(row["method"], row["way"], row["queries"]) for row in made["rows"]}
    whole = {(name, way, 8) for name in cost.encodings(12) for way in ("mask", "written")}
    assert found == whole | {(name, "mask", 1) for name in cost.encodings(12)}
    assert all(min(row["forward"], row["bytes"], row.get("training", 1)) > 0 for row in made["rows"])


def test_what_fits_into_no_memory_is_said_and_the_rest_is_kept(monkeypatch, tmp_path):
    def written(self):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(cost.Attention, "written", written)
    cost.main("cpu", tmp_path, torch.float32, lengths=(8,), cache=12)
    rows = json.loads((tmp_path / cost.FILE).read_text())["rows"]
    assert {row["way"] for row in rows if row.get("failed") == cost.FULL} == {"written"}
    assert all("forward" in row for row in rows if row["way"] == "mask")


def test_the_command_measures_the_device_that_it_is_given(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(torch, "empty", lambda *_, device: None)
    monkeypatch.setattr(cost, "main", lambda *given: asked.append(given))
    command.main(["cost", "--device", "cuda", "--folder", str(tmp_path)])
    assert asked == [("cuda", tmp_path)]


def test_a_device_that_is_not_here_is_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["cost", "--device", "cuda:99"])
    assert "--device must be one that is here, got 'cuda:99'" in capsys.readouterr().err
