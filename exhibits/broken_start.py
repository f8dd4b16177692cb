"""Bugs in released code: initialisation, loading and casting."""

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from exhibits._broken_and_mended import compare
from exhibits._toy_decoder import angles, frequencies, turned
from snippets.check_positions import check_rotation, check_start


class _Rotary(nn.Module):
    """Frequencies in a non-persistent buffer, as in most libraries."""

    def __init__(self):
        super().__init__()
        self.register_buffer("inv_freq", frequencies(), persistent=False)

    def rotate(self, x, positions):
        w = self.inv_freq.float()
        return turned(x, positions, lambda p, _: p[..., None].float() * w)


def frequencies_in_no_checkpoint():
    class MadeWhenUsed(nn.Module):
        def rotate(self, x, positions):
            w = frequencies(x.shape[-1])
            return turned(x, positions, lambda p, _: p[..., None].float() * w)

    broken, fixed = _Rotary, MadeWhenUsed
    return compare(broken, fixed, check_start, finds="started_on_meta")


def restored_by_a_name_that_has_gone():
    class Rotary(_Rotary):
        make = staticmethod(frequencies)  # rope_init_fn, before an update

    def broken(model):
        for module in model.modules():
            made = getattr(module, "rope_init_fn", None)
            if made is not None:
                module.inv_freq.copy_(made())

    def fixed(model):
        for module in model.modules():
            if hasattr(module, "inv_freq"):
                module.inv_freq.copy_(module.make())

    def check(restore):
        return check_start(Rotary, initialize=restore)

    return compare(broken, fixed, check, finds="started_on_meta")


def buffer_that_follows_the_model():
    class Kept(_Rotary):
        def _apply(self, change, recurse=True):
            super()._apply(change, recurse)
            self.inv_freq = frequencies().to(self.inv_freq.device)
            return self

    broken = _Rotary().to(torch.bfloat16).rotate
    fixed = Kept().to(torch.bfloat16).rotate

    def check(rotate):
        return check_rotation(rotate, 16, settings={"rope_theta": 10_000.0})

    return compare(broken, fixed, check, finds="as_configured")


def positions_like_the_frequencies():
    def table(w, positions):
        angle = torch.outer(positions, w).float()
        return lambda p, _: angle[p]

    def rotate(x, positions, number):
        w = frequencies().bfloat16()  # a buffer of a model in bfloat16
        row = number(torch.arange(70_000), w)
        return turned(x, positions, table(frequencies().to(row), row))

    def broken(x, positions):
        return rotate(x, positions, lambda row, w: row.type_as(w))

    def fixed(x, positions):
        return rotate(x, positions, lambda row, w: row.float())

    def check(r):
        return check_rotation(r, 16, length=70_000)

    return compare(broken, fixed, check, finds="precise_angles")


def arange_under_a_patch():
    class FloatsAreHalves(TorchFunctionMode):
        """Trainers patch tensor creation like this while building models."""

        def __torch_function__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            if function is torch.arange and out.is_floating_point():
                return out.to(torch.bfloat16)
            return out

    def rotate(rows):
        with FloatsAreHalves():
            angle = angles(rows())  # (rows, pairs)
        return lambda x, positions: turned(
            x, positions, lambda p, _: angle[p]
        )

    broken = rotate(lambda: torch.arange(70_000, dtype=torch.float32))
    fixed = rotate(lambda: torch.arange(70_000))

    def check(r):
        return check_rotation(r, 16, length=70_000)

    return compare(broken, fixed, check, finds="precise_angles")


def table_drawn_anew():
    """Sinusoids that are not saved, in a model that samples its weights."""

    def waves():
        angle = angles(torch.arange(99))
        return torch.cat((angle.sin(), angle.cos()), dim=1)

    class Drawn(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(50, 16), nn.Module()
            self.places.register_buffer("weight", waves(), persistent=False)
            for module in (self.words, self.places):  # all with a weight
                nn.init.normal_(module.weight, std=0.02)

    class MadeWhenUsed(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(50, 16)
            nn.init.normal_(self.words.weight, std=0.02)

        def forward(self, ids):
            return self.words(ids) + waves()[: ids.shape[-1]]

    broken, fixed = Drawn, MadeWhenUsed
    return compare(broken, fixed, check_start, finds="saved_and_loaded")


def float64_where_there_is_none():
    def rotate(x, positions, dtype):
        steps = torch.arange(0, x.shape[-1], 2, dtype=dtype) / x.shape[-1]
        angle = positions[:, None] * 10_000.0**-steps
        return turned(x, positions, lambda p, _: angle.float())

    def broken(x, positions):
        return rotate(x, positions, torch.float64)

    def fixed(x, positions):
        return rotate(x, positions, torch.float32)

    def check(r):
        return check_rotation(r, 16, float64=False)

    return compare(broken, fixed, check, finds="float64")
