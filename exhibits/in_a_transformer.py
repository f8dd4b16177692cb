"""Figures and examples of the chapter on positions in a Transformer.

One decoder with a switch for every encoding, and the effect of padding,
packing, a cache, scale, normalisation, dropout and tied weights.
"""

import warnings
from itertools import permutations

import matplotlib.pyplot as plt
import torch
from executable_prose import Choice, Live, Slider
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import (
    create_block_mask,
    flex_attention,
)
from torch.nn.functional import cross_entropy, layer_norm, rms_norm
from torch.nn.functional import dropout as drop

from exhibits._drawing import FAMILIES, name_lines
from experiments.encodings import switch
from snippets.alibi import alibi_bias, alibi_slopes
from snippets.block import Decoder, Encoding
from snippets.decoding import (
    KeyValueCache,
    attend,
    attention_mask,
    document_positions,
    flex_attention_mask,
    flex_bias,
    keep_slots,
    move_positions,
)
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.sinusoidal import sinusoidal_encoding

# Small enough to do without torch.compile, which torch would have.
warnings.filterwarnings("ignore", "flex_attention called without")

DIM, HEADS, LENGTH = 32, 2, 64  # of the models of this chapter
UPDATES = 80  # of the models that are taught which word came first
WORDS = [".", "dog", "bites", "man", "the"]


SWITCH = switch(DIM, HEADS, LENGTH, clip=16)
DOORS = dict(
    zip(("embed", "rotate", "bias", "score"), FAMILIES.values(), strict=True)
)


def _model(name, layers=2, vocabulary=64, trained=False):
    """Return a decoder with random parameters. With `trained`, the learned
    parameters of the encoding are random instead of as initialised.
    """
    torch.manual_seed(0)
    made = Decoder(Encoding(), vocabulary, DIM, HEADS, layers)
    nn.init.normal_(made.tokens.weight)
    for block in made.blocks:  # weights large enough to make a difference
        nn.init.normal_(block.project.weight, std=2 * DIM**-0.5)
    made.encoding = SWITCH[name]()
    if trained:
        for parameter in made.encoding.parameters():
            nn.init.uniform_(parameter, 0.2, 1.0)
            if parameter.ndim == 2:
                nn.init.normal_(parameter)
    return made.double().requires_grad_(False)


def _alone(decoder, ids, first=0):
    """Return the logits of one text alone, from position `first` on."""
    positions = first + torch.arange(len(ids))[None]
    return decoder(ids[None], positions, torch.ones_like(positions))[0][0]


def seats():
    """Three rows of eight boxes, with a position in each token's box.

    Left padding: three boxes are empty, and positions start at zero in the
    fourth. Packing: two texts share the row, and positions start at zero in
    each. KV cache: the last token is new and gets the next position.
    """
    rows = (
        ("left padding", [0, 0, 0, 1, 1, 1, 1, 1], None),
        ("packing: two texts", [1, 1, 1, 2, 2, 2, 2, 2], None),
        ("KV cache: one new token", [1, 1, 1, 1, 1, 1, 1, 1], 7),
    )
    fig, axes = plt.subplots(3, 1, figsize=(4.4, 2.9))
    for ax, (title, documents, late) in zip(axes, rows, strict=True):
        numbers = document_positions(torch.tensor(documents)).tolist()
        for seat, (party, number) in enumerate(
            zip(documents, numbers, strict=True)
        ):
            color = ("gray", "C0", "C1")[party]
            if seat == late:
                color = "C2"
            box = plt.Rectangle(
                (seat + 0.06, 0), 0.88, 1, color=color, alpha=0.3
            )
            ax.add_patch(box)
            if party:
                ax.text(
                    seat + 0.5,
                    0.5,
                    str(number),
                    ha="center",
                    va="center",
                    weight="bold",
                )
        ax.set_xlim(0, 8)
        ax.set_ylim(-0.1, 1.1)
        ax.axis("off")
        ax.set_title(title, loc="left")
    return fig


def from_text_to_vectors():
    text = "the dog bites the man ."
    ids = torch.tensor([WORDS.index(word) for word in text.split()])
    positions = torch.arange(len(ids))
    embed = torch.randn(len(WORDS), 4)
    waves = sinusoidal_encoding(positions, 4, base=100.0)
    print("token   id  position   token vector    plus position")
    for n, word in enumerate(text.split()):
        vector = "  ".join(f"{x:+.1f}" for x in embed[ids[n], :2])
        both = "  ".join(f"{x:+.1f}" for x in (embed[ids[n]] + waves[n])[:2])
        print(f"{word:<7}{ids[n]:>3}{n:>10}   {vector} …    {both} …")
    return {"again": 3, "first": 0, "id": WORDS.index("the")}


def _taught(name, layers):
    """Train a decoder to predict, after three words in any of their six
    orders, the word that came first; return the orders and its logits.
    """
    orders = torch.tensor([[*o, 0] for o in permutations((1, 2, 3))])
    decoder = _model(name, layers, vocabulary=len(WORDS))
    for block in decoder.blocks:  # begin with nearly equal weights
        block.project.weight.mul_(0.25)
    decoder.requires_grad_(True)
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    at = torch.arange(4).expand(6, -1)
    for _ in range(UPDATES):
        scores, _ = decoder(orders, at, torch.ones_like(at))
        loss = cross_entropy(scores[:, -1], orders[:, 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return orders, decoder(orders, at, torch.ones_like(at))[0][:, -1]


def three_orders():
    """Two bar charts of the probability that a small trained model gives to
    each word as the first, after three orders of the same words.

    Without positions every order gets the same answer, a third for each
    word. With RoPE every order gets its own answer, nearly always the right
    one.
    """
    fig, axes = plt.subplots(2, 1, figsize=(4.4, 3.9), sharex=True)
    right = {}
    for ax, name in zip(axes, ("none", "RoPE"), strict=True):
        orders, scores = _taught(name, layers=1)
        chances = scores.detach().softmax(-1)
        right[name] = chances.gather(1, orders[:, :1])
        for shift, n in zip((-0.27, 0, 0.27), (0, 5, 2), strict=True):
            label = " ".join(WORDS[i] for i in orders[n, :3])
            places = torch.arange(3) + shift
            ax.bar(places, chances[n, 1:4], width=0.25, label=label)
        ax.set_title(
            "without positions" if name == "none" else f"with {name}"
        )
        ax.set_ylim(0, 1.05)
    axes[1].set_xticks(range(3), [f"“{word}”" for word in WORDS[1:4]])
    axes[0].legend(loc="upper center")
    fig.supylabel("probability of the answer")
    orders, scores = _taught("none", layers=2)
    deep = scores.softmax(-1).gather(1, orders[:, :1])
    return fig, {
        "updates": UPDATES,
        "without_least": right["none"].min(),
        "without_most": right["none"].max(),
        "with_rope": right["RoPE"].min(),
        "without_two_layers": deep.min(),
    }


def every_encoding():
    ids = torch.arange(1, 11)
    moved = torch.tensor([3, 1, 5, 2, 4, 9, 8, 6, 7, 10])
    door_of = {name: door for door, names in DOORS.items() for name in names}
    print("                        learned   change of the logits")
    print("encoding        method  values    at first  random values")
    silent = 0
    for name in SWITCH:
        gaps = []
        for trained in (False, True):
            decoder = _model(name, layers=1, trained=trained)
            gap = _alone(decoder, ids)[-1] - _alone(decoder, moved)[-1]
            gaps.append(gap.abs().max().item())
        learned = sum(p.numel() for p in decoder.encoding.parameters())
        shown = ("0" if gap < 1e-12 else f"{gap:.2f}" for gap in gaps)
        first, later = shown
        print(
            f"{name:<16}{door_of.get(name, '–'):<8}{learned:>7}"
            f"{first:>11}{later:>15}"
        )
        silent += gaps[0] < 1e-12
    return {"silent_at_first": silent - 1}


def masks():
    """Three grids of which keys each query sees, with positions along both
    edges: a left-padded row, two texts in one row, and two new tokens with
    a cache. Each consists of triangles that touch the diagonal.
    """
    cases = (
        ("left padding", [0, 0, 0, 1, 1, 1, 1], 0),
        ("packing", [1, 1, 2, 2, 2, 2, 2], 0),
        ("KV cache", [1, 1, 1, 1, 1, 1, 1], 5),
    )
    fig, axes = plt.subplots(1, 3, figsize=(4.4, 1.9))
    for ax, (title, documents, old) in zip(axes, cases, strict=True):
        documents = torch.tensor(documents)
        at = document_positions(documents)
        seen = attention_mask(at[old:], at, documents[old:], documents)
        ax.imshow(seen, vmin=0, vmax=1.4)
        ax.set_xticks(range(len(at)), at.tolist())
        ax.set_yticks(range(len(at) - old), at[old:].tolist())
        ax.set_title(title)
        ax.set_xlabel("key")
    axes[0].set_ylabel("query")
    return fig


def next_token():
    """A grid of eight queries and eight keys, filled where the query sees
    the key, with positions along both edges. Five tokens are present. A
    frame marks the row of the newest.
    """
    seats = 8
    rows = {
        "one text": [1] * seats,
        "left padding": [0, 0, 1, 1, 1, 1, 1, 1],
        "two texts": [1, 1, 1, 1, 2, 2, 2, 2],
    }
    corners = torch.tensor([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])
    place = torch.arange(seats, dtype=torch.float64)

    def grow(row, tokens):
        documents = torch.tensor(rows[row])
        at = document_positions(documents)
        here = place < tokens
        seen = attention_mask(at, at, documents, documents)
        width = torch.stack((tokens, torch.ones_like(tokens)))
        start = torch.stack((torch.zeros_like(tokens), tokens - 1)) - 0.5
        newest = (at * (place == tokens - 1)).sum()
        made = {
            "seen": (seen & here & here[:, None]).double(),
            "frame": start + corners * width,
            "position": newest,
            "keys": (seen & (place == tokens - 1)[:, None]).sum(),
            "which": torch.tensor(list(rows).index(row)),
        }
        shown = (at + 1) * here
        return made | {f"shown_{n}": shown[n] for n in range(seats)}

    live = _next_token_live(grow, rows, seats)
    made = live.start()
    fig, ax = plt.subplots(figsize=(4.4, 3.4))
    live.moves["seen"] = ax.imshow(made["seen"], vmin=0, vmax=1.4, aspect=1)
    (live.moves["frame"],) = ax.plot(*made["frame"].T, "C1", clip_on=False)
    for n in range(seats):
        for side, x, y in (("query", -1, n), ("key", n, -1)):
            live.moves[f"{side} {n}"] = ax.text(
                x, y, "", ha="center", va="center"
            )
    ax.set(xticks=[], yticks=[])
    ax.set_xlabel("key")
    ax.set_ylabel("query", labelpad=22)
    return fig, {"seats": seats}, live


def _next_token_live(grow, rows, seats):
    digits = "|".join(map(str, range(seats)))
    return Live(
        grow,
        {
            "tokens": Slider(
                "tokens so far", 1, seats, 5, button="next token"
            ),
            "row": Choice("row", tuple(rows), "one text"),
        },
        says="The newest token has position {position:.0f} and sees "
        "{keys:.0f} of {tokens:.0f} tokens.",
        call="import torch\n"
        "from decoding import attention_mask, document_positions\n\n"
        "documents = torch.tensor({which|"
        + "|".join(map(str, rows.values()))
        + "})[:{tokens}]\nat = document_positions(documents)\n"
        "mask = attention_mask(at, at, documents, documents)\n"
        "at[-1], mask[-1].sum()",
        draws={
            "seen": "torch.block_diag(mask, torch.zeros(8, 8))[:8, :8]",
        },
        texts={
            f"{side} {n}": f"{{shown_{n}||{digits}}}"
            for side in ("query", "key")
            for n in range(seats)
        },
    )


def _mistakes(name):
    """Return the largest change of a text's logits, divided by their
    standard deviation, for each of four mistakes in positions.
    """
    decoder, ids = _model(name, trained=True), torch.arange(1, 9)
    right, one = _alone(decoder, ids), torch.ones(1, 8, dtype=torch.int64)
    at = torch.arange(8)[None]

    def off(scores, last=8):
        gap = scores[0, -last:] - right[-last:]
        return (gap.abs().max() / right.std()).item()

    counted, _ = decoder(ids[None], at + 3, one)
    _, past = decoder(ids[None, :7], at[:, :7], one[:, :7])
    ahead, _ = decoder(ids[None, 7:], at[:, 7:] + 3, one[:, 7:], past)
    both, document = torch.cat((ids + 20, ids)), torch.arange(1, 3)
    document = document.repeat_interleave(8)
    runs_on, _ = decoder(both[None], torch.arange(16)[None], document[None])
    as_one, _ = decoder(
        both[None], torch.arange(16)[None], torch.ones_like(document)[None]
    )
    return {
        "padding": off(counted),
        "packing": off(runs_on),
        "next": off(ahead, last=1),
        "one text": off(as_one),
    }


def mistakes():
    """A table with a row for each of fourteen encodings and one for no
    encoding, and a column for each of four mistakes.

    Counting the padding, and not resetting positions in a packed row, change
    only the two encodings that are added to the embeddings. A wrong position
    of the next token changes all encodings that use positions. Packing
    without a document mask changes all.
    """
    found = {name: _mistakes(name) for name in SWITCH}
    grid = torch.tensor([[*row.values()] for row in found.values()])
    fig, ax = plt.subplots(figsize=(4.4, 4.9))
    ax.imshow(grid > 1e-5, vmin=0, vmax=1.6, aspect="auto")
    for i, row in enumerate(grid.tolist()):
        for j, gap in enumerate(row):
            text = "same" if gap < 1e-5 else f"{gap:.2g}"
            ax.text(j, i, text, ha="center", va="center")
    columns = (
        "padding\ncounted",
        "packing,\nno reset",
        "next\nposition\nwrong",
        "packing,\nno mask",
    )
    ax.set_xticks(range(4), columns)
    ax.xaxis.tick_top()
    ax.set_yticks(range(len(found)), found)
    hit = {
        column: [name for name in found if found[name][column] > 1e-5]
        for column in found["none"]
    }
    return fig, {
        "encodings": len(found),
        "padding_hits": len(hit["padding"]),
        "packing_hits": len(hit["packing"]),
        "next_hits": len(hit["next"]),
        "one_text_hits": len(hit["one text"]),
    }


def _share(token, position):
    """Return the fraction of the squared length that positions have."""
    token, position = token.square().sum(-1), position.square().sum(-1)
    return (position.mean() / (position.mean() + token.mean())).item()


def loudness():
    """Line chart of the position's fraction of the squared norm of the input
    to the first layer, against the standard deviation of the tokens.

    The fraction falls from almost one for small tokens to almost zero for
    large ones. If tokens are normalised before the position is added, it is
    one third throughout.
    """
    dim, tokens = 512, 400
    deviations = torch.logspace(-2, 1.7, 25)
    p = sinusoidal_encoding(torch.arange(tokens), dim)
    x = torch.randn(tokens, dim)
    plain = [_share(s * x, p) for s in deviations]
    first = [
        _share(layer_norm(s * x, (dim,), eps=1e-12), p) for s in deviations
    ]
    fig, ax = plt.subplots(figsize=(4.4, 2.9))
    ax.semilogx(deviations, plain, label="sum")
    ax.semilogx(deviations, first, "--", label="normalised, then sum")
    marks = (
        ("0.02", 0.02, 0.87),
        ("1/√d, times √d", 1.0, 0.4),
        ("1, times √d", 5.0, 0.1),
    )
    for name, deviation, height in marks:
        ax.text(deviation * 1.2, height, name)
    for deviation in (0.02, 1.0, dim**0.5):
        ax.plot(deviation, 1 / (1 + 2 * deviation**2), "o", color="C2")
    ax.set_xlabel("standard deviation of the tokens")
    ax.set_ylabel("fraction from position")
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    return fig, {
        "dim": dim,
        "small": _share(0.02 * x, p),
        "one": _share(x, p),
        "large": _share(dim**0.5 * x, p),
        "first": first[0],
    }


def norms():
    dim, tokens = 512, 400
    p = sinusoidal_encoding(torch.arange(tokens), dim)
    drawn = torch.randn(tokens, dim)
    print("fraction of squared norm      standard deviation of tokens")
    print("from the position             0.02      1   22.6")

    def centred(part):
        return part - part.mean(-1, keepdim=True)

    rows = {
        "the sum": lambda x: _share(x, p),
        "RMSNorm of the sum": lambda x: _share(
            *(part / _rms(x + p) for part in (x, p))
        ),
        "LayerNorm of the sum": lambda x: _share(
            *(
                centred(part) / centred(x + p).std(-1)[:, None]
                for part in (x, p)
            )
        ),
        "LayerNorm, then the sum": lambda x: _share(
            layer_norm(x, (dim,), eps=1e-12), p
        ),
    }
    for name, share in rows.items():
        cells = (share(s * drawn) for s in (0.02, 1.0, dim**0.5))
        print(f"{name:<27}", *(f"{cell:6.3f}" for cell in cells))
    whole = p.square().sum(-1).mean()
    return {"lost": 1 - centred(p).square().sum(-1).mean() / whole}


def _rms(x):
    return x.square().mean(-1, keepdim=True).sqrt()


def dropout():
    """Line chart of the fraction of positions decoded correctly against the
    dropout rate, for three widths.

    All three curves begin at one and fall. With 16 channels the curve falls
    from the lowest rate on, with 256 channels only at high rates.
    """
    rates, positions = torch.linspace(0, 0.8, 9), torch.arange(256)
    fig, ax = plt.subplots(figsize=(4.4, 2.6))
    right = {}
    for dim, line in ((256, "-"), (64, "--"), (16, ":")):
        table = sinusoidal_encoding(positions, dim)
        right[dim] = []
        for rate in rates.tolist():
            left = drop(table.expand(4, -1, -1), rate)
            nearest = torch.cdist(left, table).argmin(-1)
            right[dim].append((nearest == positions).float().mean())
        ax.plot(rates, right[dim], line, label=f"{dim}\nchannels")
    ax.set_xlabel("dropout rate")
    ax.set_ylabel("fraction decoded correctly")
    name_lines(ax)
    return fig, {
        "positions": len(positions),
        "channels": 64,
        "usual": rates[1],
        "narrow": right[16][1],
        "middle": right[64][1],
        "half": rates[5],
        "middle_half": right[64][5],
        "wide_half": right[256][5],
    }


def tied_weights():
    """Return how often a word gets the highest score for itself before any
    layer, with one matrix for embeddings and output scores.
    """
    dim, vocabulary, tokens = 256, 1000, 32
    drawn = torch.randn(vocabulary, dim)
    waves = sinusoidal_encoding(torch.arange(tokens), dim)
    table = 0.01 * torch.randn(tokens, dim)
    cases = (
        (0.02, 1.0, waves),
        (0.02, 1.0, table),
        (dim**-0.5, dim**0.5, waves),
        (0.02, 1.0, 0 * waves),  # nothing is added: RoPE, or a bias
    )
    itself = []
    for deviation, scale, positions in cases:
        embed = deviation * drawn
        x = scale * embed[:200, None] + positions  # (200, tokens, dim)
        best = (x @ embed.T).argmax(-1)
        itself.append((best == torch.arange(200)[:, None]).float().mean())
    first, *others = itself
    return {"lost": first, "kept": min(others), "dim": dim}


def _first(past, tokens):
    """Return the cache of only the first tokens."""
    layers, at, of = past
    layers = [(k[:, :, :tokens], v[:, :, :tokens]) for k, v in layers]
    return layers, at[:, :tokens], of[:, :tokens]


def _read(decoder, ids, start, past):
    """Return the most likely token after each of ids, and the new cache."""
    at = start + torch.arange(len(ids))[None]
    tokens = torch.tensor(ids)[None]
    scores, past = decoder(tokens, at, torch.ones_like(at), past)
    return scores[0].argmax(-1).tolist(), past


def _continue(decoder, text, tokens):
    """Continue a text greedily, token by token with a cache."""
    text, past, start = list(text), None, 0
    for _ in range(tokens):
        best, past = _read(decoder, text[start:], start, past)
        start = len(text)
        text.append(best[-1])
    return text


def through_torch():
    documents = torch.tensor([[1] * 5 + [2] * 3])  # two texts in one row
    at = document_positions(documents)
    q, k, v = torch.randn(3, 1, 2, 8, 16)  # two heads

    mask = attention_mask(at, at, documents, documents)
    one = attend(q, k, v, mask, alibi_bias(at, at, alibi_slopes(2)))

    last = torch.tensor([7])  # no distance in the row is longer
    by_key = alibi_bias(last, torch.arange(8), alibi_slopes(2))[:, 0]
    mask_mod = flex_attention_mask(at, at, documents, documents)
    block_mask = create_block_mask(mask_mod, 1, None, 8, 8, device="cpu")
    score_mod = flex_bias(by_key.flip(-1), at, at)  # nearest first
    other = flex_attention(q, k, v, score_mod, block_mask)
    print(
        "the same within 1e-6:",
        ((one - other).abs().max() < 1e-6).item(),
    )


def one_cache_for_all_layers():
    # Base and layout are the checkpoint's: a wrong one gives no error
    frequencies = rope_frequencies(8, base=10_000.0)
    embed, weights = torch.randn(26, 32), torch.randn(4, 32, 64) / 32**0.5

    def read(ids, at, documents, cache):
        """Return outputs for new tokens (batch, tokens), longer cache."""
        seen_at = torch.cat((cache.positions[0], at), -1)
        seen_of = torch.cat((cache.documents[0], documents), -1)
        masks = [
            attention_mask(at, seen_at, documents, seen_of, window=window)
            for window in (None, 4)
        ]
        tables = rope_tables(at, frequencies)  # once, for all layers
        x, new = embed[ids], []
        for layer, weight in enumerate(weights):
            heads = (rms_norm(x, (32,)) @ weight).unflatten(-1, (8, 8))
            q, k, v = heads.transpose(1, 2).split((4, 2, 2), 1)
            q, k = (apply_rope(each, *tables, "half") for each in (q, k))
            new.append((k, v))
            k = torch.cat((cache.k[layer], k), -2)
            v = torch.cat((cache.v[layer], v), -2)
            y = attend(q, k, v, masks[layer % 2])  # odd: with the window
            x = x + y.transpose(1, 2).flatten(-2)
        k, v = (torch.stack(each) for each in zip(*new, strict=True))
        return x, cache.extend(k, v, at[None], documents[None])

    def in_steps(sizes, ids, documents):
        """Return the outputs of rows processed in pieces of these sizes."""
        at, made = document_positions(documents), []
        k = torch.zeros(4, len(ids), 2, 0, 8)  # of all layers, no keys yet
        cache = KeyValueCache(k, k, at[None, :, :0], documents[None, :, :0])
        rows = (each.split(sizes, -1) for each in (ids, at, documents))
        for step in zip(*rows, strict=True):
            x, cache = read(*step, cache)
            made.append(x)
        return torch.cat(made, 1)

    ids = torch.randint(26, (2, 10))
    documents = torch.tensor([[1] * 10, [0] * 3 + [1] * 7])  # left padding
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # fused, or an error
        whole = in_steps([10], ids, documents)
        steps = in_steps([6, 1, 1, 1, 1], ids, documents)
        alone = in_steps([7], ids[1:, 3:], documents[1:, 3:])
    for way, one, other in (
        ("step by step equals at once", steps, whole),
        ("left-padded equals alone", whole[1:, 3:], alone),
    ):
        print(f"{way}: {((one - other).abs().max() < 1e-5).item()}")


def room_for_more():
    frequencies = rope_frequencies(64, base=10_000.0)  # the checkpoint's

    def rotate(k, offsets):  # "half" is the checkpoint's too
        return apply_rope(k, *rope_tables(offsets, frequencies), "half")

    k, v = torch.randn(2, 1, 8, 12, 64)  # of one layer, k not yet rotated
    at = torch.arange(12)[None]
    cache = KeyValueCache(rotate(k, at), v, at, torch.ones_like(at))

    slots = torch.tensor([0, 1, 8, 9, 10, 11])
    cache = keep_slots(cache, slots)
    print("kept:", cache.positions.tolist())
    cache = move_positions(cache, torch.arange(6), rotate)
    print("moved:", cache.positions.tolist())
    as_new = rotate(k[..., slots, :], cache.positions)
    print("as rotated there:", ((cache.k - as_new).abs().max() < 1e-5).item())


def _turns(width=64):
    """Return a function that rotates keys to a position, or by an offset."""
    frequencies = rope_frequencies(width, base=10000)

    def turn(k, offsets):
        kind = torch.promote_types(k.dtype, torch.float32)
        tables = rope_tables(offsets, frequencies, kind)
        return apply_rope(k, *tables, "half")

    return turn


def _in_bits(x, bits, block=32):
    """Quantise x to this many bits, with one scale for each block."""
    parts = x.float().unflatten(-1, (-1, block))
    scale = parts.abs().amax(-1, keepdim=True) / (2 ** (bits - 1) - 1)
    return ((parts / scale).round() * scale).flatten(-2)


def _after_turns(store, step, counts, once=False):
    """Return the relative error of keys after each number of rotations by
    step. They are stored after each rotation or, with `once`, rotated only
    once, from what was stored at first.
    """
    turn = _turns()
    k = torch.randn(256, 64, dtype=torch.float64)
    at = torch.arange(256) + step * counts[-1]
    first = now = store(turn(k, at))
    found, back = [], torch.full_like(at, -step)
    for n in range(1, counts[-1] + 1):
        now = store(turn(first, n * back) if once else turn(now, back))
        if n in counts:
            true = turn(k, at + n * back)
            found.append(((now - true).norm() / true.norm()).item())
    return found


def turned_again():
    """Line chart of the relative error of keys against the number of
    rotations, both axes logarithmic.

    For keys rotated once from what was first cached, the error stays the
    same. For keys rotated by 512 positions each time it grows, and by single
    positions it grows faster. For eight-bit keys rotated by 512 positions it
    is larger than for bfloat16 keys rotated in the same way.
    """
    counts = [1, 2, 4, 8, 16, 32, 64, 128, 256]

    def bfloat16(x):
        return x.bfloat16()

    found = {
        "by 1": _after_turns(bfloat16, 1, counts),
        "by 512": _after_turns(bfloat16, 512, counts),
        "once": _after_turns(bfloat16, 1, counts, once=True),
        "8 bits": _after_turns(lambda x: _in_bits(x, 8), 512, counts),
    }
    fig, ax = plt.subplots(figsize=(4.4, 2.9))
    for (name, errors), line in zip(
        found.items(), ("-", "--", ":", "-."), strict=True
    ):
        ax.loglog(counts, errors, line, label=name)
    ax.set_xlabel("number of rotations")
    ax.set_ylabel("relative error of the keys")
    name_lines(ax)
    ones, far, once, eight = (errors[-1] for errors in found.values())
    return fig, {
        "turns": counts[-1],
        "by_one": ones,
        "by_many": far,
        "once": once,
        "eight": eight,
        "four": _after_turns(lambda x: _in_bits(x, 4), 512, [1])[0],
    }


def _caches(past):
    layers, at, of = past
    return [KeyValueCache(k, v, at, of) for k, v in layers]


def _past(caches):
    layers = [(cache.k, cache.v) for cache in caches]
    return layers, caches[0].positions, caches[0].documents


def _surgery(layers):
    """Return, for each way to edit a cache, the error of the next-token
    logits against the text processed again, over their standard deviation.
    """
    decoder, turn = _model("RoPE", layers), _turns(DIM // HEADS)
    texts, last = torch.randint(64, (32, 40)).split((39, 1), -1)
    short = torch.tensor([*range(4), *range(20, 39)])  # without the middle

    def read(ids):
        at = torch.arange(ids.shape[1])[None]
        scores, past = decoder(ids, at, torch.ones_like(at))
        return scores[:, -1], _caches(past)

    def off(caches, anew):
        at = caches[0].positions[:, -1:] + 1
        scores, _ = decoder(last, at, torch.ones_like(at), _past(caches))
        gap = (scores[:, -1] - anew).square().mean().sqrt()
        return (gap / anew.std()).item()

    def all_moved(caches, start, turn):
        at = start + torch.arange(caches[0].positions.shape[-1])
        return [move_positions(cache, at, turn) for cache in caches]

    def joined(first, more):
        return [
            cache.extend(new.k, new.v, new.positions, new.documents)
            for cache, new in zip(first, more, strict=True)
        ]

    whole, _ = read(torch.cat((texts, last), -1))
    shortened, _ = read(torch.cat((texts[:, short], last), -1))
    cache, begin, chunk = (
        read(ids)[1] for ids in (texts, texts[:, :20], texts[:, 20:])
    )
    gap = [keep_slots(each, short) for each in cache]
    return {
        "moved": off(all_moved(cache, 99, turn), whole),
        "chunk": off(joined(begin, all_moved(chunk, 20, turn)), whole),
        "as it is": off(joined(begin, all_moved(chunk, 20, None)), whole),
        "gap": off(gap, shortened),
        "closed": off(all_moved(gap, 0, turn), shortened),
        "unturned": off(all_moved(gap, 0, None), shortened),
    }


def surgery():
    one, three = _surgery(1), _surgery(3)
    rows = {
        "text moved, rotated": "moved",
        "chunk, rotated": "chunk",
        "chunk, not changed": "as it is",
        "dropped, gap left": "gap",
        "gap closed, rotated": "closed",
        "gap closed, not changed": "unturned",
    }
    print("number of layers          one   three")
    for words, way in rows.items():
        first, deep = (
            "0" if found[way] < 1e-6 else f"{found[way]:.2f}"
            for found in (one, three)
        )
        print(f"{words:<24}{first:>6}{deep:>8}")


def _letters(ids):
    return " ".join(chr(ord("a") + n) for n in ids)


def speculative():
    target, draft = (_model("learned", vocabulary=26) for _ in range(2))
    target.tokens.weight.mul_(0.05)
    draft.tokens.weight.mul_(0.05)
    for parameter in draft.parameters():  # a model that is nearly as good
        parameter += 0.06 * parameter.std() * torch.randn_like(parameter)
    prompt, most = [5, 9, 2], 15
    text, past, calls = list(prompt), None, 0
    print("guesses          right    accepted     cache")
    while len(text) < len(prompt) + most:
        guess = _continue(draft, text, 4)[len(text) :]
        start = 0 if past is None else past[1].shape[1]
        best, past = _read(target, text[start:] + guess, start, past)
        best = best[-5:]  # after the last known token, and after each guess
        right = 0
        while right < 4 and guess[right] == best[right]:
            right += 1
        longer = past[1].shape[1]
        past = _first(past, longer - 4 + right)  # forget the wrong guesses
        text += best[: right + 1]
        calls += 1
        print(
            f"{_letters(guess):<16}{right:>5}    ",
            f"{_letters(best[: right + 1]):<12}",
            f"{longer:>2} to {past[1].shape[1]:>2}",
        )
    made = len(text) - len(prompt)
    same = text == _continue(target, prompt, made)
    print("same as token by token:", "yes" if same else "no")
    return {"same": same, "made": made, "calls": calls}
