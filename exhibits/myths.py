"""Experiments of the page on misconceptions, one for each sentence."""

import math

import matplotlib.pyplot as plt
import torch
from torch.nn.functional import cosine_similarity, normalize
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from exhibits._models import listed
from snippets.alibi import alibi_bias, alibi_bias_symmetric, alibi_slopes
from snippets.attention import SelfAttention, attention, scaled_dot_product
from snippets.kerple import kerple_log_bias
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.rope_scaling import position_interpolation, yarn
from snippets.shaw import shaw_scores
from snippets.sinusoidal import sinusoidal_encoding
from snippets.t5_bias import t5_buckets
from snippets.transformer_xl import distance_encodings, relative_shift


def _sinusoid(count, dim):
    return sinusoidal_encoding(torch.arange(count), dim, dtype=torch.float64)


def _random(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def _rope(x, position, layout="interleaved"):
    """Return the vector x, rotated as at one position."""
    w = rope_frequencies(x.shape[-1], base=10000)
    at = torch.tensor([float(position)], dtype=torch.float64)
    return apply_rope(x[None], *rope_tables(at, w, x.dtype), layout)[0]


def same_pattern():
    x, order = _random(6, 16), torch.tensor([3, 0, 5, 1, 4, 2])
    _, weights = attention(x, x, x)
    _, shuffled = attention(x[order], x[order], x[order])
    moved = weights[order][:, order]
    same = (shuffled - weights).abs().max()
    permuted = (shuffled - moved).abs().max()
    print("largest difference of the attention weights")
    print(f"  from the same pattern      {same:.3f}")
    print(f"  from the permuted pattern  {permuted:.0e}")
    return {"same": same, "permuted": permuted}


def blind_without_positions():
    layers = [SelfAttention(16, 1).double() for _ in range(2)]
    x = _random(8, 16)
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4, 7])  # the last stays last

    def last(x, causal):
        for layer in layers:
            x = x + layer(x, causal=causal)[0]
        return x[-1]

    changes = {}
    for name, causal in (("no mask", False), ("causal mask", True)):
        change = (last(x[order], causal) - last(x, causal)).norm()
        print(f"{name:<11}  last token changes by {change:.0e}")
        changes["causal" if causal else "full"] = change
    return changes


def set_or_multiset():
    a, b = _random(2, 16) / 2
    once, twice = torch.stack((a, b)), torch.stack((a, a, b))
    change = attention(once, once, once)[0] - attention(*[twice] * 3)[0][:2]
    change = change[0].norm()
    print(f"outputs at a in (a, b) and (a, a, b): {change:.3f} apart")
    return {"change": change}


def uniform_without_positions():
    same, other = _random(1, 16).expand(3, 16), _random(3, 16)
    for name, x in (("equal tokens", same), ("different tokens", other)):
        _, weights = attention(x, x, x)
        shown = "  ".join(f"{weight:.3f}" for weight in weights[0])
        print(f"{name:<16}  {shown}")
    return {"largest": weights[0].max()}


def sums():
    x, positions = _random(5, 16), _sinusoid(5, 16)
    order = torch.tensor([2, 0, 4, 1, 3])
    moved = x[order]

    def pooled(x):
        return attention(x, x, x)[0].sum(0)

    plain = (moved + positions).sum(0) - (x + positions).sum(0)
    attended = pooled(moved + positions) - pooled(x + positions)
    print("two orders of the same tokens, positions added")
    print(f"  sums of the vectors  {plain.norm():.0e} apart")
    print(f"  after attention      {attended.norm():.2f} apart")
    return {"sum": plain.norm(), "attended": attended.norm()}


def too_late():
    x, positions = _random(5, 16), _sinusoid(5, 16)
    order = torch.tensor([2, 0, 4, 1, 3])

    def layer(x):
        return attention(x, x, x)[0]

    def one(x):
        return (layer(x) + positions).mean(0)

    def two(x):
        return layer(layer(x) + positions).mean(0)

    gaps = [(f(x[order]) - f(x)).norm() for f in (one, two)]
    print("positions added after the first of two layers")
    print(f"  after layer 1  two orders differ by {gaps[0]:.0e}")
    print(f"  after layer 2  two orders differ by {gaps[1]:.3f}")
    return {"one": gaps[0], "two": gaps[1]}


def additive():
    rows, a, b = _sinusoid(11, 128), 3, 7
    miss = (rows[a] + rows[b] - rows[a + b]).norm()
    print(f"PE({a}) + PE({b}) differs from PE({a + b}) by {miss:.1f};")
    print(f"the norm of PE({a + b}) is {rows[a + b].norm():.1f}")
    return {"miss": miss, "length": rows[a + b].norm()}


def equal_steps():
    def test(rows):  # as tutorials have it
        return torch.allclose(rows[5] - rows[0], rows[10] - rows[5], atol=0.1)

    count = torch.arange(20.0)[:, None]
    made = {
        "sinusoidal": _sinusoid(20, 128),
        "a ramp": count * torch.randn(16),
        "all rows equal": torch.ones(20, 8),
    }
    for name, rows in made.items():
        print(f"{name:<15} {'passes' if test(rows) else 'fails'}")
    passes = [name for name, rows in made.items() if test(rows)]
    return {"passes": len(passes), "sinusoidal": test(made["sinusoidal"])}


def squared_frequencies():
    dim, length = 512, 512
    p = torch.arange(dim // 2, dtype=torch.float64)
    right = 10000 ** (-2 * p / dim)
    wrong = 10000 ** (-4 * p / dim)  # i taken for the even dimension
    still = [int((w * (length - 1) < 0.01).sum()) for w in (right, wrong)]
    print(f"pairs (of {dim // 2}) that rotate by less than 0.01")
    print(f"radians over {length} positions")
    print(f"  i counts pairs       {still[0]}")
    print(f"  i counts dimensions  {still[1]}")
    return {
        "squared": bool(torch.allclose(wrong, right**2)),
        "still": still[1],
    }


def overwhelmed():
    dim = 128
    position = _sinusoid(1, dim).norm()
    print(f"norm of a position's row, width {dim}: {position:.2f}")
    values = {"position": position}
    for name, deviation in (("small", 0.02), ("unit", 1.0)):
        token = (_random(1000, dim) * deviation).norm(dim=-1).mean()
        print(f"  tokens, standard deviation {deviation:<4} {token:6.2f}")
        values[name] = token
    return values


def steady_fall():
    dim = 64
    rows = _sinusoid(200, dim)
    products = rows @ rows[0]
    rises = (products.diff() > 0).nonzero()[:, 0] + 1
    print(f"first rise at distance {rises[0]}; {len(rises)} of")
    print(f"{len(products) - 1} steps away from position 0 are rises")
    return {"first": int(rises[0]), "rises": len(rises), "dim": dim}


def orthogonal_columns():
    count, dim = 100, 64
    rows = _sinusoid(count, dim)
    columns = normalize(rows, dim=0)
    alike = (columns.mT @ columns).fill_diagonal_(0).abs()
    tolerance = max(rows.shape) * torch.finfo(rows.dtype).eps
    rank = torch.linalg.matrix_rank(rows, rtol=tolerance)
    coarse = torch.linalg.matrix_rank(rows, rtol=1e-3)
    print(f"{dim} columns, {count} positions")
    print(f"  largest cosine of two columns  {alike.max():.6f}")
    print(f"  numerical rank                 {rank}")
    print(f"  rank down to a thousandth      {coarse}")
    return {
        "alike": alike.max(),
        "rank": rank,
        "dim": dim,
        "count": count,
        "tolerance": tolerance,
    }


def information():
    count = 512

    def bits(rows):
        _, counts = torch.unique(rows, dim=0, return_counts=True)
        share = counts.double() / count
        return float(-(share * share.log2()).sum())

    made = {
        "sinusoidal": _sinusoid(count, 128),
        "one number": torch.arange(count)[:, None] / count,
        "random rows": _random(count, 4),
        "a constant": torch.ones(count, 1),
    }
    for name, rows in made.items():
        print(f"{name:<12} {abs(bits(rows)):.0f} bits")
    return {"most": math.log2(count)}


def untouched_rows():
    rows, longest = 12, 8
    table = torch.nn.Embedding(rows, 4)
    target = torch.randn(rows, 4)
    before = table.weight.detach().clone()
    optimizer = torch.optim.Adam(table.parameters(), lr=0.1)
    for length in (3, 5, longest) * 20:
        at = torch.arange(length)
        optimizer.zero_grad()
        (table(at) - target[at]).square().mean().backward()
        optimizer.step()
    moved = (table.weight.detach() - before).norm(dim=-1)
    print("position  moved by")
    for position in (0, 4, 7, 8, 11):
        print(f"{position:>8}  {moved[position]:.2f}")
    return {
        "rows": rows,
        "longest": longest,
        "moved": moved[:longest].min(),
        "still": moved[longest:].max(),
    }


def wrong_sign():
    q, k = _random(2, 64)
    m, n = 3, 10
    left = _rope(q, m) @ _rope(k, n)
    right, wrong = q @ _rope(k, n - m), q @ _rope(k, m - n)
    print(f"(R_m q) . (R_n k)    {left:8.4f}")
    print(f"q . (R_(n-m) k)      {right:8.4f}")
    print(f"q . (R_(m-n) k)      {wrong:8.4f}")
    return {"right": abs(left - right), "wrong": abs(left - wrong)}


def no_factor():
    q = torch.tensor([1.0, 0.0], dtype=torch.float64)
    k = torch.tensor([0.0, 1.0], dtype=torch.float64)
    print(f"q . k = {q @ k:.0f}; after rotation:")
    scores = [float(q @ _rope(k, offset)) for offset in range(4)]
    for offset, score in enumerate(scores):
        print(f"  offset {offset}  {score:6.3f}")
    return {"largest": max(map(abs, scores))}


def not_weaker_with_distance():
    q, k = _random(2, 10_000, 64)
    w = rope_frequencies(64, base=10000)
    spreads = {}
    print("distance  standard deviation of random scores")
    for distance in (0, 10, 1000, 10_000):
        at = torch.full((len(k),), distance)
        turned = apply_rope(k, *rope_tables(at, w, k.dtype), "half")
        spreads[distance] = ((q * turned).sum(-1) / 8).std()
        print(f"{distance:>8}  {spreads[distance]:.2f}")
    chosen = _rope(q[0], -50)  # a key made for distance 50
    scores = [q[0] @ _rope(chosen, distance) for distance in range(200)]
    best = max(range(200), key=scores.__getitem__)
    print(f"a chosen pair scores highest at distance {best}")
    widest, narrowest = max(spreads.values()), min(spreads.values())
    return {"best": best, "apart": widest / narrowest - 1}


class _Products(TorchDispatchMode):
    """Count the numbers that elementwise products return."""

    made = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function is torch.ops.aten.mul.Tensor:
            self.made += result.numel()
        return result


def linear_attention():
    w = rope_frequencies(64, base=10000)

    def work(count):
        q, k, v = torch.randn(3, 1, count, 64)
        with FlopCounterMode(display=False) as counter:
            (q @ k.mT / 8).softmax(-1) @ v
        with _Products() as products:
            apply_rope(q, *rope_tables(torch.arange(count), w), "half")
        return counter.get_total_flops(), products.made

    short, long = work(256), work(1024)
    values = {"attention": long[0] / short[0], "turned": long[1] / short[1]}
    print("a text four times as long needs")
    print(f"  {values['attention']:.0f} times the operations in attention")
    print(f"  {values['turned']:.0f} times the operations in rotations")
    return values


def any_layout():
    q, k = _random(2, 64)
    print("score at offset 7, key at   0      10     100")
    values = {}
    for name, at_query, at_key in (
        ("trained", "interleaved", "interleaved"),
        ("other", "half", "half"),
        ("mixed", "half", "interleaved"),
    ):
        scores = [
            float(_rope(q, at + 7, at_query) @ _rope(k, at, at_key))
            for at in (0, 10, 100)
        ]
        said = name if name == "mixed" else f"the {name} layout"
        print(f"  {said:<21}", *(f"{score:6.2f}" for score in scores))
        values[f"{name}_score"] = scores[0]
        values[f"{name}_spread"] = max(scores) - min(scores)
    return values


def coarse():
    first = {}
    for dtype in (torch.bfloat16, torch.float16):
        count = torch.arange(4096)
        equal = (count[1:].to(dtype) == count[:-1].to(dtype)).nonzero()
        name = str(dtype).removeprefix("torch.")
        first[name] = int(equal[0]) + 1
        print(f"{name:<9} position {first[name]} equals its predecessor")
    return first


def division_is_not_yarn():
    w = rope_frequencies(64, base=10000)
    divided = position_interpolation(w, 4.0) / w
    stretched = yarn(w, 4.0, 2048) / w
    print("new frequency / old frequency of a pair, factor 4")
    print("pair   divided   YaRN")
    for pair in (0, 12, 31):
        print(f"{pair:>4}   {divided[pair]:7.2f}   {stretched[pair]:.2f}")
    return {"fast": stretched[0], "slow": stretched[-1]}


def causal_by_bias():
    at = torch.arange(20)
    zero = torch.zeros(1, 20, 4)
    leaks = {}
    for name, make in (
        ("symmetric", alibi_bias_symmetric),
        ("causal", alibi_bias),
    ):
        _, weights = attention(
            zero, zero, zero, bias=make(at, at, alibi_slopes(1))
        )
        leaks[name] = weights[0].triu(1).sum(-1)[0]
        print(f"{name:<10} the first token gives {leaks[name]:.2f}")
    print("           of its attention to later tokens")
    return leaks


def any_number_of_heads():
    heads = 12
    formula = [2 ** (-8 * (h + 1) / heads) for h in range(heads)]
    released = sorted(alibi_slopes(heads).tolist(), reverse=True)
    print(f"steepest slopes, {heads} heads")
    print("  formula ", *(f"{slope:.3f}" for slope in formula[:4]))
    print("  released", *(f"{slope:.3f}" for slope in released[:4]))
    apart = max(abs(a - b) for a, b in zip(formula, released, strict=True))
    return {"apart": apart}


def gaussian():
    at = torch.arange(600)
    one = torch.ones(1, dtype=torch.float64)
    zero = torch.zeros(1, dtype=torch.long)
    log = kerple_log_bias(zero, at, 2 * one, one)[0, 0]
    bell = (-at.double().square() / 2).exp()
    far = {}
    print("attention beyond distance 10, bias alone")
    for name, bias in (("Gaussian", bell), ("KERPLE, log", log)):
        far[name.split(",")[0].lower()] = bias.softmax(-1)[11:].sum()
        print(f"  {name:<12} {bias.softmax(-1)[11:].sum():.2f}")
    return far


def last_bucket():
    offsets = -torch.arange(200)
    buckets = t5_buckets(offsets, 32, 128, bidirectional=False)
    first = int((buckets == buckets.max()).nonzero()[0])
    shared = int((buckets.diff() == 0).nonzero()[0])
    print("32 buckets, causal, maximum distance 128")
    print(f"  {shared} is the first distance to share its bucket")
    print(f"  {first} is the first distance in the last one")
    return {"own": shared, "first": first, "maximum": 128}


def no_shift():
    count, dim = 6, 8
    q = torch.ones(count, dim, dtype=torch.float64)
    # distances 5, 4, ... 0
    rows = distance_encodings(count, dim, torch.float64)
    placed = q @ rows.flip(0).mT  # column j taken for distance j
    shifted = relative_shift(q @ rows.mT)
    spread = {}
    print("same query at all positions, key one step back")
    for name, scores in (("no shift", placed), ("shifted", shifted)):
        diagonal = scores.diagonal(-1)
        print(f"  {name:<9}", *(f"{score:5.2f}" for score in diagonal))
        spread[name.replace(" ", "_")] = diagonal.max() - diagonal.min()
    return spread


def ramp_wins():
    def quality(rows):  # as tutorials have it
        unit = normalize(rows, dim=-1)
        alike = (unit @ unit.mT).fill_diagonal_(0)
        return float(alike.abs().mean())

    def coherence(rows):
        at = torch.arange(float(len(rows)), dtype=torch.float64)
        steps = (at[:, None] - at).abs().flatten()
        apart = torch.cdist(rows, rows).flatten()
        return float(torch.corrcoef(torch.stack((steps, apart)))[0, 1])

    made = {
        "a ramp": torch.arange(256.0, dtype=torch.float64)[:, None],
        "sinusoidal": _sinusoid(256, 128),
        "random": _random(256, 128),
    }
    print("             “quality”  “coherence”")
    scores = {name: (quality(r), coherence(r)) for name, r in made.items()}
    for name, (alike, line) in scores.items():
        print(f"{name:<12} {alike:9.2f}  {line:11.2f}")
    ramp, real, _ = scores.values()
    return {
        "quality": ramp[0],
        "coherence": ramp[1],
        "sinusoidal_quality": real[0],
        "sinusoidal_coherence": real[1],
    }


def shifted_input():
    words, table = _random(4, 32), _random(40, 32) / 2
    w, key_table = rope_frequencies(32, base=10000), _random(7, 32)

    def learned(start):
        x = words + table[start : start + 4]
        return scaled_dot_product(x, x)

    def rope(start):
        at = torch.arange(start, start + 4)
        x = apply_rope(words, *rope_tables(at, w, words.dtype), "half")
        return scaled_dot_product(x, x)

    def shaw(start):
        at = torch.arange(start, start + 4)
        return shaw_scores(words, words, key_table, at, at)

    print("change of the scores if all positions move by 6")
    changes = {}
    for make in (learned, rope, shaw):
        changes[make.__name__] = (make(6) - make(0)).abs().max()
        print(f"  {make.__name__:<8} {changes[make.__name__]:.0e}")
    return changes


def values_turn():
    x, w, changes = _random(6, 16), rope_frequencies(16, base=10000), {}

    def layer(start, back):
        at = torch.arange(start, start + 6)
        cos, sin = rope_tables(at, w, x.dtype)
        turned = apply_rope(x, cos, sin, "interleaved")
        output, _ = attention(turned, turned, turned)  # keys are the values
        return (
            apply_rope(output, cos, -sin, "interleaved") if back else output
        )

    print("change of the outputs if all positions move by 6")
    for name, back in (("turned", False), ("turned back", True)):
        changes[name] = (layer(6, back) - layer(0, back)).abs().max()
        shown = name.replace("turned", "rotated")
        print(f"  values {shown:<13} {changes[name]:.0e}")
    return {name.replace(" ", "_"): each for name, each in changes.items()}


def all_rotate():
    late = [row for row in listed() if row["released"] >= "2025"]
    kinds = [row["kind"] for row in late]
    print(f"models of the list from 2025 on  {len(late):>2}")
    print(f"  rotation in every layer        {kinds.count('rotation'):>2}")
    some = kinds.count("rotation, some layers")
    print(f"  rotation in some layers        {some:>2}")
    for row in late:
        if not row["kind"].startswith("rotation"):
            print(f"  no rotation by default: {row['name']}")
    still = len(late) - some - kinds.count("rotation")
    return {"late": len(late), "some": some, "still": still}


def left_padding(pad=3):
    x, table = _random(8, 16), _random(8 + pad, 16)
    w, seen = rope_frequencies(16, base=10000), torch.ones(8, 8).tril() > 0

    def outputs(at):  # of the words: a mask hides the padding before them
        def attend(x, by=1.0, shown=seen):
            q = apply_rope(x, *rope_tables(at, w, x.dtype), "half")
            scores = by * scaled_dot_product(q, q)
            return scores.masked_fill(~shown, -math.inf).softmax(-1) @ x

        chunk = at // 4
        return {
            "RoPE": attend(x),
            "a learned table": attend(x + table[at]),
            "temperature": attend(x, 1 + 0.1 * (1 + chunk[:, None]).log()),
            "chunks of four": attend(x, 1, seen & (chunk[:, None] == chunk)),
        }

    alone, padded = outputs(torch.arange(8)), outputs(torch.arange(8) + pad)
    changes = {}
    print(f"change of the outputs with {pad} padding tokens")
    for name, output in alone.items():
        changes[name] = (padded[name] - output).abs().max()
        print(f"  {name:<16} {changes[name]:.0e}")
    return {name.replace(" ", "_"): each for name, each in changes.items()}


def packed_by_positions():
    x, w = _random(6, 16), rope_frequencies(16, base=10000)
    at, text = torch.arange(3).repeat(2), torch.tensor([0, 0, 0, 1, 1, 1])
    seen = torch.ones(6, 6).tril() > 0

    def output(x, at, shown):
        q = apply_rope(x, *rope_tables(at, w, x.dtype), "half")
        scores = scaled_dot_product(q, q)
        return scores.masked_fill(~shown, -math.inf).softmax(-1) @ x

    second = output(x[3:], at[3:], seen[:3, :3])
    changes = {}
    print("outputs of the second text, packed and alone")
    for name, shown in (
        ("positions restart", seen),
        ("and a mask by text", seen & (text[:, None] == text)),
    ):
        changes[name] = (output(x, at, shown)[3:] - second).abs().max()
        print(f"  {name:<22} {changes[name]:.0e}")
    return dict(zip(("positions", "mask"), changes.values(), strict=True))


def named_not_used():
    x, w = _random(6, 16), rope_frequencies(16, base=10000)

    def calls(x, at):
        q = apply_rope(x, *rope_tables(at, w, x.dtype), "half")
        return attention(q, q, x)[0]

    def names(x, at):
        _rotate = apply_rope  # named, but never called
        return attention(x, x, x)[0]

    at, changes = torch.arange(6), {}
    print("change of the outputs if all distances triple")
    for layer in (calls, names):
        change = (layer(x, 3 * at) - layer(x, at)).abs().max()
        changes[layer.__name__] = change
        print(f"  {layer.__name__} apply_rope  {change:.0e}")
    return changes


def one_compass():
    values = {}
    print("cosine of the angle between two positions, one pair")
    for far in (44, 710):
        alike = cosine_similarity(
            *(
                torch.tensor([math.sin(t), math.cos(t)], dtype=torch.float64)
                for t in (0.0, float(far))
            ),
            dim=0,
        )
        print(f"  0 and {far:<4} {alike:.9f}")
        values[f"to_{far}"] = alike
    return values


def three_friends():
    """Three doors. Two are closed; below them are the words “it looks locked”
    and “it always is”. The third door, “I pushed”, is open.
    """
    fig, axes = plt.subplots(1, 3, figsize=(4.4, 1.9))
    says = ("“It looks locked.”", "“It always is.”", "“I pushed.”")
    for ax, words in zip(axes, says, strict=True):
        ax.add_patch(
            plt.Rectangle((0.2, 0), 0.6, 1, fill=False, color="gray")
        )
        pushed = "pushed" in words
        edge = 0.45 if pushed else 0.8
        height = 0.88 if pushed else 1
        leaf = [(0.2, 0), (edge, 1 - height), (edge, height), (0.2, 1)]
        color = "C2" if pushed else "C0"
        ax.add_patch(plt.Polygon(leaf, color=color, alpha=0.6))
        ax.scatter(edge - 0.07, 0.5, s=14, c="black")
        ax.set(xlim=(0, 1), ylim=(-0.05, 1.05))
        ax.axis("off")
        ax.set_title(words)
    return fig
