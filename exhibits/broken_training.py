"""Bugs in released code: positions in training."""

import torch

from exhibits._broken_and_mended import compare
from exhibits._toy_decoder import (
    VOCABULARY,
    angles,
    decoder,
    frequencies,
    look,
    turned,
    visible,
)
from snippets.check_positions import check_model, check_rotation


def _documents(places):
    """Return each token's text, split where positions restart."""
    jumps = places.diff(dim=-1, prepend=places[:, :1] - 1) != 1
    return jumps.cumsum(-1)


def _check_packed(model):
    return check_model(model, VOCABULARY, weights=model.weights, packs=True)


def _check(rotate):
    return check_rotation(rotate, dim=16)


def angles_under_autocast():
    def broken(x, positions):
        w = frequencies(x.shape[-1])
        angle = positions.float()[:, None] @ w[None]
        return turned(x, positions, lambda p, _: angle)

    def fixed(x, positions):
        w = frequencies(x.shape[-1])
        with torch.autocast(x.device.type, enabled=False):
            angle = positions.float()[:, None] @ w[None]
        return turned(x, positions, lambda p, _: angle)

    return compare(broken, fixed, _check, finds="precise_angles")


def angles_in_tf32():
    def tf32(x):
        """Round a float32 to ten fraction bits, as tensor cores do."""
        return ((x.view(torch.int32) + 2**12) & -(2**13)).view(torch.float32)

    def broken(x, positions):
        w = tf32(frequencies(x.shape[-1]))
        angle = tf32(positions.float())[:, None] @ w[None]
        return turned(x, positions, lambda p, _: angle)

    def fixed(x, positions):
        w = frequencies(x.shape[-1])
        return turned(x, positions, lambda p, _: p.float()[:, None] * w)

    return compare(broken, fixed, _check, finds="precise_angles")


def axis_of_the_heads():
    """x is (batch, heads, tokens, dim); many rotations take tokens first."""

    def rows_first(x):  # (batch, rows, columns, dim)
        rows = torch.arange(x.shape[1])
        return turned(x.transpose(1, 2), rows).transpose(1, 2)

    def broken(x, positions):
        return rows_first(x)

    def fixed(x, positions):
        return turned(x, positions)

    def check(rotate):
        return check_rotation(rotate, 16, settings={"rope_theta": 10_000.0})

    return compare(broken, fixed, check, finds="as_configured")


def packed_and_only_reset():
    def apart(layer, q, k, v, places, real, cache):
        q, k = turned(q, places), turned(k, places)
        memory = cache[layer] = cache[layer].plus(k, v, places, real)
        text = _documents(memory.places)
        own = text[:, None, -q.shape[2] :, None] == text[:, None, None, :]
        return look(q, memory, visible(memory, q.shape[2]) & own)

    broken, fixed = decoder(), decoder(attend=apart)
    return compare(broken, fixed, _check_packed, finds="alone_as_packed")


def axes_taken_for_documents():
    """Tokens are patches of an image, four wide, with three coordinates."""

    def apart(watched):
        def attend(layer, q, k, v, places, real, cache):
            q, k = turned(q, places), turned(k, places)
            memory = cache[layer] = cache[layer].plus(k, v, places, real)
            axes = torch.stack((places, places // 4, places % 4))
            text = _documents(axes[watched])  # of this call only
            shown = visible(memory, q.shape[2])
            if memory.length == q.shape[2] and bool(text.diff().any()):
                same = text[:, None, :, None] == text[:, None, None, :]
                shown = shown & same
            return look(q, memory, shown)

        return attend

    broken, fixed = decoder(attend=apart(2)), decoder(attend=apart(0))
    return compare(broken, fixed, _check_packed, finds="whole_as_steps")


def each_piece_from_the_first_row():
    """Two devices have one half each; one table is for all tokens."""

    def rotate(x, positions, rows_of):
        angle = angles(positions)  # (tokens, pairs): a row for each token
        half = (x.shape[2] + 1) // 2
        out = []
        for begin in (0, half):
            piece = x[:, :, begin : begin + half]
            rows = angle[rows_of(begin, piece.shape[2])]
            out += [
                turned(piece, positions[: len(rows)], lambda p, _, a=rows: a)
            ]
        return torch.cat(out, dim=2)

    def broken(x, positions):
        return rotate(x, positions, lambda begin, n: slice(0, n))

    def fixed(x, positions):
        return rotate(x, positions, lambda begin, n: slice(begin, begin + n))

    return compare(broken, fixed, _check, finds="place_alone")
