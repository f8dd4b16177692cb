"""generation.py: chances as the definition and transformers have them, and texts that no padding, no cache
and no neighbour in the batch changes.
"""

import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from snippets.block import Decoder, Encoding
from snippets.generation import generate, next_token_probabilities, sample_token
from tests.peers import peer
from tests.peers.models import Learned, gpt2
from tests.snippets.common import refusals, vectors

WORDS, DIM, HEADS, ROWS = 11, 16, 2, 40
SETTINGS = [(1.0, None, 1.0), (0.7, 4, 1.0), (1.3, None, 0.8), (0.5, 5, 0.9), (2.0, 30, 0.3), (1.0, 1, 1.0)]


def written_out(scores, temperature, top_k, top_p):
    """The chances of one row, by loops."""
    kept = list(range(len(scores)))
    if top_k is not None:
        bar = sorted(scores, reverse=True)[: min(top_k, len(scores))][-1]
        kept = [word for word in kept if scores[word] >= bar]

    def weight(word):
        return math.exp((scores[word] - max(scores)) / temperature)

    total, reached = sum(map(weight, kept)), 0.0
    for word in sorted(kept, key=weight, reverse=True):
        if reached < top_p:
            bar = scores[word]
        reached += weight(word) / total
    kept = [word for word in kept if top_p == 1 or scores[word] >= bar]
    total = sum(map(weight, kept))
    return [weight(word) / total if word in kept else 0.0 for word in range(len(scores))]


class Numbered(Encoding):
    """Places are added, and distances taken off scores: whoever mixes positions up gives other scores."""

    def embed(self, x, positions):
        angles = positions[..., None] / torch.logspace(0, 2, x.shape[-1])
        return x + angles.sin()

    def bias(self, query_positions, key_positions):
        return (key_positions[:, None, None, :] - query_positions[:, None, :, None]) * 0.3


def decoder(seed=3):
    torch.manual_seed(seed)
    made = Decoder(Numbered(), WORDS, DIM, HEADS, layers=2).eval()
    for parameter in made.parameters():
        if parameter.ndim == 2:  # else it would say again what it has heard
            torch.nn.init.normal_(parameter)
    return made


def from_the_start(model):
    """The same model without a memory: past holds the texts, which are read anew."""

    def read(ids, positions, documents, past):
        rows = (ids, positions, documents)
        rows = [torch.cat(both, 1) for both in zip(past, rows, strict=True)] if past else rows
        return model(*rows)[0][:, -ids.shape[1] :], rows

    return read


# --- chances


@pytest.mark.parametrize(("temperature", "top_k", "top_p"), SETTINGS)
def test_chances_are_the_definition(temperature, top_k, top_p):
    scores = vectors(0, ROWS, WORDS) * 3
    made = next_token_probabilities(scores, temperature, top_k, top_p)
    expected = [written_out(row, temperature, top_k, top_p) for row in scores.tolist()]
    assert_close(made, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("temperature", "top_k", "top_p"), SETTINGS)
def test_chances_are_those_of_transformers(temperature, top_k, top_p, same_as):
    module = peer("transformers.generation.logits_process")
    scores = vectors(1, ROWS, WORDS) * 3
    theirs = module.TemperatureLogitsWarper(temperature)(None, scores)
    theirs = module.TopKLogitsWarper(top_k)(None, theirs) if top_k else theirs
    theirs = module.TopPLogitsWarper(top_p)(None, theirs) if top_p < 1 else theirs
    name = "transformers.generation.logits_process.TopPLogitsWarper"
    same_as(name, next_token_probabilities(scores, temperature, top_k, top_p), theirs.softmax(-1))


@given(st.integers(0, 99), st.sampled_from([0.3, 1.0, 4.0]), st.integers(1, 14), st.floats(0.01, 1.0))
def test_chances_sum_to_one_and_the_best_stays(seed, temperature, top_k, top_p):
    scores = vectors(seed, 5, WORDS)
    made = next_token_probabilities(scores, temperature, top_k, top_p)
    assert_close(made.sum(-1), torch.ones(5, dtype=torch.float64))
    assert made.argmax(-1).tolist() == scores.argmax(-1).tolist()
    assert ((made > 0).sum(-1) <= min(top_k, WORDS)).all()


def test_what_is_as_good_as_the_last_one_kept_is_kept():
    scores = torch.tensor([1.0, 3.0, 2.0, 2.0, 0.0])
    for options in ({"top_k": 2}, {"top_p": 0.7}):
        made = next_token_probabilities(scores, **options)
        assert (made > 0).tolist() == [False, True, True, True, False]
        assert made[2].item() == pytest.approx(made[3].item())


def test_the_fewest_that_reach_top_p_are_kept():
    scores = torch.tensor([0.5, 0.25, 0.125, 0.125]).log()
    for top_p, kept in ((0.49, 1), (0.51, 2), (0.74, 2), (0.76, 4), (0.999, 4)):
        assert (next_token_probabilities(scores, top_p=top_p) > 0).sum() == kept


def test_top_p_is_of_what_top_k_left():
    scores = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    made = next_token_probabilities(scores, top_k=2, top_p=0.55)  # 0.4 of 0.7 is more than 0.55
    assert made.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert (next_token_probabilities(scores, top_p=0.55) > 0).tolist() == [True, True, False, False]


def test_temperature_comes_before_top_p():
    scores = torch.tensor([0.5, 0.3, 0.2]).log()
    assert (next_token_probabilities(scores, temperature=0.5, top_p=0.6) > 0).sum() == 1
    assert (next_token_probabilities(scores, temperature=5.0, top_p=0.6) > 0).sum() == 2


def test_temperature_0_gives_all_to_the_first_of_the_best():
    scores = torch.tensor([[1.0, 5.0, 5.0], [2.0, 0.0, 1.0]])
    for options in ({}, {"top_k": 2}, {"top_p": 0.1}):
        assert next_token_probabilities(scores, temperature=0, **options).tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("temperature", [1e-30, 1e-300])
def test_a_tiny_temperature_is_nearly_none(temperature):
    scores = torch.tensor([[100.0, -3.0, 99.0], [-3.0, 9.0, 2.0]])
    assert next_token_probabilities(scores, temperature).tolist() == [[1, 0, 0], [0, 1, 0]]


def test_a_large_temperature_makes_all_alike():
    assert_close(next_token_probabilities(torch.tensor([9.0, -9.0]), 1e9), torch.tensor([0.5, 0.5]))


def test_without_settings_every_word_has_a_chance():
    scores = torch.tensor([0.0, -20.0, -20.1])  # the first two come to 1, in float32
    assert torch.equal(next_token_probabilities(scores), scores.softmax(-1))
    assert next_token_probabilities(torch.zeros(1)).tolist() == [1]


def test_chances_are_where_the_scores_are():
    for temperature in (0, 0.5):
        made = next_token_probabilities(torch.zeros(2, 3, device="meta"), temperature, 2, 0.5)
        assert made.device.type == "meta"


def test_hidden_words_stay_hidden():
    scores = torch.tensor([-math.inf, 1.0, 1.0])
    for options in ({}, {"top_k": 3}, {"top_p": 0.999}, {"temperature": 0.1}):
        assert_close(next_token_probabilities(scores, **options), torch.tensor([0.0, 0.5, 0.5]))


def test_what_is_given_stays_as_it_was():
    scores = vectors(2, 3, WORDS)
    before = scores.clone()
    next_token_probabilities(scores, 0.5, 3, 0.5)
    assert torch.equal(scores, before)


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_chances_are_wide(dtype, wide):
    scores = vectors(3, 4, WORDS).to(dtype)
    for temperature in (0, 0.5):
        made = next_token_probabilities(scores, temperature, 5, 0.9)
        assert made.dtype == wide
        assert torch.equal(made, next_token_probabilities(scores.to(wide), temperature, 5, 0.9))


def test_any_axes_come_before_the_words():
    scores = vectors(4, 2, 3, WORDS)
    whole = next_token_probabilities(scores, 0.8, 6, 0.9)
    assert_close(whole[1, 2], next_token_probabilities(scores[1, 2], 0.8, 6, 0.9))
    assert sample_token(scores).shape == (2, 3)
    assert sample_token(scores[0, 0]).shape == ()
    assert torch.equal(sample_token(scores, temperature=0), scores.argmax(-1))


# --- drawing


def test_words_are_drawn_by_their_chances():
    generator = torch.Generator().manual_seed(0)
    scores = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    for settings in ((), (0.8, 3)):
        drawn = sample_token(scores.expand(20000, -1), *settings, generator=generator)
        shares = drawn.bincount(minlength=4) / 20000
        assert_close(shares, next_token_probabilities(scores, *settings), rtol=0, atol=0.015)
        assert (shares > 0).tolist() == [True, True, True, not settings]


def test_one_seed_gives_one_text_and_the_best_needs_none():
    scores = vectors(6, 50, WORDS)

    def seeded(seed, **options):
        generator = torch.Generator().manual_seed(seed)
        return sample_token(scores, generator=generator, **options), generator.get_state()

    (first, moved), (again, _), (other, _) = seeded(1), seeded(1), seeded(2)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(moved, torch.Generator().manual_seed(1).get_state())
    assert torch.equal(seeded(1, temperature=0)[1], torch.Generator().manual_seed(1).get_state())


def test_only_what_top_p_keeps_is_drawn():
    scores = torch.tensor([0.5, 0.3, 0.2]).log().expand(500, -1)
    assert set(sample_token(scores, top_p=0.6).tolist()) == {0, 1}


# --- writing on

PROMPTS = [[3, 1, 4], [1, 5, 9, 2, 6], [5]]
PADDED = torch.tensor([[0, 0, 3, 1, 4], [1, 5, 9, 2, 6], [7, 7, 7, 7, 5]])  # whatever stands in the padding
MASK = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]]).bool()


def test_a_text_is_the_best_word_again_and_again():
    model, text = decoder(), [3, 1, 4]
    for _ in range(8):
        positions = torch.arange(len(text))[None]
        scores, _ = model(torch.tensor([text]), positions, torch.ones_like(positions))
        text.append(scores[0, -1].argmax().item())
    made = generate(decoder(), torch.tensor([[3, 1, 4]]), max_new_tokens=8, temperature=0)
    assert made.tolist() == [text]
    assert len(set(text)) > 3


def test_padding_and_neighbours_change_nothing():
    for seed in range(3):
        model = decoder(seed)
        together = generate(model, PADDED, 9, MASK, temperature=0)
        for row, prompt in zip(together, PROMPTS, strict=True):
            alone = generate(model, torch.tensor([prompt]), 9, temperature=0)
            assert row[5 - len(prompt) :].tolist() == alone[0].tolist()


def test_what_the_model_is_given():
    seen = []

    def model(ids, positions, documents, past):
        seen.append((ids.tolist(), positions.tolist(), documents.tolist(), past))
        return torch.eye(9)[(ids + 1) % 9], len(seen)

    made = generate(
        model, torch.tensor([[0, 5], [6, 7]]), 3, torch.tensor([[False, True], [True, True]]), 0, 0
    )
    assert made.tolist() == [[0, 5, 6, 7, 8], [6, 7, 8, 0, 0]]
    assert seen == [
        ([[0, 5], [6, 7]], [[0, 0], [0, 1]], [[0, 1], [1, 1]], None),
        ([[6], [8]], [[1], [2]], [[1], [1]], 1),
        ([[7], [0]], [[2], [3]], [[1], [1]], 2),
    ]


def test_a_cache_changes_nothing():
    model = decoder()
    kept = generate(model, PADDED, 9, MASK, temperature=0)
    assert torch.equal(kept, generate(from_the_start(model), PADDED, 9, MASK, temperature=0))


def test_a_mask_of_ones_is_no_mask():
    model = decoder()
    whole = generate(model, PADDED, 5, torch.ones_like(MASK), temperature=0)
    assert torch.equal(whole, generate(model, PADDED, 5, temperature=0))
    assert not torch.equal(whole[:, 5:], generate(model, PADDED, 5, MASK, temperature=0)[:, 5:])


def test_a_row_that_has_ended_goes_on_with_nothing_else():
    def count(ids, positions, documents, past):
        return torch.eye(9)[(ids + 1) % 9], past

    ids = torch.tensor([[5], [3]])
    made = generate(count, ids, 10, eos_id=7, temperature=0)
    assert made.tolist() == [[5, 6, 7, 7, 7], [3, 4, 5, 6, 7]]
    assert generate(count, ids, 3, eos_id=7, temperature=0).tolist() == [[5, 6, 7, 7], [3, 4, 5, 6]]
    assert generate(count, torch.tensor([[7]]), 2, eos_id=7, temperature=0).tolist() == [[7, 8, 0]]
    assert generate(count, torch.tensor([[6]]), 3, eos_id=8, temperature=0).tolist() == [[6, 7, 8]]
    assert generate(count, torch.tensor([[7]]), 3, eos_id=0, temperature=0).tolist() == [[7, 8, 0]]


def test_no_more_and_no_less_than_asked_for():
    for most in (0, 1, 4):
        made = generate(decoder(), PADDED, most, MASK)
        assert made.shape == (3, 5 + most)
        assert torch.equal(made[:, :5], PADDED)
        assert made.dtype == torch.int64


def test_nothing_is_kept_for_gradients():
    def model(ids, positions, documents, past):
        assert not torch.is_grad_enabled()
        return torch.eye(9)[ids], past

    generate(model, PADDED.clamp(max=8), 2)


@pytest.mark.parametrize("options", [{"temperature": 3.0}, {"top_k": 4}, {"top_p": 0.9}])
def test_settings_and_generator_reach_every_token(options):
    def even(ids, positions, documents, past):
        return -torch.arange(6.0).expand(*ids.shape, -1) / 5, past

    def written(seed, **options):
        ids = torch.zeros(300, 1, dtype=torch.int64)
        generator = torch.Generator().manual_seed(seed)
        return generate(even, ids, 20, generator=generator, **options)[:, 1:]

    made = written(0, **options)
    assert torch.equal(made, written(0, **options))
    assert not torch.equal(made, written(1, **options))
    expected = next_token_probabilities(-torch.arange(6.0) / 5, **options)
    for place in (0, 19):
        shares = made[:, place].bincount(minlength=6) / 300
        assert_close(shares, expected, rtol=0, atol=0.1)
    assert_close(made.flatten().bincount(minlength=6) / 6000, expected, rtol=0, atol=0.02)


def test_greedy_and_drawn_texts_are_those_of_transformers(same_as):
    torch.manual_seed(0)
    ours = Decoder(Learned(40, DIM), WORDS, DIM, HEADS, layers=2)
    torch.nn.init.normal_(ours.tokens.weight)
    theirs, ids = gpt2(ours, HEADS), PADDED
    mask = {"attention_mask": MASK.long(), "pad_token_id": 0, "max_new_tokens": 12, "eos_token_id": None}
    drawn = {"temperature": 0.8, "top_k": 6, "top_p": 0.9}
    for options, how in (({"temperature": 0}, {}), (drawn, drawn | {"do_sample": True})):
        torch.manual_seed(1)
        made = generate(ours, ids, 12, MASK, **options)
        torch.manual_seed(1)
        same_as(
            "transformers.generation.utils.GenerationMixin.generate",
            made,
            theirs.generate(ids, **mask, **how),
        )


# --- bad input


def generated(ids, most=1, mask=None, **options):
    return generate(decoder(), ids, most, mask, **options)


def generated_by_scores_of(shape):
    return generate(lambda ids, positions, documents, past: (torch.zeros(shape), past), PADDED, 1)


@refusals
def test_refuses():
    for scores in (torch.zeros(3, dtype=torch.int64), torch.zeros(2, 0), torch.zeros(())):
        got = f"got {scores.dtype} {tuple(scores.shape)}"
        yield f"logits must be floating (..., words), {got}", next_token_probabilities, scores
    for function in (next_token_probabilities, sample_token):
        for bad in (-0.1, math.inf, math.nan):
            yield f"temperature must be 0 or more and finite, got {bad}", function, torch.zeros(3), bad
        for bad in (0, -1):
            yield f"top_k must be 1 or more, or None, got {bad}", function, torch.zeros(3), 0, bad
        for bad in (0, -0.5, 1.01, math.nan):
            yield f"top_p must be above 0 and at most 1, got {bad}", function, torch.zeros(3), 0, None, bad
    want = "ids must be int64 (batch, tokens), got torch"
    yield f"{want}.float32 (1, 2)", generated, torch.zeros(1, 2)
    yield f"{want}.int64 (2,)", generated, PADDED[0, :2]
    yield f"{want}.int64 (3, 0)", generated, PADDED[:, :0]
    yield "max_new_tokens must be 0 or more, got -1", generated, PADDED, -1
    yield "mask must be bool (3, 5), got torch.int64 (3, 5)", generated, PADDED, 1, MASK.long()
    yield "mask must be bool (3, 5), got torch.bool (1, 5)", generated, PADDED, 1, MASK[:1]
    for rows in ([[1, 0]], [[1, 1, 1], [1, 0, 1]], [[0, 0], [1, 1]]):
        mask, message = torch.tensor(rows).bool(), f"mask must be False on the left only, got {rows}"
        yield message, generated, PADDED[: len(rows), : len(rows[0])], 1, mask
    for shape in ((3, WORDS), (3, 1, WORDS), (2, 5, WORDS), (3, 5, WORDS, 1)):
        yield f"logits must be (3, 5, 'words'), got {shape}", generated_by_scores_of, shape
    for bad in (-1, WORDS):
        yield f"eos_id must be 0 to 10, got {bad}", partial(generated, eos_id=bad), PADDED


def test_the_last_word_may_end_a_text():
    assert generate(decoder(), PADDED, 1, eos_id=10, temperature=0).shape == (3, 6)


def test_to_draw_from_no_chances_is_an_error():
    for scores in ([math.nan, 1.0], [-math.inf] * 3):
        with pytest.raises(RuntimeError, match="probability tensor contains"):
            sample_token(torch.tensor(scores))
