"""The translator: what it may see, what it cannot know, what it writes, and the smallest training of all."""

from datetime import date

import pytest
import torch

from experiments import dates, translator
from experiments.current import carry_out, is_current
from experiments.dates import DAYS, END, LONGEST, PAD, START, STYLES
from experiments.models import train
from experiments.runs import Run, plan
from tests.rows import each_of

SENTENCES = ("03.04.26", "21. November 2026", "Samstag, 21. November 2026")
ANSWERS = ("4/3/26", "November 21, 2026", "Saturday, November 21, 2026")
METHODS = plan()["translator"]["methods"]
TURNED = ("none", "RoPE in the decoder only")  # no positions where German is read


EVERY = [
    *METHODS,
    *sorted(set(plan()["language"]["methods"]) - set(METHODS)),
]  # the others in encoder and decoder alike


def model(method, seed=0):
    """An untrained translator, in float64, whose biases are no zeros."""
    made = translator.translator(method, seed).double().eval()
    for encoding in (made.source, made.target):
        for parameter in encoding.parameters():
            torch.nn.init.uniform_(parameter, 0.1, 1)
    return made


def ids(*texts, before=(), after=()):
    return dates.batch(texts, before, after)


# --- the data


def test_a_date_is_written_in_four_styles_of_two_languages():
    day = date(2026, 11, 21)
    written = [dates.texts(day, style) for style in STYLES]
    assert written == [
        ("21.11.26", "11/21/26"),
        ("21.11.2026", "Nov 21, 2026"),
        ("21. November 2026", "November 21, 2026"),
        ("Samstag, 21. November 2026", "Saturday, November 21, 2026"),
    ]


def test_tokens_join_to_their_text_and_all_have_an_id():
    known = set(dates.vocabulary())
    for day in map(date.fromordinal, DAYS[::97]):
        for style in STYLES:
            for text in dates.texts(day, style):
                split = dates.tokens(text)
                assert "".join(split) == text
                assert set(split) <= known
                assert len(split) <= LONGEST - 2


def test_no_short_text_is_of_two_dates():
    assert len({dates.texts(date.fromordinal(day), "short")[0] for day in DAYS}) == len(DAYS)


@pytest.mark.claim(
    "translator-trains-on-no-held-out-date",
    "No German text that the translator is trained on is among those that it is evaluated on, in any "
    "style, because a date is held out in all styles or in none.",
)
def test_no_date_is_on_both_sides():
    trained = {text for text, _ in dates.items(4000, False, torch.Generator().manual_seed(0))}
    evaluated = {text for text, _ in dates.items(translator.HELD_OUT, True, torch.Generator().manual_seed(0))}
    held_out = {day for day in map(date.fromordinal, DAYS) if dates.is_held_out(day)}
    outside = {dates.texts(day, style)[0] for day in held_out for style in STYLES}
    assert evaluated <= outside
    assert not trained & outside
    assert 0.09 < len(held_out) / len(DAYS) < 0.11


def test_the_styles_come_in_turn():
    sampled = dates.items(8, False, torch.Generator().manual_seed(5))
    lengths = [len(german) for german, _ in sampled]
    assert lengths[0] == lengths[4] == 8
    assert lengths[1] == lengths[5] == 10
    assert all("," in german for german, _ in sampled[3::4])


def test_mirrored_texts_come_in_pairs_of_two_dates():
    found = dates.mirrored(40)
    assert len(found) == 40
    for (first, english), (second, other) in zip(found[::2], found[1::2], strict=True):
        assert first == second[::-1]
        assert english != other
    assert ("10.01.01", "1/10/01") in dates.mirrored(10**6)


def test_a_batch_is_padded_on_the_right():
    rows = ids("03.04.26", "3. April 2026", before=[START], after=[END])
    assert rows.shape == (2, 11)
    assert rows[0, 0] == rows[1, 0] == START
    assert (rows[0, 9], rows[0, 10], rows[1, 10]) == (END, PAD, END)


@each_of(
    ("text", "message"),
    [
        ("3. Apfel 2026", r"'3. Apfel 2026' has unknown tokens \['Apfel'\]"),
        ("", "a text must have 1 to 14 tokens, '' has 0"),
        ("3" * 15, "must have 1 to 14 tokens, '3+' has 15"),
    ],
)
def test_a_text_that_is_no_date_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        translator.translate(model("none"), [text], "cpu")


# --- what the model may see


@pytest.mark.claim(
    "translator-leaks-no-later-token",
    "With every encoding, changing a token of the translation changes no scores at earlier positions and "
    "some scores at its own, and changing any token of the German text changes the scores at all "
    "positions.",
)
@each_of("method", EVERY)
def test_no_token_to_come_is_seen(method):
    made = model(method)
    source = ids("Samstag, 21. November 2026")
    target = ids("Saturday, November 21, 2026", before=[START])

    def changes(sources, targets):
        before = made(source.expand(len(sources), -1), target.expand(len(targets), -1))[0]
        return (made(sources, targets)[0] - before).abs().amax(-1)

    later = each_changed(target)
    changed = changes(source.expand(len(later), -1), later)
    for position, row in enumerate(changed):
        assert row[:position].eq(0).all()
        assert row[position] > 1e-6
    read = each_changed(source)
    assert (changes(read, target.expand(len(read), -1)) > 1e-9).all()


def each_changed(row):
    """Copies of a row of ids, the first with its first token replaced, and so on."""
    copies = row.expand(row.shape[1], -1)
    other = 3 + (copies - 2) % (len(dates.vocabulary()) - 3)
    return torch.where(torch.eye(len(copies), dtype=torch.bool), other, copies)


@pytest.mark.claim(
    "translator-ignores-padding",
    "With every encoding, a text batched with longer ones gets the same scores and attention weights as "
    "alone, up to rounding, whether the German text is padded on the right or on the left; padding gets "
    "no weight.",
)
@each_of("method", EVERY)
def test_padding_changes_nothing(method):
    made, atol = model(method), 1e-5 if method == "Sandwich" else 1e-12  # Sandwich works in float32
    source, target = ids(*SENTENCES), ids(*ANSWERS, before=[START], after=[END])
    left = torch.stack([row.roll(int((row == PAD).sum())) for row in source])
    for padded in (source, left):
        scores, weights = made(padded, target)
        for row, (german, english) in enumerate(zip(SENTENCES, ANSWERS, strict=True)):
            alone = ids(german), ids(english, before=[START], after=[END])
            want, looked = made(*alone)
            length = alone[1].shape[1]
            real = padded[row] != PAD
            torch.testing.assert_close(scores[row, :length], want[0], rtol=0, atol=atol)
            assert (weights[row, ..., ~real] == 0).all()
            torch.testing.assert_close(weights[row, :, :length][..., real], looked[0], rtol=0, atol=atol)
        assert scores.isfinite().all()


# --- what it cannot know


@pytest.mark.claim(
    "no-positions-in-the-encoder-translate-a-bag",
    "Where the encoder has no positions, a German text and its reorderings get the same scores, up to "
    "rounding, whatever the weights and whether or not the decoder has positions.",
)
@each_of("method", METHODS)
@each_of(("seed", "german"), [*enumerate(SENTENCES)])
def test_without_positions_in_the_encoder_order_is_lost(method, seed, german):
    made = model(method, seed)
    target = ids("Saturday, November 21, 2026", before=[START])
    source = ids(german).expand(6, -1)
    reordered = torch.stack([row[torch.randperm(len(row))] for row in source])
    apart = (made(reordered, target.expand(6, -1))[0] - made(source[:1], target)[0]).abs().amax((1, 2))
    if method in TURNED:
        assert apart.max() < 1e-12
    else:
        assert apart.min() > 1e-4


@pytest.mark.claim(
    "symmetric-bias-reads-backwards-alike",
    "If the encoder has no positions except a bias that is the same in both directions, as the symmetric "
    "ALiBi, KERPLE and Sandwich are, a text and its reversal get the same scores, up to rounding.",
)
@each_of("name", sorted(plan()["language"]["methods"]))
def test_a_symmetric_bias_cannot_tell_a_text_from_its_mirror_image(name):
    target = ids("Saturday, November 21, 2026", before=[START])
    for seed, german in enumerate(("10.01.01", *SENTENCES)):
        made = model("none", seed)
        made.source = translator.encoding(name).double()
        for parameter in made.source.parameters():
            torch.nn.init.uniform_(parameter, 0.1, 1)
        source = ids(german)
        apart = (made(source.flip(-1), target)[0] - made(source, target)[0]).abs().max()
        assert (apart < 1e-5) == (name in ("none", "ALiBi", "KERPLE", "Sandwich"))


# --- what it writes


@torch.no_grad()
def slowly(made, german):
    """Greedy decoding by its definition: one text, no padding, all computed again at each step."""
    written = [START]
    while written[-1] != END and len(written) < LONGEST:
        scores, _ = made(ids(german), torch.tensor([written]))
        written.append(int(scores[0, -1].argmax()))
    return written


@pytest.mark.claim(
    "translator-decodes-as-defined",
    "With every encoding, translating many texts at once writes for each text what greedy decoding writes "
    "for it alone, without padding and with everything recomputed at each step, except for ties within "
    "rounding.",
)
@each_of("method", EVERY)
def test_translating_at_once_is_translating_one_by_one(method):
    made, known = model(method), dates.vocabulary()
    for part in (made.readers, made.writers, made.looks):
        for weight in part.parameters():
            weight.data.mul_(10 if weight.ndim > 1 else 1)
    made.norms[1].bias.data.copy_(1.5 * made.tokens.weight[END])  # so that not all end at one step
    german = [text for text, _ in dates.items(4, True, torch.Generator().manual_seed(1))]
    written = [slowly(made, text) for text in german]
    assert len({row.index(END) if END in row else None for row in written}) > 1
    said = translator.translate(made, german, "cpu")
    assert said == ["".join(known[id] for id in row) for row in written]


def test_what_is_written_ends_at_the_first_end():
    class Fixed(torch.nn.Module):
        """Writes "4", "/", END, "4", then END for good, but for the first row, which goes on."""

        def encode(self, source):
            return source

        def decode(self, given, memory, source):
            known = dates.vocabulary()
            says = [known.index("4"), known.index("/"), END, known.index("4")]
            step = given.shape[1] - 1
            scores = torch.zeros(*given.shape, len(known))
            scores[:, -1, says[step] if step < 4 else END] = 1
            scores[0, -1] = torch.eye(len(known))[known.index("4")]
            return scores, None

    said = translator.translate(Fixed(), ["03.04.26", "03.04.26"], "cpu")
    assert said == ["4" * (LONGEST - 1), "4/"]


def test_looks_are_shares_of_one_hundred_percent():
    found = translator.looks(model("RoPE").float(), "3. April 2026", "April 3, 2026", "cpu")
    assert found["source"] == ["3", ".", " ", "April", " ", "2", "0", "2", "6"]
    assert found["target"] == ["April", " ", "3", ",", " ", "2", "0", "2", "6", "end"]
    rows = [list(map(int, row.split())) for row in found["percent"]]
    assert [len(row) for row in rows] == [9] * 10
    assert all(abs(sum(row) - 100) <= 5 for row in rows)


# --- a run


def test_a_run_is_carried_out_and_kept(tmp_path):
    run, sizes = Run("translator", "RoPE", 0), {"updates": 2, "held_out": 8}
    run.keep(tmp_path, carry_out(run, "cpu", sizes))
    assert is_current(run, tmp_path, sizes)


@pytest.mark.slow
def test_soon_the_order_of_the_source_helps():
    german, english = zip(*dates.items(80, True, torch.Generator().manual_seed(0)), strict=True)
    source, target = ids(*german), ids(*english, before=[START], after=[END])

    def loss(method, updates):
        made = translator.translator(method, 0)
        batches = translator.batches(0, updates)
        train(made, batches, "cpu", updates, translator.LEARNING_RATE, translator.translation_loss)
        scores, _ = made(source, target[:, :-1])
        return torch.nn.functional.cross_entropy(scores.mT, target[:, 1:], ignore_index=PAD).item()

    blind, reading = loss("none", 160), loss("RoPE in the encoder only", 160)
    assert reading < 0.85 * blind
    assert blind < 1.2


@pytest.mark.slow
def test_a_run_comes_out_the_same_twice():
    first, again = (translator.run("T5", 1, "cpu", updates=2, held_out=4) for _ in range(2))
    assert first == again
    assert set(first["by_style"]) == set(STYLES)
    assert "looks" not in first
