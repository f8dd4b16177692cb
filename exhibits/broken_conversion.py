"""Bugs in released code: weights, tables and swaps that do not match."""

import torch

from exhibits._broken_and_mended import compare
from exhibits._toy_decoder import angles, turned
from snippets.check_positions import check_rotation


def _swapped(x, layout):
    """Return the factor of the sines: (a, b) becomes (-b, a) per pair."""
    if layout == "half":
        a, b = x.chunk(2, dim=-1)
        return torch.cat((-b, a), dim=-1)
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


def _check(rotate):
    return check_rotation(rotate, dim=16)


def table_and_swap():
    def rotate(x, positions, doubled):
        angle = doubled(angles(positions, x.shape[-1]))  # (tokens, dim)
        return x * angle.cos() + _swapped(x, "interleaved") * angle.sin()

    def broken(x, positions):
        return rotate(x, positions, lambda a: a.repeat(1, 2))

    def fixed(x, positions):
        return rotate(x, positions, lambda a: a.repeat_interleave(2, dim=-1))

    return compare(broken, fixed, _check, finds="one_layout")


def swap_and_table():
    def rotate(x, positions, layout):
        angle = angles(positions, x.shape[-1]).repeat_interleave(2, dim=-1)
        return x * angle.cos() + _swapped(x, layout) * angle.sin()

    def broken(x, positions):
        return rotate(x, positions, "half")

    def fixed(x, positions):
        return rotate(x, positions, "interleaved")

    return compare(broken, fixed, _check, finds="one_layout")


def swap_left_in_halves():
    def broken(x, positions):
        angle = angles(positions, x.shape[-1]).repeat(1, 2)
        swapped = torch.cat((-x[..., 1::2], x[..., ::2]), dim=-1)
        return x * angle.cos() + swapped * angle.sin()

    def fixed(x, positions):
        angle = angles(positions, x.shape[-1]).repeat_interleave(2, dim=-1)
        swapped = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1)
        return x * angle.cos() + swapped.flatten(-2) * angle.sin()

    return compare(broken, fixed, _check, finds="offsets_alone")


def one_module_inherits():
    class Text:
        def table(self, positions, dim):
            angle = angles(positions, dim)
            return torch.cat((angle, angle), dim=-1)

        def rotate(self, x, positions):
            angle = self.table(positions, x.shape[-1])
            return x * angle.cos() + self.swapped(x) * angle.sin()

        def swapped(self, x):
            return _swapped(x, "half")

    class SpeechThatInherits(Text):
        def swapped(self, x):
            return _swapped(x, "interleaved")

    class Speech(SpeechThatInherits):
        def table(self, positions, dim):
            return angles(positions, dim).repeat_interleave(2, dim=-1)

    broken, fixed = SpeechThatInherits().rotate, Speech().rotate
    return compare(broken, fixed, _check, finds="one_layout")


def unpermuted_weights():
    """x has the channels of the checkpoint, in interleaved layout."""

    def broken(x, positions):
        return turned(x, positions, layout="half")

    def fixed(x, positions):
        halves = x.unflatten(-1, (-1, 2)).mT.flatten(-2)  # q_proj, k_proj
        out = turned(halves, positions, layout="half")
        return out.unflatten(-1, (2, -1)).mT.flatten(-2)  # undone

    def check(rotate):
        return check_rotation(rotate, 16, layout="interleaved")

    return compare(broken, fixed, check, finds="as_configured")


def permuted_by_other_heads():
    """x has the rows of k_proj, two heads of 16 channels in interleaved
    layout; there are eight query heads."""

    def converted(x, positions, groups):
        rows = x.unflatten(-1, (groups, -1, 2)).mT.flatten(-3)
        heads = rows.unflatten(-1, (2, -1)).movedim(-2, 2)
        out = turned(heads, positions, layout="half").movedim(2, -2)
        return out.reshape(*x.shape[:-1], groups, 2, -1).mT.flatten(-3)

    def broken(x, positions):
        return converted(x, positions, groups=8 // 2)  # heads / key heads

    def fixed(x, positions):
        return converted(x, positions, groups=2)  # key heads

    def check(rotate):
        return check_rotation(rotate, 32, layout="interleaved")

    return compare(broken, fixed, check, finds="as_configured")


def permuted_the_other_way():
    """x has interleaved channels, which should get the half layout."""

    def converted(x, positions, rows):
        out = turned(x[..., rows], positions, layout="half")
        return out[..., rows.argsort()]  # undone

    def broken(x, positions):
        rows = torch.arange(x.shape[-1]).view(2, -1).mT.flatten()
        return converted(x, positions, rows)

    def fixed(x, positions):
        rows = torch.arange(x.shape[-1]).view(-1, 2).mT.flatten()
        return converted(x, positions, rows)

    def check(rotate):
        return check_rotation(rotate, 16, layout="interleaved")

    return compare(broken, fixed, check, finds="as_configured")


def products_never_added():
    def broken(x, positions):
        angle = angles(positions, x.shape[-1])
        swapped = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1)
        table = torch.stack((angle.cos(), angle.sin()), dim=-1)
        return (swapped * table).flatten(-2)

    def fixed(x, positions):
        angle = angles(positions, x.shape[-1])
        a, b = x[..., ::2], x[..., 1::2]
        cos, sin = angle.cos(), angle.sin()
        out = torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1)
        return out.flatten(-2)

    return compare(broken, fixed, _check, finds="offsets_alone")
