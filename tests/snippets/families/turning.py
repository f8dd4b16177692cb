"""RoPE and xPos, what changes their frequencies, and encodings that are added to tokens."""

from functools import partial

import torch
from torch import nn

from snippets import (
    axial_rope,
    embed,
    fourier,
    gated_encoding,
    learned,
    mrope,
    rope,
    rope_scaling,
    sinusoidal,
    sinusoidal_2d,
    vit_table,
    xpos,
)
from tests.snippets.fitness import Case

WIDTH, HEADS = 8, 3


def tables(positions):
    return rope.rope_tables(positions, rope.rope_frequencies(WIDTH, base=10000))


def positions(batch, tokens):
    return torch.randint(0, 9, (batch, tokens))


def row(batch, tokens):
    return (torch.randint(0, 9, (tokens,)),)


def rows(batch, tokens):
    return (positions(batch, tokens),)


def heads_and_tables(batch, tokens):
    return torch.randn(batch, HEADS, tokens, WIDTH), *tables(positions(batch, tokens))


def wider(batch, tokens):
    """Heads of which only the first channels are rotated."""
    return torch.randn(batch, HEADS, tokens, WIDTH + 3), *tables(positions(batch, tokens))


def tokens_and_tables(batch, tokens):
    return torch.randn(batch, tokens, HEADS, WIDTH), *tables(torch.arange(tokens))


def vectors_and_rows(batch, tokens):
    return torch.randn(batch, tokens, WIDTH), positions(batch, tokens)


def vectors_and_row(batch, tokens):
    return torch.randn(batch, tokens, WIDTH), torch.randint(0, 9, (tokens,))


def speeds(batch, tokens):
    return (torch.rand(tokens).sort(descending=True).values,)


def gate(batch, tokens):
    sizes = batch, tokens, WIDTH
    return torch.randn(sizes), torch.randn(sizes), torch.randn(WIDTH), torch.randn(())


def added(module, make=vectors_and_rows, on_cpu=()):
    return Case(module.func, module, make, on_cpu)


def waves(positions):
    return sinusoidal.sinusoidal_encoding(positions, WIDTH)


def embedding():
    return embed.Embed(nn.Embedding(11, WIDTH), learned.AddLearned(9, WIDTH))


class Resized(nn.Module):
    """A table in use for pictures of another size."""

    def __init__(self, add):
        super().__init__()
        self.add = add

    def forward(self, x):
        return self.add(x, (3, 4))


def ids(batch, tokens):
    return torch.randint(0, 11, (batch, tokens)), positions(batch, tokens)


CASES = [
    Case(
        rope.rope_tables,
        rope.rope_tables,
        lambda *sizes: (*rows(*sizes), rope.rope_frequencies(WIDTH, base=10000)),
        (0, 1),
    ),
    Case(
        rope.rope_tables,
        rope.rope_tables,
        lambda *sizes: (*row(*sizes), rope.rope_frequencies(WIDTH, base=10000)),
        (0, 1),
    ),
    Case(rope.apply_rope, partial(rope.apply_rope, layout="half"), heads_and_tables),
    Case(rope.apply_rope, partial(rope.apply_rope, layout="interleaved"), heads_and_tables),
    Case(rope.apply_rope, partial(rope.apply_rope, layout="half", heads_axis=-2), tokens_and_tables),
    *(
        Case(rope.apply_rope, partial(rope.apply_rope, layout=layout), wider)
        for layout in ("half", "interleaved")
    ),
    *(
        Case(convert, partial(convert, heads=2), lambda batch, tokens: (torch.randn(16, tokens),))
        for convert in (rope.interleaved_to_half, rope.half_to_interleaved)
    ),
    Case(
        axial_rope.axial_rope_tables,
        axial_rope.axial_rope_tables,
        lambda batch, tokens: (
            torch.randint(0, 9, (batch, tokens, 2)),
            axial_rope.axial_frequencies(WIDTH, "each", 1e4),
        ),
        (0, 1),
    ),
    *(
        Case(
            axial_rope.apply_axial_rope,
            partial(axial_rope.apply_axial_rope, layout=layout),
            lambda batch, tokens: (
                torch.randn(batch, HEADS, tokens, WIDTH),
                *axial_rope.axial_rope_tables(
                    torch.randint(0, 9, (batch, 1, tokens, 2)),
                    axial_rope.axial_frequencies(WIDTH, "each", 1e4),
                ),
            ),
        )
        for layout in ("interleaved", "half", "half_by_axis")
    ),
    Case(
        mrope.mrope_tables,
        mrope.mrope_tables,
        lambda batch, tokens: (
            torch.randint(0, 9, (batch, tokens, 3)),
            rope.rope_frequencies(WIDTH, base=10000),
            mrope.pair_axes([2, 1, 1], "interleaved"),
        ),
        (0, 1, 2),
    ),
    Case(xpos.xpos_tables, partial(xpos.xpos_tables, dim=WIDTH, role="key", centre=0), rows, (0,)),
    Case(xpos.xpos_tables, partial(xpos.xpos_tables, dim=WIDTH, role="query", centre=3), row, (0,)),
    Case(xpos.apply_xpos, xpos.apply_xpos, heads_and_tables),
    Case(xpos.apply_xpos, partial(xpos.apply_xpos, heads_axis=-2), tokens_and_tables),
    *(
        Case(function, partial(function, **options), speeds)
        for function, options in (
            (rope_scaling.position_interpolation, {"factor": 4}),
            (rope_scaling.ntk_aware, {"factor": 4}),
            (rope_scaling.dynamic_ntk, {"factor": 4, "original_length": 64, "length": 128}),
            (rope_scaling.ntk_by_parts, {"factor": 4, "original_length": 64}),
            (rope_scaling.llama3, {"original_length": 64}),
            (rope_scaling.yarn, {"factor": 4, "original_length": 64}),
            (rope_scaling.proportional, {"share": 0.5}),
        )
    ),
    Case(
        rope_scaling.longrope,
        partial(rope_scaling.longrope, original_length=64, length=128),
        lambda *sizes: (*speeds(*sizes), *speeds(*sizes), *speeds(*sizes)),
    ),
    *(
        Case(function, partial(function, dim=WIDTH, layout=layout), rows, (0,))
        for function, layout in (
            (sinusoidal.sinusoidal_encoding, "interleaved"),
            (sinusoidal.sinusoidal_encoding, "cos_sin"),
            (sinusoidal.sinusoidal_encoding_t2t, "sin_cos"),
        )
    ),
    Case(sinusoidal.shift_matrix, partial(sinusoidal.shift_matrix, dim=WIDTH), rows, (0,)),
    added(partial(sinusoidal.AddSinusoidal, WIDTH), on_cpu=(1,)),
    added(partial(sinusoidal.AddSinusoidal, WIDTH, layout="cos_sin"), vectors_and_row, (1,)),
    Case(
        learned.learned_encoding,
        learned.learned_encoding,
        lambda *sizes: (*rows(*sizes), torch.randn(9, WIDTH)),
    ),
    added(partial(learned.AddLearned, 9, WIDTH)),
    added(partial(learned.AddLearned, 9, WIDTH), vectors_and_row),
    Case(gated_encoding.gated_encoding, gated_encoding.gated_encoding, gate),
    added(partial(gated_encoding.AddGated, WIDTH, waves), on_cpu=(1,)),
    Case(
        fourier.fourier_features,
        fourier.fourier_features,
        lambda batch, tokens: (torch.randint(0, 9, (batch, tokens, 2)), torch.randn(4, 2)),
        (0,),
    ),
    Case(
        fourier.FourierEncoding,
        partial(fourier.FourierEncoding, 4, WIDTH, 6, 5, 1.0, groups=2),
        lambda batch, tokens: (torch.randint(0, 9, (batch, tokens, 4)),),
        (0,),
    ),
    *(
        Case(
            sinusoidal_2d.axial_sinusoids,
            partial(sinusoidal_2d.axial_sinusoids, dim=WIDTH, order=(1, 0), layout=layout, base=1e4),
            lambda batch, tokens: (torch.randint(0, 9, (batch, tokens, 2)),),
            (0,),
        )
        for layout in ("interleaved", "sin_cos", "sines_first")
    ),
    *(
        Case(
            sinusoidal_2d.padded_grid_positions,
            partial(sinusoidal_2d.padded_grid_positions, start=1, span=span),
            lambda batch, tokens: (torch.rand(batch, tokens, 3) > 0.5,),
            (0,),
        )
        for span in (None, 6.0)
    ),
    Case(
        vit_table.position_index,
        partial(vit_table.position_index, grid=(9, 9), extra=1),
        lambda batch, tokens: (torch.randint(0, 9, (batch, tokens, 2)),),
    ),
    *(
        Case(
            vit_table.resize_table,
            partial(vit_table.resize_table, grid=(3, 4), to=(2, 8), convention=convention, extra=1),
            lambda batch, tokens: (torch.randn(batch, 13, tokens),),
        )
        for convention in vit_table.CONVENTIONS
    ),
    Case(
        vit_table.AddGridTable,
        partial(vit_table.AddGridTable, (3, 3), WIDTH, extra=1, convention="bicubic"),
        lambda batch, tokens: (torch.randn(batch, tokens, 10, WIDTH),),
    ),
    Case(
        vit_table.AddGridTable,
        lambda: Resized(vit_table.AddGridTable((2, 3), WIDTH, extra=1, convention="bicubic")),
        lambda batch, tokens: (torch.randn(batch, tokens, 13, WIDTH),),
    ),
    Case(embed.padded_positions, embed.padded_positions, rows),
    Case(embed.packed_positions, embed.packed_positions, rows),
    Case(embed.Embed, embedding, ids),
]
