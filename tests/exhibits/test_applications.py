"""What the chapter on applications says of the translator's exhibits in words."""

import re
from collections import Counter
from datetime import date

import pytest

from exhibits import applications
from experiments import dates, runs, translator
from experiments.current import is_current
from tests.rows import each_of

READS = ("sinusoidal", "learned", "RoPE", "RoPE in the encoder only", "T5", "Shaw", "ALiBi")
BLIND = ("none", "RoPE in the decoder only")


@pytest.fixture(scope="module")
def kept():
    return runs.load("translator")


@pytest.fixture(scope="module")
def written():
    """By style every date, in German and in English."""
    days = [date.fromordinal(day) for day in dates.DAYS]
    return {style: [dates.texts(day, style) for day in days] for style in dates.STYLES}


def test_every_run_is_kept_and_made_by_the_code_as_it_is(kept):
    assert set(kept) == {*READS, *BLIND}
    assert all(len(seeds) == 3 for seeds in kept.values())
    assert [run.name for run in runs.runs("translator") if not is_current(run, runs.RESULTS, {})] == []


@pytest.mark.claim(
    "translator-needs-positions-where-it-reads",
    "In each of three seeds, each translator with positions in its encoder translates at least seven of "
    "ten held-out dates without a mistake, and each translator without them at most one of five.",
)
def test_positions_in_the_encoder_decide(kept):
    assert min(seed["exact"] for name in READS for seed in kept[name]) >= 0.7
    assert max(seed["exact"] for name in BLIND for seed in kept[name]) <= 0.2


@pytest.mark.claim(
    "translator-writer-needs-no-encoding",
    "In each of three seeds, RoPE in the encoder only translates as many held-out dates without a mistake "
    "as RoPE in both encoder and decoder, within two in a hundred, and RoPE in the decoder only "
    "translates as many as no encoding, within five in a hundred.",
)
def test_the_decoder_needs_no_encoding(kept):
    for one, other, near in (
        ("RoPE in the encoder only", "RoPE", 0.02),
        ("RoPE in the decoder only", "none", 0.05),
    ):
        for a, b in zip(kept[one], kept[other], strict=True):
            assert abs(a["exact"] - b["exact"]) <= near


@pytest.mark.claim(
    "symmetric-bias-halves-the-mirrored",
    "On pairs of short dates in which each text is the other one reversed, no trained translator with the "
    "symmetric ALiBi in its encoder translates more than half correctly, and each translator with Shaw, "
    "T5, RoPE, sinusoids or a learned table in its encoder translates at least seven of ten correctly.",
)
def test_at_most_one_of_a_mirrored_pair_is_right(kept):
    asked = dates.mirrored(translator.MIRRORED)
    assert all(one == other[::-1] for (one, _), (other, _) in zip(asked[::2], asked[1::2], strict=True))
    assert max(seed["mirrored"] for seed in kept["ALiBi"]) <= 0.5
    for name in set(READS) - {"ALiBi"}:
        assert min(seed["mirrored"] for seed in kept[name]) >= 0.7


@pytest.mark.claim(
    "a-bag-of-tokens-bounds-the-translator",
    "A function that depends only on the bag of German tokens translates correctly, of the dates from "
    "1950 to 2049, at most 5.3 % in the short style, 8.7 % in the medium, 33.7 % in the long and 80.5 % "
    "in the full style.",
)
@each_of(("style", "share"), [("short", 0.053), ("medium", 0.087), ("long", 0.337), ("full", 0.805)])
def test_a_bag_has_one_right_answer_at_most(style, share, written):
    both = written[style]
    assert len({english for _, english in both}) == len(both)  # so no answer serves two dates
    bags = {}
    for german, english in both:
        bag = frozenset(Counter(dates.tokens(german)).items())
        bags.setdefault(bag, Counter())[english] += 1
    right = sum(max(answers.values()) for answers in bags.values())
    assert right / len(both) == pytest.approx(share, abs=0.0005)


def test_the_table_has_these_bounds():
    values = applications.by_style()
    assert values["of_short"] == pytest.approx(0.053, abs=0.0005)
    assert values["of_full"] == pytest.approx(0.805, abs=0.0005)
    assert values["none_full"] < values["of_full"] / 2


def test_full_dates_are_guessed_best_because_of_their_day(written):
    shares = {style: applications._best_from_a_bag(style) for style in dates.STYLES}
    assert max(shares, key=shares.get) == "full"
    nameless = {}
    for german, _ in written["full"][::7]:
        text = german.partition(", ")[2]
        nameless.setdefault(tuple(sorted(dates.tokens(text))), []).append(text)
    assert len(nameless) < shares["full"] * len(dates.DAYS)


def test_one_bag_holds_dozens_of_dates():
    values = applications.same_bag()
    assert values["dates"] > 24
    first, second, third = sorted("03.04.26"), sorted("04.03.26"), sorted("02.06.34")
    assert first == second == third


def test_with_positions_the_next_digit_is_looked_at():
    values = applications.looked()[1]
    assert values["rope"] > 0.7
    assert values["none"] < 0.5


def test_what_is_wrong_without_positions_is_a_date_all_the_same(kept, written):
    def stripped(text):  # the day of the week may not fit
        return re.sub(r"^\w+day, ", "", text)

    english = {style: {stripped(text) for _, text in both} for style, both in written.items()}
    well_formed = []
    for name in BLIND:
        for seed in kept[name]:
            for place, (_, said, right) in enumerate(seed["translations"]):
                if said != right:
                    well_formed.append(stripped(said) in english[dates.STYLES[place % 4]])
    assert applications.wrong() == {"wrong": len(well_formed), "dates": sum(well_formed)}
    assert len(well_formed) > 24 and sum(well_formed) > 0.8 * len(well_formed)


@each_of(
    ("text", "style", "is_one"),
    [
        ("4/3/26", "short", True),
        ("13/3/26", "short", False),
        ("04/3/26", "short", False),
        ("Apr 3, 2026", "medium", True),
        ("Apr 31, 2026", "medium", False),
        ("April 3, 2026", "medium", False),
        ("April 3, 2026", "long", True),
        ("Friday, April 3, 2026", "full", True),
        ("Monday, April 3, 2026", "full", True),
        ("April 3, 2026 3", "long", False),
        ("", "short", False),
    ],
)
def test_a_date_is_told_from_what_only_looks_like_one(text, style, is_one):
    assert applications._is_date(text, style) is is_one


def test_how_loud_positions_start_in_the_two_programs():
    values = {key: each.item() for key, each in applications.loudness().items()}
    assert values["waves"] == pytest.approx(0.5**0.5, rel=0.05)
    assert values["quieter"] == pytest.approx(100, rel=0.1)
    assert values["generator_waves"] == pytest.approx(0.5**0.5 / 0.16, rel=0.05)
    assert values["generator_quieter"] == pytest.approx(16, rel=0.1)
    assert values["generator_apart"] == pytest.approx(0.5**0.5 / 0.01, rel=0.1)


def test_a_mirror_image_reads_alike_with_alibi_alone():
    values = applications.mirror_images()
    assert values["texts"] == len(dates.mirrored(10**6))
    assert 0.07 < values["share"] < 0.08


def test_the_ones_bag_is_of_one_date():
    short = Counter(tuple(sorted(text)) for text in applications._german("short"))
    assert short[tuple(sorted("11.11.11"))] == 1
