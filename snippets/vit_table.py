# SPDX-License-Identifier: 0BSD
# From The executable guide to positional encoding, 2026-11-27
"""Learned position table of ViT, and its resizing for other image sizes.

    x[patch] = embedding[patch] + table[extra + row * columns + column]

A table has the shape (extra + rows * columns, dim): first the rows of extra
tokens, such as a class token, then those of the patches, row by row. Extra
tokens without a row, such as the registers of DINOv2, are added after the table
is applied.

An image with more or fewer patches needs a table that the checkpoint does not
have: the part for patches is resized like an image, and the rows of extra
tokens are unchanged. The method of resizing is a property of the checkpoint and
has no default here. A wrong choice raises no error: the numbers differ a
little, and no shape does.

    convention           new cell n is read at             kernel
    bicubic              (n + .5) old / new - .5           Keys, a = -.75
    bicubic_offset       (n + .5) old / (new + .1) - .5    Keys, a = -.75
    bicubic_antialias    as bicubic                        Keys, a = -.5, wide
    bilinear             as bicubic                        tent
    bilinear_antialias   as bicubic                        tent, wide
    bilinear_corners     n (old - 1) / (new - 1)           tent

A wide kernel is stretched by old / new if that is above one, so that it covers
all cells, and leaves out cells outside the table; the other kernels read the
outermost cells instead. transformers uses bicubic in ViT, DeiT, BEiT, CLIP and
DINOv2, bicubic_antialias in DINOv2 with registers and RF-DETR, bilinear in
PaddleOCR-VL, bilinear_antialias in SigLIP 2, bilinear_corners in ViLT and
Qwen3-VL. DINOv2's authors use bicubic_offset, and with registers
bicubic_antialias, which timm uses, too. Google's ViT uses bilinear_corners.

Not implemented here: RADIO, which resizes to a square of the longer side with
bilinear, and then cuts; TimeSformer, which takes the nearest cell; Idefics2 and
Idefics3, which do not resize, and select the cell at the same fraction of the
image.

References:
    arXiv:2010.11929; github.com/google-research/vision_transformer at c6de1e5,
    vit_jax/models_vit.py and checkpoint.py (interpolate_posembed).
    github.com/facebookresearch/dinov2 at b8931f7, models/vision_transformer.py
    in dinov2/.
    transformers 5.23.0; timm 1.0.22, layers/pos_embed.py.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

CONVENTIONS = (
    "bicubic",
    "bicubic_offset",
    "bicubic_antialias",
    "bilinear",
    "bilinear_antialias",
    "bilinear_corners",
)


def position_index(
    places: Tensor,  # (..., 2)
    grid: tuple[int, int],
    *,
    extra: int,
) -> Tensor:
    """Return the row of the table for each patch.

    Positions on the CPU are compared with the grid; leave them there. On
    another device, the comparison would make the host wait.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        places: Row and column of each patch, both from 0 on, shape `(..., 2)`,
            integers.
        grid: Rows and columns of the grid, each at least 1.
        extra: Number of extra rows at the start of the table; at least 0.

    Returns:
        Row indices, shape `(...)`, int64.

    Raises:
        ValueError: If `places` is not an integer tensor of shape `(..., 2)`, a
            position on the CPU is outside the grid, or `grid` or `extra` is not
            as described above.

    Example:
        >>> position_index(torch.tensor([[0, 0], [1, 2]]), (2, 3), extra=1)
        tensor([1, 6])
    """
    _check_grid(grid, "grid")
    _check_extra(extra)
    tensor = isinstance(places, Tensor)
    given = places.dtype if tensor else type(places).__name__
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    if given not in whole:
        raise ValueError(
            f"places must be a tensor of uint8 or int8 to int64, got {given}"
        )
    if places.shape[-1:] != (2,):
        raise ValueError(f"places must be (..., 2), got {tuple(places.shape)}")
    rows, columns = places.long().unbind(-1)
    if places.device.type == "cpu" and not torch.compiler.is_compiling():
        _check_inside(rows, grid[0], "rows")
        _check_inside(columns, grid[1], "columns")
    return extra + rows * grid[1] + columns


def resize_table(
    table: Tensor,  # (..., length, dim)
    grid: tuple[int, int],
    to: tuple[int, int],
    *,
    convention: str,
    extra: int,
) -> Tensor:
    """Return the table resized for another grid.

    If the size does not change, the table is returned as it is, as in models;
    bicubic_offset would change even that one. Narrow dtypes are resized in
    float32 and rounded once. The weights of old cells are computed in float64
    on the CPU; on another device in float32, or in the dtype of the table if
    that is wider.

    torch.nn.functional.interpolate computes the same. But with antialias and
    one new column, torch 2.13.0 makes all new rows equal, on the CPU.

    Supports autocast, compile, export, vmap, mps; no host-device sync.

    Args:
        table: The table, shape `(..., length, dim)`, floating-point.
        grid: Rows and columns of the table, which its length alone does not
            determine.
        to: Rows and columns of the result, each at least 1.
        convention: How to resize; one of `CONVENTIONS`. There is no default.
        extra: Number of extra rows at the start of the table, which are
            unchanged; at least 0.

    Returns:
        The resized table, shape `(..., extra + rows * columns, dim)`, in the
        dtype of `table`.

    Raises:
        ValueError: If `convention` is unknown, a grid has no cell, `extra` is
            negative, or `table` has a wrong length or is not floating-point.

    Example:
        >>> table = torch.tensor([[9.0], [0.0], [1.0], [0.0], [1.0]])
        >>> options = {"convention": "bilinear", "extra": 1}
        >>> resize_table(table, (2, 2), (1, 4), **options).T
        tensor([[9.0000, 0.0000, 0.2500, 0.7500, 1.0000]])
    """
    if convention not in CONVENTIONS:
        raise ValueError(
            f"convention must be one of {CONVENTIONS}, got {convention!r}"
        )
    _check_grid(to, "to")
    _check_table(table, grid, extra)
    if tuple(grid) == tuple(to):
        return table
    first, patches = table[..., :extra, :], table[..., extra:, :]
    exact = torch.promote_types(table.dtype, torch.float32)
    picture = patches.to(exact).unflatten(-2, tuple(grid))
    finest = torch.float64 if table.device.type == "cpu" else exact
    count = partial(torch.arange, dtype=finest, device=table.device)
    device = "cpu" if table.is_meta else table.device.type
    with torch.autocast(device, enabled=False):
        rows, columns = (
            _shares(old, new, convention, count).to(exact)
            for old, new in zip(grid, to, strict=True)
        )
        picture = (rows @ picture.flatten(-2)).unflatten(-1, (grid[1], -1))
        picture = columns @ picture
    resized = picture.flatten(-3, -2).to(table.dtype)
    return torch.cat((first, resized), -2)


class AddGridTable(nn.Module):
    """Add to each patch embedding the learned vector of its grid cell.

    If the grid of an image differs from that of the table, the table is resized
    in each call. The table is initialised from a normal distribution with
    standard deviation 0.02, as in ViT.

    Supports autocast, compile, export, vmap, per-sample gradients, mps; no
    host-device sync.

    Args:
        grid: Rows and columns of the table, each at least 1.
        dim: Number of channels of the embeddings; at least 1.
        extra: Number of extra tokens before the patches, each with its own row
            of the table; at least 0.
        convention: How to resize, as in `resize_table`.

    Raises:
        ValueError: If an argument is not as described above.

    Example:
        >>> add = AddGridTable((2, 3), dim=8, extra=1, convention="bicubic")
        >>> add(torch.zeros(5, 1 + 4 * 6, 8), grid=(4, 6)).shape
        torch.Size([5, 25, 8])
    """

    def __init__(
        self, grid: tuple[int, int], dim: int, *, extra: int, convention: str
    ):
        super().__init__()
        _check_grid(grid, "grid")
        _check_extra(extra)
        if dim < 1:
            raise ValueError(f"dim must be at least 1, got {dim}")
        if convention not in CONVENTIONS:
            raise ValueError(
                f"convention must be one of {CONVENTIONS}, got {convention!r}"
            )
        self.grid, self.extra, self.convention = grid, extra, convention
        length = extra + grid[0] * grid[1]
        self.table = nn.Parameter(torch.empty(length, dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the table."""
        nn.init.normal_(self.table, std=0.02)

    def forward(self, x: Tensor, grid: tuple[int, int] | None = None) -> Tensor:
        """Return the sum of embeddings and table.

        Args:
            x: Embeddings, shape `(..., extra + rows * columns, dim)`,
                floating-point.
            grid: Rows and columns of the image; None is the grid of the table.

        Returns:
            The sum, with the shape and dtype of `x`.

        Raises:
            ValueError: If `x` has a wrong shape or is not floating-point, or
                `grid` has no cell.
        """
        if not x.is_floating_point():
            raise ValueError(
                f"x must have a floating-point dtype, got {x.dtype}"
            )
        grid, options = grid or self.grid, {"convention": self.convention}
        _check_grid(grid, "grid")
        length, dim = self.extra + grid[0] * grid[1], self.table.shape[-1]
        if x.shape[-2:] != (length, dim):
            raise ValueError(
                f"x must be (..., {length}, {dim}) for {grid[0]} rows of "
                f"{grid[1]} patches and {self.extra} before, "
                f"got {tuple(x.shape)}"
            )
        table = resize_table(
            self.table, self.grid, grid, extra=self.extra, **options
        )
        return x + table.to(x.dtype)


def _shares(
    old: int, new: int, convention: str, count: Callable[..., Tensor]
) -> Tensor:
    """Return the weight of each old cell in each new one: (new, old).

    count is torch.arange with a dtype and a device.
    """
    kernel, _, how = convention.partition("_")
    wide = max(1.0, old / new) if how == "antialias" else 1.0
    n = count(new)[:, None]
    at = (n + 0.5) * old / (new + 0.1 * (how == "offset")) - 0.5
    if how == "corners":
        at = n * (old - 1) / max(new - 1, 1)
    cells = count(-2, old + 2)  # some lie outside
    away = ((at - cells) / wide).abs()  # (new, old + 4)
    if kernel == "bilinear":
        shares = (1 - away).clamp(min=0)
    else:
        shares = _keys(away, -0.5 if how == "antialias" else -0.75)
    inside = shares[:, 2:-2]  # (new, old)
    if how == "antialias":
        return inside / inside.sum(-1, keepdim=True)
    nearest = cells.clamp(0, old - 1)[:, None] == count(old)
    return shares @ nearest.to(shares.dtype)  # (new, old)


def _keys(away: Tensor, a: float) -> Tensor:
    near = ((a + 2) * away - (a + 3)) * away**2 + 1
    far = a * (((away - 5) * away + 8) * away - 4)
    return torch.where(away <= 1, near, torch.where(away < 2, far, 0.0))


def _check_grid(grid: tuple[int, int], name: str) -> None:
    if len(grid) != 2 or min(grid) < 1:
        raise ValueError(
            f"{name} must be rows and columns, of a patch or more, got {grid}"
        )


def _check_extra(extra: int) -> None:
    if extra < 0:
        raise ValueError(f"extra must not be below 0, got {extra}")


def _check_table(table: Tensor, grid: tuple[int, int], extra: int) -> None:
    _check_grid(grid, "grid")
    _check_extra(extra)
    if not table.is_floating_point():
        raise ValueError(
            f"table must have a floating-point dtype, got {table.dtype}"
        )
    rows, columns = grid
    length, shape = extra + rows * columns, tuple(table.shape)
    if len(shape) < 2 or shape[-2] != length:
        raise ValueError(
            f"table must be (..., {length}, dim) for {rows} rows of {columns} "
            f"patches and {extra} before, got {shape}"
        )


def _check_inside(coordinates: Tensor, size: int, name: str) -> None:
    try:
        low, high = map(int, coordinates.aminmax())
    except RuntimeError:  # none, or their numbers cannot be read
        return
    if low < 0 or high >= size:
        raise ValueError(f"{name} must be 0 to {size - 1}, got {low} to {high}")


# Former names, kept until the next release.
table_rows = position_index
