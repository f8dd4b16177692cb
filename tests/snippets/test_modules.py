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
from snippets.attention import SelfAttention
from snippets.block import Decoder, Encoding
from snippets.cope import CopeScores
from snippets.deberta import DebertaScores
from snippets.forgetting import ForgetGates
from snippets.fourier import FourierEncoding
from snippets.learned import AddLearned
from snippets.path_attention import PathProjection
from snippets.relative_logits import RelativeLogits
from snippets.shaw import ShawTables
from snippets.swin_bias import SwinBias, SwinV2Bias
from snippets.transformer_xl import TransformerXLScores

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
    "far_buckets": lambda: 3,
    "features": lambda: 6,
    "gamma": lambda: 3.0,
    "grid": lambda: (2, 3),
    "heads": lambda: 2,
    "hidden": lambda: 5,
    "layers": lambda: 2,
    "length": lambda: 9,
    "max_distance": lambda: 4,
    "profiles": lambda: 3,
    "rows": lambda: 5,
    "span": lambda: 4,
    "tokens": lambda: nn.Embedding(11, 8),
    "vocabulary": lambda: 11,
    "width": lambda: 3,
    "window": lambda: 2,
    "window_size": lambda: (2, 3),
}
MORE = {
    "AddLearned": {"init": "bert"},
    "DebertaScores": {"terms": ["p2c"]},
    "ForgetGates": {"channels": 3, "bias": 5.0},
    "FourierEncoding": {"groups": 2},
    "RelativeLogits": {"max_norm": 8.0},
}
# What a checkpoint has of each: names and shapes.
SAVED = {
    "SelfAttention": "project.weight (24, 8), merge.weight (8, 8)",
    "ClippedBias": "table (9, 2)",
    "CopeScores": "table (5, 8)",
    "DebertaScores": "table (8, 8), project_key.weight (8, 8), project_query.weight (8, 8)",
    "DebertaScores-terms": "table (8, 8), project_query.weight (8, 8)",
    "Embed": "tokens.weight (11, 8), add.table (9, 8)",
    "FireBias": "c (), L_multiplier (), mlp.0.weight (32, 1), mlp.0.bias (32,), "
    "mlp.2.weight (2, 32), mlp.2.bias (2,)",
    "ForgetGates": "weight (2, 8), bias (2,)",
    "ForgetGates-channels-bias": "weight (6, 8), bias (6,)",
    "FourierEncoding": "frequencies (3, 4), inner.weight (5, 6), inner.bias (5,), "
    "outer.weight (8, 5), outer.bias (8,)",
    "AddGated": "weight (8,), bias (), encode.weight (9, 8)",
    "KerpleLog": "r1 (2,), r2 (2,)",
    "KerplePower": "r1 (2,), r2 (2,)",
    "AddLearned": "table (9, 8)",
    "LocalGlobal": "local_table (5, 8), global_table (2, 3, 8)",
    "PathProjection": "narrow.weight (32, 8), widen.weight (6, 32), strength.weight (2, 8), "
    "strength.bias (2,)",
    "RelativeLogits": "bank (3, 5), project.weight (6, 8)",
    "RelativeLogits-max_norm": "bank (3, 5), scale (2, 3), project.weight (6, 8)",
    "ShawTables": "key_table (7, 8), value_table (7, 8)",
    "AddSinusoidal": "",
    "SwinBias": "table (15, 2)",
    "SwinV2Bias": "mlp.0.weight (512, 2), mlp.0.bias (512,), mlp.2.weight (2, 512)",
    "T5Bias": "table (32, 2)",
    "TransformerXLScores": "u (2, 4), v (2, 4), project.weight (8, 8)",
    "AddGridTable": "table (7, 8)",
}
Way = namedtuple("Way", "kind options")


def found():
    for file in pkgutil.iter_modules(snippets.__path__):
        module = importlib.import_module(f"snippets.{file.name}")
        for name, kind in vars(module).items():
            own = inspect.isclass(kind) and (kind.__module__, kind.__name__) == (module.__name__, name)
            if own and issubclass(kind, nn.Module):
                yield kind


WAYS = [Way(kind, more) for kind in found() for more in ({}, MORE.get(kind.__name__)) if more is not None]


def name_of(way):
    return "-".join([way.kind.__name__, *way.options])


every_way = pytest.mark.parametrize("way", WAYS, ids=name_of)


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


def test_a_checkpoint_has_these_names_and_shapes():
    ways = {name_of(way): built(way) for way in WAYS}
    for name, saved in SAVED.items():
        state = ways[name].state_dict()
        assert ", ".join(f"{key} {tuple(value.shape)}" for key, value in state.items()) == saved
        learned = [key for key, value in ways[name].named_parameters() if value.requires_grad]
        assert list(state) == learned


# The smallest sizes that are taken, and what the parameters have in all.
SMALLEST = {
    "attention": (lambda: SelfAttention(1, 1), 4),
    "block": (lambda: Decoder(Encoding(), vocabulary=5, dim=1, heads=1, layers=2), 49),
    "cope": (lambda: CopeScores(dim=1, rows=1), 1),
    "deberta": (lambda: DebertaScores(1, 1, 1), 4),
    "forgetting": (lambda: ForgetGates(dim=1, heads=1, channels=1), 2),
    "fourier": (lambda: FourierEncoding(1, 1, 2, 1, 1.0, 1), 6),
    "learned": (lambda: AddLearned(length=1, dim=1), 1),
    "path_attention": (lambda: PathProjection(dim=1, heads=1, width=1, rank=1), 4),
    "relative_logits": (lambda: RelativeLogits(dim=1, heads=1, profiles=1, extent=1), 2),
    "shaw": (lambda: ShawTables(dim=1, clip=0), 2),
    "swin": (lambda: SwinBias(1, (2, 2)), 9),
    "swin v2": (lambda: SwinV2Bias(1, (2, 2), hidden=1), 4),
    "transformer_xl": (lambda: TransformerXLScores(2, 1), 8),
}


@pytest.mark.parametrize(("make", "numbers"), SMALLEST.values(), ids=SMALLEST)
def test_the_smallest_module_has_so_many_numbers(make, numbers):
    assert sum(parameter.numel() for parameter in make().parameters()) == numbers


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
