"""What the chapter on debugging says of its exhibits in words."""

import pytest
import torch

from executable_prose.project import DOCS
from exhibits import debugging
from snippets.rope import apply_rope, rope_frequencies, rope_tables


def test_there_are_as_many_mistakes_as_the_chapter_says():
    text = (DOCS / "guide" / "debugging.md").read_text(encoding="utf-8")
    table = text.partition("| Symptom |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(table) == 15 and text.count("fifteen mistakes") + text.count("Fifteen mistakes") == 2


@pytest.mark.claim(
    "angle-tables-fail-silently",
    "RoPE from a stored table of cosines and sines gives wrong results without an error if an index is "
    "clamped to a table that is too short, if a slice has only one row left, or if the key of the stored "
    "table omits the first position, the number of tokens, the base or the dtype. rope_tables and "
    "apply_rope, which store no table, give the same bits after all such calls.",
)
def test_tables_of_angles_fail_without_an_error(capsys):
    short, kept = debugging.short_table(), debugging.kept_tables()
    assert (short.pop("first"), short.pop("tokens")) == (1000, 8)
    assert set(kept) == {"start", "tokens", "base", "dtype", "nothing"}
    for gaps, right in ((short, {"indexed_1008", "clamped_1008", "sliced_1008"}), (kept, {"nothing"})):
        assert right < set(gaps)
        for name, gap in gaps.items():
            assert gap < 1e-12 if name in right else gap > 0.1, name
    assert capsys.readouterr().out.count("an error") == 4

    def turned(start, tokens, base, dtype):
        x = torch.randn(tokens, 64, dtype=dtype, generator=torch.Generator().manual_seed(0))
        tables = rope_tables(torch.arange(start, start + tokens), rope_frequencies(64, base), torch.float64)
        return apply_rope(x, *tables, "half")

    now = (1000, 8, 10_000.0, torch.float64)
    before = turned(*now)
    for place, other in enumerate((0, 1, 500_000.0, torch.bfloat16)):
        turned(*now[:place], other, *now[place + 1 :])
    assert torch.equal(turned(*now), before)
