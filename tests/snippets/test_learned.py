"""learned.py and embed.py against other libraries, and for what the guide says of them."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing import assert_close

from snippets.attention import SelfAttention
from snippets.embed import Embed, packed_positions, padded_positions
from snippets.learned import AddLearned, learned_encoding
from tests.peers import peer
from tests.snippets.common import random, refusals, refused

WHOLE = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


def layer(length=9, dim=4, init="gpt2"):
    return AddLearned(length, dim, init).double()


# --- what the sources say


@pytest.mark.claim(
    "learned-row-lookup",
    "The learned encoding of a position is its row of the table, wherever in a batch the position occurs "
    "and however often.",
)
@pytest.mark.parametrize(("length", "dim"), [(1, 1), (5, 3), (400, 64)])
@pytest.mark.parametrize("leading", [(), (2,), (3, 2)])
def test_every_position_gets_its_row(length, dim, leading):
    table = random(length, dim)
    positions = torch.cat([torch.randint(length, (*leading, 7)), torch.zeros(*leading, 2).long()], -1)
    made = learned_encoding(positions, table)
    assert made.shape == (*leading, 9, dim)
    for row, position in zip(made.flatten(0, -2), positions.flatten().tolist(), strict=True):
        assert torch.equal(row, table[position])


@pytest.mark.claim(
    "gpt2-position-init",
    "Initialised as in OpenAI's GPT-2 code, the snippet's table is sampled from a normal distribution "
    "with a standard deviation of 0.01 that is not truncated.",
)
def test_gpt2_starts_from_a_normal_distribution_of_a_hundredth():
    table = AddLearned(1024, 768).table
    assert table.mean().item() == pytest.approx(0, abs=1e-4)
    assert table.std().item() == pytest.approx(0.01, rel=0.01)
    assert table.abs().max() > 0.04  # four standard deviations: it is not cut off
    kurtosis = (table**4).mean() / (table**2).mean() ** 2
    assert kurtosis.item() == pytest.approx(3, abs=0.05)


@pytest.mark.claim(
    "bert-position-init",
    "Initialised as in Google's BERT code, the snippet's table is sampled from a normal distribution with "
    "a standard deviation of 0.02 that is truncated at 0.04, so the standard deviation of its numbers is "
    "less than 0.018.",
)
def test_bert_starts_from_two_hundredths_cut_off_at_twice_that():
    table = AddLearned(512, 768, init="bert").table
    assert table.mean().item() == pytest.approx(0, abs=1e-4)
    assert 0.0399 < table.abs().max() <= 0.04
    # the variance of a normal distribution that is cut off at two standard deviations
    density = math.exp(-2) / math.sqrt(2 * math.pi)
    variance = 1 - 4 * density / math.erf(math.sqrt(2))
    assert table.std().item() == pytest.approx(0.02 * math.sqrt(variance), rel=0.01)
    assert table.std().item() < 0.018


@pytest.mark.claim(
    "gpt2-position-parameters",
    "The position table of GPT-2 small has 1024 times 768 parameters, that is, 786,432.",
)
def test_gpt2_small_spends_three_quarters_of_a_million_parameters_on_positions():
    assert sum(p.numel() for p in AddLearned(1024, 768).parameters()) == 786_432


@pytest.mark.claim(
    "gpt2-position-parameters",
    "The position table of GPT-2 small has 1024 times 768 parameters, that is, 786,432.",
)
@pytest.mark.claim(
    "transformers-doubles-gpt2-init",
    "Hugging Face Transformers 5.23 initialises the position table of a new GPT-2 with a standard "
    "deviation of 0.02, twice that of OpenAI's code.",
)
def test_transformers_starts_gpt2_with_twice_the_deviation():
    transformers = peer("transformers")
    theirs = transformers.GPT2Model(transformers.GPT2Config(n_layer=0, vocab_size=2)).wpe.weight
    assert theirs.shape == (1024, 768)
    assert theirs.std().item() == pytest.approx(2 * AddLearned(1024, 768).table.std().item(), rel=0.01)


# --- other libraries


@pytest.mark.claim(
    "learned-agrees-with-peers",
    "The snippet's learned positions give the same result as the embedding layers of GPT-2 and BERT in "
    "Hugging Face Transformers, up to one rounding of float64.",
)
@pytest.mark.parametrize(("length", "dim"), [(9, 4), (8, 1), (300, 64)])
def test_agrees_with_gpt2(length, dim, same_as):
    transformers = peer("transformers")
    config = transformers.GPT2Config(n_layer=0, n_positions=length, n_embd=dim, n_head=1, vocab_size=11)
    theirs = transformers.GPT2Model(config).double().eval()
    theirs.ln_f = torch.nn.Identity()
    add = layer(length, dim)
    add.table.data.copy_(theirs.wpe.weight)
    ids = torch.randint(0, 11, (2, length - 1))
    expected = theirs(ids).last_hidden_state
    assert_close(Embed(theirs.wte, add)(ids, torch.arange(length - 1)), expected, rtol=0, atol=0)
    positions = torch.randint(0, length, (2, length - 1))
    expected = theirs(ids, position_ids=positions).last_hidden_state
    made = Embed(theirs.wte, add)(ids, positions)
    assert_close(made, expected, rtol=0, atol=0)
    same_as("transformers.models.gpt2.modeling_gpt2.GPT2Model", made, expected)


@pytest.mark.claim(
    "learned-agrees-with-peers",
    "The snippet's learned positions give the same result as the embedding layers of GPT-2 and BERT in "
    "Hugging Face Transformers, up to one rounding of float64.",
)
@pytest.mark.parametrize(("length", "dim"), [(9, 4), (8, 1), (300, 64)])
def test_agrees_with_bert(length, dim, same_as):
    modeling = peer("transformers.models.bert.modeling_bert")
    config = modeling.BertConfig(hidden_size=dim, vocab_size=11, max_position_embeddings=length)
    theirs = modeling.BertEmbeddings(config).double().eval()
    theirs.LayerNorm = torch.nn.Identity()
    torch.nn.init.zeros_(theirs.token_type_embeddings.weight)
    add = layer(length, dim, init="bert")
    add.table.data.copy_(theirs.position_embeddings.weight)
    ids = torch.randint(0, 11, (2, length))
    made = Embed(theirs.word_embeddings, add)(ids, torch.arange(length))
    assert_close(made, theirs(input_ids=ids), rtol=0, atol=1e-15)
    same_as("transformers.models.bert.modeling_bert.BertEmbeddings", made, theirs(input_ids=ids))


@pytest.mark.claim(
    "opt-offset-two",
    "In Hugging Face Transformers, OPT's table has two more rows than there are positions: position p "
    "uses row p + 2, and left padding uses row 1.",
)
@pytest.mark.parametrize(("length", "dim", "padding"), [(9, 4, 2), (3, 1, 1), (300, 64, 40)])
def test_opt_keeps_two_rows_more_and_gives_padding_the_second(length, dim, padding, same_as):
    modeling = peer("transformers.models.opt.modeling_opt")
    theirs = modeling.OPTLearnedPositionalEmbedding(length, dim).double()
    assert len(theirs.weight) == length + 2
    mask = torch.ones(2, length, dtype=torch.int64)
    mask[0, :padding] = 0
    rows = learned_encoding(padded_positions(mask) + 2, theirs.weight)
    expected = theirs(mask)
    assert torch.equal(rows[mask.bool()], expected[mask.bool()])
    name = "transformers.models.opt.modeling_opt.OPTLearnedPositionalEmbedding"
    same_as(name, rows[mask.bool()], expected[mask.bool()])
    assert torch.equal(expected[0, :padding], theirs.weight[[1] * padding])


@pytest.mark.claim(
    "gpt2-left-padding-needs-position-ids",
    "In Hugging Face Transformers, GPT-2 gives a left-padded text different outputs from the text alone, "
    "even with an attention mask, unless it is passed position ids that count from the text's first "
    "token.",
)
@pytest.mark.parametrize(("padding", "tokens"), [(1, 1), (3, 5), (1, 8), (8, 1)])
def test_gpt2_needs_position_ids_for_left_padding(padding, tokens):
    transformers = peer("transformers")
    config = transformers.GPT2Config(n_layer=2, n_positions=9, n_embd=8, n_head=2, vocab_size=11)
    theirs = transformers.GPT2Model(config).double().eval()
    torch.nn.init.normal_(theirs.wpe.weight)
    ids, mask = torch.randint(0, 11, (1, tokens)), torch.tensor([[0] * padding + [1] * tokens])
    padded = torch.cat([torch.zeros(1, padding, dtype=torch.int64), ids], dim=1)
    alone = theirs(ids).last_hidden_state
    counted = theirs(padded, attention_mask=mask, position_ids=padded_positions(mask))
    assert_close(counted.last_hidden_state[:, padding:], alone, rtol=0, atol=1e-12)
    left = theirs(padded, attention_mask=mask).last_hidden_state[:, padding:]
    assert (left - alone).abs().amax(-1).min() > 0.1


# --- positions outside the table


@pytest.mark.claim(
    "learned-table-ends",
    "On the CPU, the snippet rejects every position outside its table: in eager mode with a ValueError "
    "that names the range, and in a graph compiled with fullgraph with torch's own error.",
)
@pytest.mark.parametrize("outside", [-1, -9, 9, 100])
@pytest.mark.parametrize("dtype", WHOLE[1:])
def test_a_position_outside_the_table_is_refused(outside, dtype):
    add = layer()
    positions = torch.tensor([[3, outside, 0]], dtype=dtype)
    low, high = min(outside, 0), max(outside, 3)
    message = f"positions must be 0 to 8, got {low} to {high}"
    refused(message, add, random(1, 3, 4), positions)
    refused(message, learned_encoding, positions, add.table)


@pytest.mark.claim(
    "learned-table-ends",
    "On the CPU, the snippet rejects every position outside its table: in eager mode with a ValueError "
    "that names the range, and in a graph compiled with fullgraph with torch's own error.",
)
@pytest.mark.parametrize("outside", [-1, 9])
def test_a_position_outside_the_table_is_refused_in_a_compiled_graph(outside):
    torch.compiler.reset()
    add = layer()
    compiled = torch.compile(add, fullgraph=True, backend="aot_eager")
    x = random(1, 2, 4)
    inside, beyond = torch.tensor([[8, 0]]), torch.tensor([[outside, 0]])
    assert torch.equal(compiled(x, inside), add(x, inside))
    with pytest.raises(IndexError, match="index out of range"):
        compiled(x, beyond)


@pytest.mark.slow
def test_a_position_outside_the_table_is_refused_by_generated_code():
    torch.compiler.reset()
    add = layer()
    compiled = torch.compile(add, fullgraph=True)
    x, inside = random(1, 2, 4), torch.tensor([[8, 0]])
    try:
        made = compiled(x, inside)
    except torch._dynamo.exc.BackendCompilerFailed as error:
        pytest.skip(f"torch cannot generate code here: {error}")
    assert torch.equal(made, add(x, inside))
    for outside in (-1, 9):
        with pytest.raises(RuntimeError, match="index out of bounds"):
            compiled(random(1, 2, 4), torch.tensor([[outside, 0]]))


@pytest.mark.claim(
    "minus-one-is-the-last-row",
    "Plain torch indexing of a table at position -1 returns the last row and raises no error; the snippet "
    "rejects this position.",
)
def test_plain_indexing_would_have_taken_the_last_row_for_minus_one():
    table = random(9, 4)
    assert torch.equal(table[torch.tensor(-1)], table[8])
    refused("positions must be 0 to 8, got -1 to -1", learned_encoding, torch.tensor(-1), table)


@pytest.mark.claim(
    "clamped-positions-merge",
    "If positions are clamped to the table, the order of all tokens beyond its end is lost: shuffling "
    "these tokens does not change the outputs of the other tokens in an attention layer without a mask.",
)
@given(
    st.integers(2, 12).flatmap(lambda beyond: st.permutations(range(beyond))),
    st.sampled_from([(1, 4, 1), (4, 8, 2), (20, 30, 3)]),
)
def test_clamped_positions_lose_the_order_beyond_the_table(order, sizes):
    rows, dim, heads = sizes
    add, attend = layer(rows, dim), SelfAttention(dim, heads).double()
    torch.nn.init.normal_(add.table)
    tokens = rows + len(order)
    x, at = random(tokens, dim), torch.arange(tokens)
    shuffled = torch.cat([x[:rows], x[rows:][order]])
    clamped = at.clamp(max=rows - 1)
    one, other = attend(add(x, clamped))[0], attend(add(shuffled, clamped))[0]
    assert_close(other[:rows], one[:rows], rtol=0, atol=1e-12)
    assert_close(other[rows:], one[rows:][order], rtol=0, atol=1e-12)
    longer = layer(tokens, dim)
    torch.nn.init.normal_(longer.table)
    if list(order) != sorted(order):
        one, other = attend(longer(x, at))[0], attend(longer(shuffled, at))[0]
        assert (other[:rows] - one[:rows]).abs().max() > 1e-6


# --- what a table is, and what training does to it


@pytest.mark.claim(
    "learned-has-no-distance",
    "Before training, a learned table contains no notion of distance: renaming the positions and moving "
    "the rows accordingly changes nothing, including the gradients.",
)
@given(st.permutations(range(9)))
def test_rows_may_be_renamed(order):
    add, renamed, x = layer(), layer(), random(5, 4)
    renamed.table.data[order] = add.table.data
    at = torch.tensor([3, 0, 8, 3, 7])
    new_at = torch.tensor(order)[at]
    assert torch.equal(renamed(x, new_at), add(x, at))
    add(x, at).square().sum().backward()
    renamed(x, new_at).square().sum().backward()
    assert torch.equal(renamed.table.grad[order], add.table.grad)


@pytest.mark.claim(
    "unused-rows-stay-as-they-were",
    "SGD and Adam without weight decay leave the rows that no token ever used exactly at their initial "
    "values; AdamW's weight decay shrinks them.",
)
@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        (torch.optim.SGD, {}),
        (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
        (torch.optim.Adam, {}),
        (torch.optim.Adam, {"amsgrad": True}),
        (torch.optim.AdamW, {}),
    ],
)
def test_unused_rows_stay_as_they_were_unless_they_decay(optimizer, options):
    add, x = layer(), random(4, 3, 4)
    before = add.table.detach().clone()
    stepper = optimizer(add.parameters(), lr=0.1, **options)
    for _ in range(5):
        stepper.zero_grad()
        add(x, torch.arange(3)).square().sum().backward()
        stepper.step()
    after = add.table.detach()
    assert (after[:3] != before[:3]).all()
    decay = 0.01 * 0.1 if optimizer is torch.optim.AdamW else 0
    assert_close(after[3:], before[3:] * (1 - decay) ** 5, rtol=1e-12, atol=0)
    assert decay or torch.equal(after[3:], before[3:])


@pytest.mark.claim(
    "learned-reaches-any-low-rank-scores",
    "Through the choice of its rows alone, a learned table of width d can produce any matrix of "
    "position-to-position scores whose rank is at most d/2, however many positions there are.",
)
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(2, 33), st.data())
def test_a_table_can_give_any_scores_of_half_its_rank(seed, positions, width, data):
    torch.manual_seed(seed)
    rank = data.draw(st.integers(1, width // 2))
    first, second = random(positions, rank), random(positions, rank)
    rest = torch.zeros(positions, width - 2 * rank, dtype=torch.float64)
    table = torch.cat([first, second, rest], dim=1)
    between = torch.zeros(width, width, dtype=torch.float64)
    between[:rank, rank : 2 * rank] = torch.eye(rank)
    rows = learned_encoding(torch.arange(positions), table)
    assert_close(rows @ between @ rows.T, first @ second.T, rtol=0, atol=1e-12)


@pytest.mark.claim(
    "one-vector-fools-cosine",
    "Adding one long vector to all rows brings every cosine similarity close to one. Similarities "
    "computed after subtracting the mean row are changed neither by such a vector nor by a scale factor.",
)
@given(st.integers(0, 2**32), st.floats(1e-3, 1e3), st.integers(8, 60), st.sampled_from([4, 8, 64]))
def test_similarity_from_the_mean_row_ignores_scale_and_a_common_vector(seed, factor, positions, dim):
    def likeness(rows):
        return torch.nn.functional.cosine_similarity(rows[:, None], rows, dim=-1)

    def centred(rows):
        return likeness(rows - rows.mean(0))

    torch.manual_seed(seed)
    rows, common = random(positions, dim), random(dim)
    common *= 100 * dim**0.5 / common.norm()
    assert likeness(rows).min() < 0
    assert likeness(rows + common).min() > 0.99
    assert_close(centred(rows + common), centred(rows), rtol=0, atol=1e-10)
    assert_close(centred(rows * factor), centred(rows), rtol=0, atol=1e-10)


# --- added to token embeddings


def test_positions_may_stay_on_the_cpu():
    add = AddLearned(9, 4).to("meta")
    x = torch.zeros(2, 4, device="meta")
    assert add(x, torch.arange(2)).device.type == "meta"
    assert add(x, torch.arange(2, device="meta")).device.type == "meta"
    refused("positions must be 0 to 8, got 8 to 9", add, x, torch.tensor([8, 9]))
    with FakeTensorMode():  # torch's stand-in for devices that are not there is strict about them
        table, nowhere = torch.empty(9, 4, device="cuda"), torch.arange(0)
        assert nowhere.device.type == "cpu"
        assert learned_encoding(nowhere, table).device.type == "cuda"


@pytest.mark.claim(
    "learned-only-used-rows-learn",
    "A row of a learned table gets the sum of the gradients of the tokens at its position, so a row "
    "that no token used gets a gradient of zero.",
)
@pytest.mark.parametrize(("length", "dim"), [(1, 1), (9, 4), (200, 30)])
def test_a_row_gets_the_sum_of_the_gradients_of_its_tokens(length, dim):
    add, positions = layer(length, dim), torch.randint(length, (2, 17))
    gradients = random(2, 17, dim)
    add(random(2, 17, dim), positions).backward(gradients)
    for position in range(length):
        assert_close(add.table.grad[position], gradients[positions == position].sum(0))
        assert (positions == position).any() or (add.table.grad[position] == 0).all()


def test_only_the_rows_that_were_used_get_a_gradient():
    add = layer()
    add(random(2, 3, 4), torch.tensor([[0, 1, 1], [5, 1, 0]])).sum().backward()
    assert add.table.grad[:, 0].tolist() == [2, 3, 0, 0, 0, 1, 0, 0, 0]


# --- one layer for tokens and positions


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5), st.integers(0, 3)), min_size=1))
def test_padded_positions_count_from_the_first_token(rows):
    for left, tokens, right in rows:
        mask = torch.tensor([False] * left + [True] * tokens + [False] * right)
        made = padded_positions(mask)
        assert made.dtype == torch.int64
        expected = [0] * left + list(range(tokens)) + [tokens - 1] * right
        assert made.tolist() == expected
        assert padded_positions(mask[None].int())[0].tolist() == expected


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6))
def test_packed_positions_count_from_the_start_of_each_document(lengths):
    documents = torch.cat([torch.full((n,), 7 * (d % 3)) for d, n in enumerate(lengths)])
    expected = [position for n in lengths for position in range(n)]
    assert packed_positions(documents).tolist() == expected
    both = packed_positions(torch.stack([documents, torch.zeros_like(documents)]))
    assert both.tolist() == [expected, list(range(len(documents)))]


def test_rows_without_tokens_have_no_positions():
    nothing = torch.zeros(2, 0, dtype=torch.int64)
    assert padded_positions(nothing).shape == packed_positions(nothing).shape == (2, 0)


# --- what is refused, and in which words


@refusals
def test_refuses():
    no_integers = (
        (3, "int"),
        ([0, 1], "list"),
        (torch.tensor([True]), "torch.bool"),
        (torch.zeros(1, dtype=torch.uint16), "torch.uint16"),
        (torch.zeros(1), "torch.float32"),
        (torch.zeros(1).bfloat16(), "torch.bfloat16"),
    )
    for positions, got in no_integers:
        message = f"positions must be a tensor of uint8 or int8 to int64, got {got}"
        yield message, learned_encoding, positions, torch.zeros(3, 4)
        yield message, lambda x, at: layer()(x, at), torch.zeros(1, 4), positions
    for length, dim in ((0, 4), (4, 0), (-1, 4), (4, -1)):
        yield f"length and dim must be at least 1, got {length} and {dim}", AddLearned, length, dim
    yield "init must be 'gpt2' or 'bert', got 'opt'", AddLearned, 4, 4, "opt"
    additive = torch.tensor([-math.inf, 0, 0])
    no_masks = (additive, "torch.float32"), ([0, 1], "list"), (additive.to(torch.uint16), "torch.uint16")
    for mask, got in no_masks:
        wanted = f"must be a tensor of bool, uint8 or int8 to int64, got {got}"
        yield f"mask {wanted}", padded_positions, mask
        yield f"documents {wanted}", packed_positions, mask
