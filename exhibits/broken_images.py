"""Bugs in released code: coordinates lost, swapped, rounded or cut."""

import math

import torch
from torch.nn.functional import interpolate

from exhibits._broken_and_mended import compare
from exhibits._image_checks import (
    check_grid,
    check_ids,
    check_prompt,
    check_table,
)
from exhibits._toy_decoder import DIM, angles, frequencies, turned
from snippets.check_positions import check_rotation


def _grid(frames, rows, columns):
    axes = (torch.arange(n) for n in (frames, rows, columns))
    return torch.stack(torch.meshgrid(*axes, indexing="ij")).flatten(1)


def _resized(table, **how):
    rows = table.permute(2, 0, 1)[None]
    return interpolate(rows, align_corners=False, **how)[0].permute(1, 2, 0)


def _places(part):
    """Return (3, tokens): coordinates of a text or a grid of patches."""
    if isinstance(part, int):
        return torch.arange(part).expand(3, -1)
    return _grid(*part)


def patches_as_text():
    def broken(grid):
        return torch.arange(math.prod(grid)).expand(3, -1)

    def fixed(grid):
        return _grid(*grid)

    return compare(broken, fixed, check_ids, finds="axes_named")


def blocks_for_turns():
    """Four pairs for t, two for y, two for x: in blocks or alternating."""

    def by(axes):
        def rotate(x, positions):
            angle = angles(positions, x.shape[-1])  # (3, tokens, pairs)
            own = angle[axes, :, range(len(axes))].mT  # (tokens, pairs)
            return turned(x, positions[0], lambda at, dim: own)

        return rotate

    turns = [0, 1, 2, 0, 1, 2, 0, 0]  # the last pairs are t's
    broken, fixed = by([0, 0, 0, 0, 1, 1, 2, 2]), by(turns)

    def check(rotate):
        return check_grid(rotate, DIM, turns)

    return compare(broken, fixed, check, finds="axes_apart")


def x_for_y():
    def broken(grid):
        t, x, y = _grid(*grid)
        return torch.stack((t, y, x))

    def fixed(grid):
        t, y, x = _grid(*grid)
        return torch.stack((t, y, x))

    return compare(broken, fixed, check_ids, finds="axes_named")


def picture_split_in_batches():
    batch = 8  # patches per batch

    def broken(grid):  # all of t, then all of y, then all of x
        found = _grid(*grid).flatten()
        parts = found.split(3 * batch)
        return torch.cat([part.view(3, -1) for part in parts], 1)

    def fixed(grid):
        found = _grid(*grid)
        return torch.cat(found.split(batch, dim=1), 1)

    return compare(broken, fixed, check_ids, finds="axes_named")


def seconds_cut_too_early():
    steps_a_second, seconds = 2, 0.5  # between two frames

    def broken(grid):
        t, y, x = _grid(*grid)
        return torch.stack((t * int(seconds) * steps_a_second, y, x))

    def fixed(grid):
        t, y, x = _grid(*grid)
        return torch.stack(((t * seconds * steps_a_second).long(), y, x))

    return compare(broken, fixed, check_ids, finds="distinct")


def one_grid_for_many_frames():
    def blocks(grid):  # each frame is a block after its timestamp
        frames, rows, columns = grid
        return [rows * columns] * frames

    def placed(grid, grids):
        start, found = 0, []
        for _ in blocks(grid):
            places = _grid(*next(grids)) + start
            found.append(places)
            start = int(places.max()) + 2  # its timestamp is one step
        return torch.cat(found, 1)

    def broken(grid):
        return placed(grid, iter([grid]))  # one for the video

    def fixed(grid):
        frames, rows, columns = grid
        return placed(grid, iter([(1, rows, columns)] * frames))

    def check(ids):
        return [f for f in check_ids(ids) if f.check == "distinct"]

    return compare(broken, fixed, check, finds="distinct")


def words_behind_a_film():
    def by(size):
        def place(parts):
            start, found = 0, []
            for part in parts:
                is_text = isinstance(part, int)
                found.append(_places(part) + start)
                start += part if is_text else size(part)
            return torch.cat(found, 1)

        return place

    broken = by(lambda grid: max(grid[1:]))  # as for images
    fixed = by(max)

    return compare(broken, fixed, check_prompt, finds="one_behind_another")


def the_start_stretched_too():
    interval = 4  # steps between two frames

    def by(stretched):
        def place(parts):
            start, found = 0, []
            for part in parts:
                t, y, x = _places(part) + start
                if not isinstance(part, int):
                    t = stretched(t, start)
                found.append(torch.stack((t, y, x)))
                start = int(found[-1].max()) + 1
            return torch.cat(found, 1)

        return place

    broken = by(lambda t, start: t * interval)
    fixed = by(lambda t, start: (t - start) * interval + start)

    return compare(broken, fixed, check_prompt, finds="one_behind_another")


def image_positions_in_bfloat16():
    """Image rows are counted from 65,536, beyond any text position."""
    w = frequencies(DIM)

    def broken(x, positions):  # .float() does not stop autocast
        angle = positions[:, None].float() @ w[None].float()
        return turned(x, positions, lambda at, dim: angle.float())

    def fixed(x, positions):
        with torch.autocast(x.device.type, enabled=False):
            angle = positions[:, None].float() @ w[None]
        return turned(x, positions, lambda at, dim: angle)

    def check(rotate):
        return check_rotation(rotate, DIM, length=66_000)

    return compare(broken, fixed, check, finds="precise_angles")


def size_from_a_scale():
    def broken(table, size):
        scale = tuple(n / m for n, m in zip(size, table.shape, strict=False))
        return _resized(table, scale_factor=scale, mode="bicubic")

    def fixed(table, size):
        return _resized(table, size=size, mode="bicubic")

    def check(resize):
        return check_table(resize, (14, 14))

    return compare(broken, fixed, check, finds="right_size")


def a_table_taken_to_be_square():
    def broken(table, size):
        side = math.isqrt(table.shape[0] * table.shape[1])
        square = table.reshape(side, side, -1)
        return _resized(square, size=size, mode="bicubic")

    def fixed(table, size):
        return _resized(table, size=size, mode="bicubic")

    def check(resize):
        return check_table(resize, (4, 9))

    return compare(broken, fixed, check, finds="axes_kept")


def resized_another_way():
    def broken(table, size):
        return _resized(table, size=size, mode="bicubic")

    def fixed(table, size):
        return _resized(table, size=size, mode="bilinear")

    def trained(table, size):
        return _resized(table, size=size, mode="bilinear")

    def check(resize):
        return check_table(resize, (14, 14), like=trained)

    return compare(broken, fixed, check, finds="as_trained")
