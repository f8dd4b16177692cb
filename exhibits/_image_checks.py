"""Check image positions: ids, position tables and rotations."""

import math

import torch

from exhibits._toy_decoder import turned
from snippets.check_positions import Finding


def _plain(check, asked, wrong, cause):
    if not wrong:
        return Finding(check, "passes", asked, "yes", "yes")
    return Finding(check, "fails", asked, "yes", f"no: {wrong}", cause=cause)


def check_ids(ids):
    """Check ids((frames, rows, columns)) -> (3, patches): t, y and x."""
    asked = "Does each patch have its own coordinates?"
    frames, rows, columns = grid = (3, 2, 5)
    cause = "coordinates truncated too early, or too few grids"
    try:
        found = ids(grid)
    except Exception as error:
        told = f"it raised {type(error).__name__}"
        return [_plain("distinct", asked, told, cause)]
    many, want = len(found.unique(dim=1)[0]), frames * rows * columns
    told = f"{many} different coordinates for {want} patches"
    right = many == want == found.shape[1]
    findings = [_plain("distinct", asked, "" if right else told, cause)]
    asked = "Does t count frames, y rows and x columns?"
    sizes = tuple(len(axis.unique()) for axis in found)
    told = f"{sizes} values for a grid of {grid}"
    cause = "x and y swapped, or the positions of a text"
    wrong = "" if sizes == grid else told
    return [*findings, _plain("axes_named", asked, wrong, cause)]


def check_prompt(place):
    """Check place(parts) -> (3, tokens); parts are text lengths or grids."""
    asked = "Does each part begin one position after all earlier parts?"
    parts, wrong, before, done = (3, (9, 2, 5), 4, (1, 3, 2), 2), "", -1, 0
    found = place(parts)
    for part in parts:
        many = part if isinstance(part, int) else math.prod(part)
        piece = found[:, done : done + many]
        begins = piece.amin(1).tolist()
        if begins != [before + 1] * 3 and not wrong:
            wrong = f"part {part} begins at {begins}, after {before}"
        before, done = max(before, int(piece.max())), done + many
    cause = "a length of the video that leaves out its frames"
    return [_plain("one_behind_another", asked, wrong, cause)]


def check_table(resize, grid, like=None):
    """Check resize(table, size) of a table (rows, columns, channels)."""
    rows, columns = grid
    y = torch.arange(rows)[:, None].expand(grid)
    x = torch.arange(columns).expand(grid)
    table = torch.stack((y, x, torch.ones(grid)), -1).float()
    asked = "Does the table have the requested size?"
    wrong = ""
    for n in range(1, 131):
        have = tuple(resize(table, (n, n + 3)).shape[:2])
        if have != (n, n + 3) and not wrong:
            wrong = f"{have} instead of {(n, n + 3)}"
    cause = "a size from a scale, rounded down to one row less"
    findings = [_plain("right_size", asked, wrong, cause)]
    asked = "Do rows stay rows, and columns columns?"
    wrong = ""
    out = resize(table, (2 * rows, 2 * columns))
    across, down = out[..., 0].std(1).max(), out[..., 1].std(0).max()
    if out.shape[:2] != (2 * rows, 2 * columns) or max(across, down) > 1e-3:
        wrong = f"the values of a row vary by {across:.2g}"
    cause = "a grid that is assumed to be square"
    findings += [_plain("axes_kept", asked, wrong, cause)]
    if like is not None:
        seeded = torch.Generator().manual_seed(0)
        made = torch.randn(*grid, 3, generator=seeded)
        size = (rows + 3, columns + 5)
        gap = float((resize(made, size) - like(made, size)).abs().max())
        asked = "Is the table resized as in training?"
        wrong = f"it differs by {gap:.2g}" if gap > 1e-4 else ""
        cause = "a different interpolation"
        findings += [_plain("as_trained", asked, wrong, cause)]
    return findings


def check_grid(rotate, dim, axes_of_pairs):
    """Check rotate(x, positions (3, tokens)) by the axis of each pair."""
    x = torch.randn(1, 1, 1, dim, generator=torch.Generator().manual_seed(0))
    at = torch.tensor([5, 5, 5])[:, None]
    here = rotate(x, at)
    asked = "Does each axis rotate its own pairs?"
    wrong = ""
    for axis in range(3):
        moved = at + torch.eye(3, dtype=at.dtype)[axis][:, None]
        gap = (rotate(x, moved) - here).abs().view(2, -1).amax(0) > 1e-6
        want = torch.tensor([n == axis for n in axes_of_pairs])
        if not bool((gap == want).all()) and not wrong:
            have, wanted = (
                y.nonzero().flatten().tolist() for y in (gap, want)
            )
            wrong = f"axis {axis} rotates pairs {have}, not {wanted}"
    cause = "blocks of pairs instead of alternating axes, or the reverse"
    findings = [_plain("axes_apart", asked, wrong, cause)]
    asked = "Is a text, with three equal coordinates, rotated as by RoPE?"
    gap = float((here - turned(x, at[0])).abs().max())
    wrong = f"it differs by {gap:.2g}" if gap > 1e-6 else ""
    cause = "axes whose frequencies are not those of RoPE on a text"
    return [*findings, _plain("text_as_text", asked, wrong, cause)]
