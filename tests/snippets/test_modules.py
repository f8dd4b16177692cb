"""Every module of the snippets can be begun on no device and get its first values later, as FSDP asks."""

import importlib
import inspect
import math
import pkgutil
import warnings
from collections import namedtuple

import pytest
import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

import snippets
from snippets.block import Decoder, Encoding
from snippets.learned import AddLearned

# What a module is made with: by the names of its parameters, and for some in one way more.
GIVEN = {
    "add": lambda: AddLearned(9, 8),
    "axes": lambda: 4,
    "clip": lambda: 3,
    "convention": lambda: "bicubic",
    "dim": lambda: 8,
    "encode": lambda: nn.Embedding(9, 8),
    "encoding": Encoding,
    "extent": lambda: 5,
    "extra": lambda: 1,
    "features": lambda: 6,
    "gamma": lambda: 3.0,
    "grid": lambda: (2, 3),
    "heads": lambda: 2,
    "hidden": lambda: 5,
    "layers": lambda: 2,
    "length": lambda: 9,
    "max_distance": lambda: 4,
    "profiles": lambda: 3,
    "rings": lambda: 3,
    "rows": lambda: 5,
    "span": lambda: 4,
    "tokens": lambda: nn.Embedding(11, 8),
    "vocabulary": lambda: 11,
    "width": lambda: 3,
    "window": lambda: 2,
}
MORE = {
    "AddLearned": {"init": "bert"},
    "DebertaScores": {"terms": ["p2c"]},
    "ForgetGates": {"channels": 3, "bias": 5.0},
    "FourierEncoding": {"groups": 2},
    "RelativeLogits": {"most": 8.0},
}
Way = namedtuple("Way", "kind options")


def found():
    for file in pkgutil.iter_modules(snippets.__path__):
        module = importlib.import_module(f"snippets.{file.name}")
        for kind in vars(module).values():
            if inspect.isclass(kind) and issubclass(kind, nn.Module) and kind.__module__ == module.__name__:
                yield kind


WAYS = [Way(kind, more) for kind in found() for more in ({}, MORE.get(kind.__name__)) if more is not None]
every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join([way.kind.__name__, *way.options]))


def built(way):
    asked = inspect.getfullargspec(way.kind.__init__)
    needed = asked.args[1 : len(asked.args) - len(asked.defaults or ())]
    needed += [name for name in asked.kwonlyargs if name not in (asked.kwonlydefaults or ())]
    unknown = [name for name in needed if name not in GIVEN]
    assert not unknown, f"GIVEN of this file lacks {unknown}, which {way.kind.__name__} needs"
    given = {name: GIVEN[name]() for name in needed}
    return way.kind(**given, **way.options)


def fresh(way):
    torch.manual_seed(0)
    return built(way)


def nowhere(way):
    with torch.device("meta"):
        return built(way)


def owners(made):
    """The modules that have parameters or buffers of their own, for which FSDP asks each one itself."""
    return [part for part in made.modules() if [*part.parameters(False), *part.buffers(False)]]


@torch.no_grad()
def emptied(made):
    """Its tensors on the CPU, all of them numbers that nobody would learn with."""
    made.to_empty(device="cpu")
    for tensor in (*made.parameters(), *made.buffers()):
        tensor.fill_(math.nan)
    return made


def same(made, other):
    made, other = made.state_dict(), other.state_dict()
    return made.keys() == other.keys() and all(torch.equal(made[name], other[name]) for name in made)


def test_modules_are_found():
    assert {"AddLearned", "Block", "Decoder", "FireBias", "SelfAttention", "ShawTables", "T5Bias"} <= {
        way.kind.__name__ for way in WAYS
    }


@every_way
def test_first_values_come_from_reset_parameters_in_the_order_of_building(way, monkeypatch):
    """So, begun on no device, it gets the numbers that it would have had from this seed."""
    order = []
    for kind in {type(part) for part in owners(fresh(way))}:

        def noted(self, reset=kind.reset_parameters):
            order.append(self)
            reset(self)

        monkeypatch.setattr(kind, "reset_parameters", noted)
    expected = fresh(way)
    order.clear()
    made = nowhere(way)
    begun = list(order)
    assert set(begun) == set(owners(made)) and len(begun) == len(set(begun))
    emptied(made)
    torch.manual_seed(0)
    for part in begun:
        part.reset_parameters()
    if way.kind is Decoder:  # as its docstring says
        assert not same(made, expected)
        nn.init.normal_(made.tokens.weight, std=0.02)
    assert same(made, expected)


@every_way
def test_a_module_resets_what_is_its_own_and_no_more(way):
    made = emptied(fresh(way))
    for part in made.modules():
        if hasattr(part, "reset_parameters"):
            part.reset_parameters()
            own = {id(tensor) for tensor in (*part.parameters(False), *part.buffers(False))}
            for tensor in (*made.parameters(), *made.buffers()):
                assert not tensor.isnan().any() if id(tensor) in own else tensor.isnan().all()
        emptied(made)


@pytest.fixture
def one_process():
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@every_way
def test_fsdp_gives_it_first_values(way, one_process):
    made = nowhere(way)
    scalars = [parameter for parameter in made.parameters() if not parameter.ndim]
    for parameter in scalars:  # which it does not shard: said in the docstring
        assert "FSDP shards" in way.kind.__doc__, parameter
    if scalars:
        with warnings.catch_warnings(), pytest.raises(ValueError, match="support scalar parameters"):
            warnings.simplefilter("ignore")
            FullyShardedDataParallel(made, device_id=torch.device("cpu"), use_orig_params=True)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that one process shards nothing
        sharded = FullyShardedDataParallel(made, device_id=torch.device("cpu"), use_orig_params=True)
    shapes = {name: value.shape for name, value in fresh(way).named_parameters()}
    with FullyShardedDataParallel.summon_full_params(sharded):
        values = {name.replace("_fsdp_wrapped_module.", ""): v for name, v in sharded.named_parameters()}
        assert {name: value.shape for name, value in values.items()} == shapes
        assert all(value.isfinite().all() and value.abs().max() < 6 for value in values.values())
