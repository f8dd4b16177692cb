"""block.py: one decoder, right with every encoding; and what scale, norms, dropout and tying do."""

import copy
from collections import Counter

import pytest
import torch
from torch.nn.functional import dropout, layer_norm, rms_norm, scaled_dot_product_attention
from torch.testing import assert_close

from exhibits.in_a_transformer import DIM, DOORS, SWITCH, _model
from snippets.block import Block, Decoder, Encoding, additive_mask
from snippets.decoding import document_positions
from snippets.sinusoidal import sinusoidal_encoding
from tests.peers import peer
from tests.snippets.common import refusals

HEADS = 2
EXACT = {"rtol": 0, "atol": 1e-10}
every_encoding = pytest.mark.parametrize("name", SWITCH)


def close(name):
    """Sandwich makes its products in float32, and their rounding depends on how many there are."""
    return {"rtol": 0, "atol": 1e-4} if name == "Sandwich" else EXACT


def alone(decoder, ids, first=0):
    at = first + torch.arange(len(ids))[None]
    return decoder(ids[None], at, torch.ones_like(at))[0][0]


# --- what the source says


@pytest.mark.parametrize("biased", [False, True])
def test_one_block_is_its_formula(biased):
    torch.manual_seed(1)
    block, x = Block(8, 2).double(), torch.randn(1, 3, 8, dtype=torch.float64)
    for weight in block.norms.parameters():
        torch.nn.init.normal_(weight)
    seen = torch.ones(1, 3, 3, dtype=torch.bool).tril()
    bias = torch.randn(1, 2, 3, 3, dtype=torch.float64)
    at, mask = torch.arange(3)[None], additive_mask(seen, bias if biased else None)
    made, (k, v) = block(x, Encoding(), at, at, at, mask)
    q_all, k_all, v_all = block.project(block.norms[0](x[0])).split(8, -1)
    attended = torch.zeros(3, 8, dtype=torch.float64)
    for head in range(2):
        part = slice(4 * head, 4 * head + 4)
        assert_close(k[0, head], k_all[:, part])
        assert_close(v[0, head], v_all[:, part])
        for i in range(3):
            scores = [q_all[i, part] @ k_all[j, part] / 2 for j in range(i + 1)]
            if biased:
                scores = [score + bias[0, head, i, j] for j, score in enumerate(scores)]
            weights = [score.exp().item() for score in scores]
            for j, weight in enumerate(weights):
                attended[i, part] += weight / sum(weights) * v_all[j, part]
    between = x[0] + block.merge(attended)
    assert_close(made[0], between + block.network(block.norms[1](between)))


def test_a_mask_hides_under_any_bias_and_keeps_its_dtype():
    seen = torch.tensor([[[True, False], [True, True]]])
    bias = torch.tensor([[[3.0, 4.0], [5.0, 6.0]], [[7.0, 8.0], [9.0, 10.0]]])
    hidden = -torch.inf
    expected = [[[3.0, hidden], [5.0, 6.0]], [[7.0, hidden], [9.0, 10.0]]]
    same = {"rtol": 0, "atol": 0}
    assert_close(additive_mask(seen, bias.half()), torch.tensor([expected]).half(), **same)
    plain = torch.tensor([[[[0.0, hidden], [0.0, 0.0]]]])
    assert_close(additive_mask(seen, None, torch.bfloat16), plain.bfloat16(), **same)
    assert additive_mask(seen.expand(5, 2, 2), bias).shape == (5, 2, 2, 2)
    assert additive_mask(seen.to("meta"), None).device.type == "meta"


class Asked(Encoding):
    """Counts what it is asked."""

    def __init__(self):
        super().__init__()
        self.count = Counter()

    def tables(self, positions):
        self.count["tables"] += 1
        return positions

    def rotate(self, x, tables, role):
        self.count[role] += 1
        return x

    def bias(self, query_positions, key_positions):
        self.count["bias"] += 1


def test_what_no_layer_changes_is_asked_once_per_call():
    decoder = Decoder(Asked(), vocabulary=9, dim=8, heads=2, layers=5)
    alone(decoder, torch.tensor([4, 2]))
    assert decoder.encoding.count == {"tables": 1, "bias": 1, "query": 5, "key": 5}


def test_agrees_with_gpt2(same_as):
    modeling = peer("transformers.models.gpt2.modeling_gpt2")
    config = modeling.GPT2Config(
        vocab_size=64, n_positions=64, n_embd=DIM, n_layer=2, n_head=HEADS, activation_function="gelu"
    )
    theirs = modeling.GPT2LMHeadModel(config).double().eval()
    ours = _model("learned", trained=True)
    gpt = theirs.transformer
    with torch.no_grad():
        gpt.wte.weight.copy_(ours.tokens.weight)
        gpt.wpe.weight.copy_(ours.encoding.add.table)
        for old, new in zip(ours.blocks, gpt.h, strict=True):
            new.attn.c_attn.weight.copy_(old.project.weight.T)
            new.attn.c_proj.weight.copy_(old.merge.weight.T)
            for a, b in ((old.network[0], new.mlp.c_fc), (old.network[2], new.mlp.c_proj)):
                b.weight.copy_(a.weight.T)
                b.bias.copy_(a.bias)
            for attn_bias in (new.attn.c_attn.bias, new.attn.c_proj.bias):
                attn_bias.zero_()
        ids = torch.randint(64, (2, 9))
        documents = torch.tensor([[1] * 9, [0] * 4 + [1] * 5])
        at = document_positions(documents)
        expected = theirs(ids, attention_mask=documents, position_ids=at).logits
    made, _ = ours(ids, at, documents)
    keep = documents.bool()
    same_as("transformers.models.gpt2.modeling_gpt2.GPT2LMHeadModel", made[keep], expected[keep])


def test_tokens_in_and_out_share_one_matrix():
    decoder = Decoder(Encoding(), vocabulary=9, dim=8, heads=2, layers=1)
    shapes = [tuple(p.shape) for p in decoder.parameters()]
    assert shapes.count((9, 8)) == 1
    scale = Decoder(Encoding(), 9, 8, 2, 1, scale=3.0)
    scale.load_state_dict(decoder.state_dict())
    tripled = copy.deepcopy(decoder)
    ids = torch.tensor([4, 2])
    tripled.tokens.weight.data.mul_(3)
    assert_close(alone(scale, ids), alone(tripled, ids) / 3)


def test_tokens_start_with_the_deviation_of_gpt2():
    config = peer("transformers").GPT2Config()
    drawn = Decoder(Encoding(), vocabulary=500, dim=64, heads=2, layers=1).tokens.weight
    assert drawn.std().item() == pytest.approx(config.initializer_range, rel=0.02)
    assert drawn.mean().abs() < 0.001


def test_one_head_and_one_channel_are_enough():
    decoder = Decoder(Encoding(), vocabulary=5, dim=1, heads=1, layers=2)
    made = alone(decoder, torch.tensor([4, 0, 3]))
    assert made.shape == (3, 5)
    assert made.isfinite().all()


# --- what holds for every encoding of the switch


@every_encoding
@pytest.mark.parametrize("pieces", [[1] * 6, [3, 2, 1]])
def test_decoding_with_a_cache_gives_the_scores_of_the_whole(name, pieces):
    decoder, ids = _model(name, trained=True), torch.randint(64, (1, 6))
    start, past, made = 0, None, []
    for tokens in pieces:
        at = torch.arange(start, start + tokens)[None]
        scores, past = decoder(ids[:, start : start + tokens], at, torch.ones_like(at), past)
        made.append(scores)
        start += tokens
    assert_close(torch.cat(made, 1)[0], alone(decoder, ids[0]), **close(name))


@every_encoding
def test_padded_and_packed_texts_get_the_scores_that_they_get_alone(name):
    decoder, ids = _model(name, trained=True), torch.randint(64, (2, 7))
    documents = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [3, 3, 4, 4, 4, 4, 4]])
    made, _ = decoder(ids, document_positions(documents), documents)
    for row, part in ((0, slice(3, 7)), (1, slice(0, 2)), (1, slice(2, 7))):
        assert_close(made[row, part], alone(decoder, ids[row, part]), **close(name))


@every_encoding
def test_texts_may_share_one_row_of_positions(name):
    decoder, ids = _model(name, trained=True), torch.randint(64, (3, 6))
    at, one, past, made = torch.arange(6)[None], torch.ones(1, 6, dtype=torch.int64), None, []
    expected, _ = decoder(ids, at.expand(3, -1), one.expand(3, -1))
    for part in (slice(0, 4), slice(4, 6)):
        scores, past = decoder(ids[:, part], at[:, part], one[:, part], past)
        made.append(scores)
    assert_close(torch.cat(made, 1), expected, **close(name))


def test_every_encoding_but_none_has_its_door():
    named = [name for names in DOORS.values() for name in names]
    assert sorted(named) == sorted(set(SWITCH) - {"none"})
    for door, names in DOORS.items():
        for name in names:
            overridden = {d for d in DOORS if getattr(type(SWITCH[name]()), d) is not getattr(Encoding, d)}
            assert overridden == {door}


@pytest.mark.claim(
    "switch-makes-order-heard",
    "In one causal layer with random weights, reversing the earlier tokens, or moving each of them by one "
    "position, changes the next-token scores with each encoding of the guide's switch, and does not "
    "without an encoding. With T5's bias, the clipped bias, Shaw's tables, DeBERTa and CoPE, tokens that "
    "are all beyond the reach of the tables can be swapped without changing these scores.",
)
@every_encoding
@pytest.mark.parametrize("words", [3, 4, 11, 40])
def test_one_layer_hears_the_order_with_every_encoding(name, words):
    decoder, last = _model(name, layers=1, trained=True), words - 1

    def moved(ids, order):
        return (alone(decoder, ids[[*order, last]])[-1] - alone(decoder, ids)[-1]).abs().max()

    for seed in range(3):
        ids = torch.randperm(64, generator=torch.Generator().manual_seed(seed))[:words]
        for order in ([last - 1, *range(last - 1)], [*reversed(range(last))]):
            assert moved(ids, order) < 1e-10 if name == "none" else moved(ids, order) > 1e-5
        if words == 40:
            reach = {"none", "T5", "clipped bias", "Shaw", "DeBERTa", "CoPE"}
            assert (moved(ids, [1, 0, *range(2, last)]) < 1e-10) == (name in reach)


@pytest.mark.claim(
    "zero-tables-start-silent",
    "T5's bias, the clipped bias and CoPE, whose tables start at zero in the guide's code, give exactly "
    "the same outputs before training as no encoding.",
)
@pytest.mark.parametrize(("words", "layers"), [(2, 1), (8, 2), (60, 1)])
def test_tables_of_zeros_are_no_encoding_at_first(words, layers):
    ids = torch.randint(64, (words,))
    plain = alone(_model("none", layers), ids)
    silent = {name for name in SWITCH if torch.equal(alone(_model(name, layers), ids), plain)}
    assert silent == {"none", "T5", "clipped bias", "CoPE"}


# --- scale, normalisation, dropout, tied weights


def share(token, position):
    token, position = token.square().sum(-1), position.square().sum(-1)
    return position / (position + token)


@pytest.mark.claim(
    "share-of-position",
    "For tokens sampled independently with mean zero and standard deviation s in each channel, a "
    "sinusoidal position makes up 1 / (1 + 2 s^2) of the expected squared norms of token and position, "
    "whatever the width.",
)
@pytest.mark.parametrize("dim", [2, 6, 64, 512, 4096])
@pytest.mark.parametrize("deviation", [0.02, 0.3, 1.0, 5.0])
def test_the_share_of_a_position_depends_on_the_scale_of_the_tokens_only(dim, deviation):
    x = deviation * torch.randn(500_000 // dim, dim, dtype=torch.float64)
    p = sinusoidal_encoding(torch.arange(200), dim, dtype=torch.float64)
    x, p = x.square().sum(-1).mean(), p.square().sum(-1).mean()
    assert (p / (p + x)).item() == pytest.approx(1 / (1 + 2 * deviation**2), rel=0.01)


@pytest.mark.claim(
    "norm-after-does-not-rebalance",
    "RMSNorm of token plus position, with a weight of one, divides both parts by the same number: the "
    "position's fraction of the squared norms does not change.",
)
@pytest.mark.parametrize("dim", [2, 64, 1024])
@pytest.mark.parametrize("deviation", [0.02, 1.0, 30.0])
def test_rmsnorm_of_the_sum_keeps_the_share(dim, deviation):
    x = deviation * torch.randn(50, dim, dtype=torch.float64)
    p = sinusoidal_encoding(torch.arange(50), dim, dtype=torch.float64)
    length = (x + p).square().mean(-1, keepdim=True).sqrt()
    assert_close(rms_norm(x + p, (dim,), eps=0.0), x / length + p / length)
    assert_close(share(x / length, p / length), share(x, p))
    assert share(x, p).min() > 0.99 or deviation > 0.02


@pytest.mark.claim(
    "layernorm-after-drops-the-mean",
    "LayerNorm of token plus sinusoidal position removes the mean of the position, and with it about a "
    "sixth of its squared norm at width 512 over the first 400 positions.",
)
def test_layernorm_of_the_sum_removes_the_mean_of_the_position():
    x = torch.randn(400, 512, dtype=torch.float64)
    p = sinusoidal_encoding(torch.arange(400), 512, dtype=torch.float64)
    x0, p0 = (part - part.mean(-1, keepdim=True) for part in (x, p))
    length = (x0 + p0).square().mean(-1, keepdim=True).sqrt()
    assert_close(layer_norm(x + p, (512,), eps=0.0), x0 / length + p0 / length)
    lost = 1 - p0.square().sum() / p.square().sum()
    assert lost.item() == pytest.approx(1 / 6, abs=0.01)


@pytest.mark.claim(
    "norm-first-fixes-the-share",
    "If tokens are normalised before a sinusoidal position is added, the position makes up one third of "
    "the squared norms, whatever the norms of the tokens were, if the epsilon of the normalisation is "
    "small compared with their variance.",
)
@pytest.mark.parametrize("dim", [8, 64, 1024])
@pytest.mark.parametrize("deviation", [0.02, 1.0, 30.0])
def test_tokens_that_are_normalised_first_leave_a_third_to_the_position(deviation, dim):
    x = deviation * torch.randn(50, dim, dtype=torch.float64)
    p = sinusoidal_encoding(torch.arange(50), dim, dtype=torch.float64)
    for norm in (layer_norm, rms_norm):
        shares = share(norm(x, (dim,), eps=1e-12), p)
        assert_close(shares, torch.full_like(shares, 1 / 3), rtol=0, atol=1e-6)


@pytest.mark.claim(
    "dropped-positions-are-still-told",
    "After dropout of a tenth of 64 channels, the nearest sinusoidal position is the correct one for more "
    "than 99 in 100 of the first 256 positions.",
)
def test_positions_survive_the_usual_dropout():
    table = sinusoidal_encoding(torch.arange(256), 64)
    nearest = torch.cdist(dropout(table.expand(20, -1, -1), 0.1), table).argmin(-1)
    assert (nearest == torch.arange(256)).float().mean() > 0.99
    rough = torch.cdist(dropout(table[:, :16].expand(20, -1, -1), 0.5), table[:, :16]).argmin(-1)
    assert (rough == torch.arange(256)).float().mean() < 0.8


@pytest.mark.claim(
    "attention-dropout-ignores-eval",
    "scaled_dot_product_attention drops attention weights whenever dropout_p is above zero: eval() has no "
    "effect on it.",
)
def test_dropout_inside_the_kernel_does_not_know_of_eval():
    class Attention(torch.nn.Module):
        def forward(self, x, rate):
            return scaled_dot_product_attention(x, x, x, dropout_p=rate)

    attend, x = Attention().eval(), torch.randn(1, 4, 60, 8)
    for rate in (0.01, 0.5, 0.99, 1.0):
        assert not torch.equal(attend(x, rate), attend(x, 0.0))
    assert not torch.equal(attend(x, 0.5), attend(x, 0.5))
    assert torch.equal(attend(x, 0.0), attend(x, 0.0))


@pytest.mark.claim(
    "tied-weights-hear-positions",
    "With tied weights, token embeddings of standard deviation 0.02 and sinusoidal positions, at widths "
    "of 256 to 1,024 and before any layer, fewer than 5 in 100 tokens give themselves the highest score "
    "among 1,000 tokens. If the embeddings are multiplied by the square root of the width, more than 99 "
    "in 100 do; if they are multiplied so that their standard deviation is one, or if no position is "
    "added, all do.",
)
@pytest.mark.parametrize("dim", [256, 768, 1024])
def test_tied_weights_turn_loud_positions_into_votes_for_words(dim):
    drawn = torch.randn(1000, dim)
    p = sinusoidal_encoding(torch.arange(32), dim)

    def itself(words, x):
        best = (x @ words.T).argmax(-1)
        return (best == torch.arange(100)[:, None]).float().mean()

    small, scaled = 0.02 * drawn, drawn / dim**0.5
    assert itself(small, small[:100, None] + p) < 0.05
    assert itself(small, dim**0.5 * small[:100, None] + p) > 0.99
    assert itself(scaled, dim**0.5 * scaled[:100, None] + p) == 1
    assert itself(small, small[:100, None]) == 1


# --- modules, gradients, compilation


@every_encoding
def test_what_an_encoding_learns_is_part_of_the_decoder(name):
    decoder = _model(name).requires_grad_(True)
    ids = torch.randint(64, (6,))
    alone(decoder, ids).square().sum().backward()
    assert all(p.grad is not None for p in decoder.encoding.parameters())
    again = copy.deepcopy(decoder)
    again.load_state_dict(decoder.state_dict())
    assert torch.equal(alone(again, ids), alone(decoder, ids))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["none", "sinusoidal", "RoPE", "ALiBi", "DeBERTa", "CoPE"])
def test_compiles_into_one_graph(name):
    torch.compiler.reset()
    decoder = _model(name, layers=1, trained=True)
    compiled = torch.compile(decoder, fullgraph=True, backend="aot_eager")
    ids, at = torch.randint(64, (2, 5)), torch.arange(5).expand(2, -1)
    expected, past = decoder(ids, at, torch.ones_like(at))
    made, kept = compiled(ids, at, torch.ones_like(at))
    assert_close(made, expected, **EXACT)
    step = ids[:, :1], at[:, :1] + 5, torch.ones_like(at[:, :1])
    assert_close(compiled(*step, kept)[0], decoder(*step, past)[0], **EXACT)


# --- what is refused, and in which words


def decoded(ids, positions, documents):
    return _model("none")(ids, positions, documents)


@refusals
def test_refuses():
    for dim, heads in ((8, 3), (8, 0), (0, 1), (4, 8)):
        message = f"dim must be a multiple of heads, got {dim} and {heads}"
        yield message, Decoder, Encoding(), 9, dim, heads, 1
    two = torch.zeros(2, 3, dtype=torch.int64)
    for ids, at, of in (
        (two, two[:1], two),
        (two, two, two[0]),
        (two, two[:1, :2], two[:1, :2]),
        (two[:1], two, two),
        (two[0], two[0], two[0]),
    ):
        got = tuple(ids.shape), tuple(at.shape), tuple(of.shape)
        message = (
            "ids must be (batch, tokens), positions and documents both the same or both (1, tokens), got"
        )
        yield f"{message} {got}", decoded, ids, at, of


@pytest.mark.parametrize("layers", [1, 3])
def test_refuses_the_past_of_a_decoder_with_another_number_of_layers(layers):
    decoder, ids = _model("none", layers=2), torch.randint(64, (1, 4))
    at = torch.arange(4)[None]
    _, past = _model("none", layers=layers)(ids, at, torch.ones_like(at))
    with pytest.raises(ValueError, match="zip"):
        decoder(ids, at + 4, torch.ones_like(at), past)


def test_float16_scores_overflow_no_sooner_than_those_of_torch():
    q = torch.full((1, 1, 2, 32), 50.0, dtype=torch.float16)  # 80,000 before the scaling
    v, at = torch.randn(1, 1, 2, 32).half(), torch.arange(2)[None]
    expected = scaled_dot_product_attention(q, q, v)
    assert expected.isfinite().all()
    assert_close(Encoding().score(q, q, at, at).softmax(-1) @ v, expected)
