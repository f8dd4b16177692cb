"""What pictures ask of positions: of ids, of tables and of a rotation."""

import math

import torch

from exhibits._toy_decoder import turned
from snippets.check_positions import Finding


def _plain(check, asked, wrong, cause):
    if not wrong:
        return Finding(check, "passes", asked, "yes", "yes")
    return Finding(check, "fails", asked, "yes", f"no: {wrong}", cause=cause)


def check_ids(ids):
    """ids((frames, rows, columns)) -> coordinates (3, patches): t, y, x."""
    asked = "Is there a place for each patch, and another one for each?"
    frames, rows, columns = grid = (3, 2, 5)
    cause = "places cut to whole numbers too early, or grids that run out"
    try:
        found = ids(grid)
    except Exception as error:
        told = f"it raised {type(error).__name__}"
        return [_plain("distinct", asked, told, cause)]
    many, want = len(found.unique(dim=1)[0]), frames * rows * columns
    told = f"{many} places for {want} patches"
    right = many == want == found.shape[1]
    findings = [_plain("distinct", asked, "" if right else told, cause)]
    asked = "Does t count frames, y rows and x columns?"
    sizes = tuple(len(axis.unique()) for axis in found)
    told = f"{sizes} values for a grid of {grid}"
    cause = "x and y in the other order, or the places of a text"
    wrong = "" if sizes == grid else told
    return [*findings, _plain("axes_named", asked, wrong, cause)]


def check_prompt(place):
    """place(parts) -> (3, tokens); a part is a number of words, or a grid."""
    asked = "Does each part begin one step behind all that was before?"
    parts, wrong, before, done = (3, (9, 2, 5), 4, (1, 3, 2), 2), "", -1, 0
    found = place(parts)
    for part in parts:
        many = part if isinstance(part, int) else math.prod(part)
        piece = found[:, done : done + many]
        begins = piece.amin(1).tolist()
        if begins != [before + 1] * 3 and not wrong:
            wrong = f"{part} begins at {begins}, behind {before}"
        before, done = max(before, int(piece.max())), done + many
    cause = "frames that are left out of what a film is long"
    return [_plain("one_behind_another", asked, wrong, cause)]


def check_table(resize, grid, like=None):
    """resize(table, (rows, columns)) of a table (rows, columns, channels)."""
    rows, columns = grid
    y = torch.arange(rows)[:, None].expand(grid)
    x = torch.arange(columns).expand(grid)
    table = torch.stack((y, x, torch.ones(grid)), -1).float()
    asked = "Is the table of the size that was asked for?"
    wrong = ""
    for n in range(1, 131):
        have = tuple(resize(table, (n, n + 3)).shape[:2])
        if have != (n, n + 3) and not wrong:
            wrong = f"{have} in place of {(n, n + 3)}"
    cause = "a scale that is rounded down to one row less"
    findings = [_plain("right_size", asked, wrong, cause)]
    asked = "Do rows stay rows, and columns columns?"
    wrong = ""
    out = resize(table, (2 * rows, 2 * columns))
    across, down = out[..., 0].std(1).max(), out[..., 1].std(0).max()
    if out.shape[:2] != (2 * rows, 2 * columns) or max(across, down) > 1e-3:
        wrong = f"a row's value varies by {across:.2g} in the row"
    cause = "a grid that is taken to be square"
    findings += [_plain("axes_kept", asked, wrong, cause)]
    if like is not None:
        seeded = torch.Generator().manual_seed(0)
        made = torch.randn(*grid, 3, generator=seeded)
        size = (rows + 3, columns + 5)
        gap = float((resize(made, size) - like(made, size)).abs().max())
        asked = "Is it resized as where it was trained?"
        wrong = f"it differs by {gap:.2g}" if gap > 1e-4 else ""
        cause = "another kind of interpolation"
        findings += [_plain("as_trained", asked, wrong, cause)]
    return findings


def check_grid(rotate, dim, axes_of_pairs):
    """rotate(x, positions (3, tokens)), and the axis of each pair."""
    x = torch.randn(1, 1, 1, dim, generator=torch.Generator().manual_seed(0))
    at = torch.tensor([5, 5, 5])[:, None]
    here = rotate(x, at)
    asked = "Does each axis turn its own pairs?"
    wrong = ""
    for axis in range(3):
        moved = at + torch.eye(3, dtype=at.dtype)[axis][:, None]
        gap = (rotate(x, moved) - here).abs().view(2, -1).amax(0) > 1e-6
        want = torch.tensor([n == axis for n in axes_of_pairs])
        if not bool((gap == want).all()) and not wrong:
            have, wanted = (
                y.nonzero().flatten().tolist() for y in (gap, want)
            )
            wrong = f"axis {axis} turns pairs {have}, not {wanted}"
    cause = "blocks of pairs for axes that take turns, or the reverse"
    findings = [_plain("axes_apart", asked, wrong, cause)]
    asked = "Is a text, with three equal coordinates, turned as by RoPE?"
    gap = float((here - turned(x, at[0])).abs().max())
    wrong = f"it differs by {gap:.2g}" if gap > 1e-6 else ""
    cause = "axes whose frequencies are not those of one row of pairs"
    return [*findings, _plain("text_as_text", asked, wrong, cause)]
