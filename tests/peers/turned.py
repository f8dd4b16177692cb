"""Who else turns queries and keys, and who else stretches the frequencies for it."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch

from snippets.axial_rope import apply_axial_rope, axial_frequencies, axial_rope_tables
from snippets.mrope import Grid, mrope_positions, mrope_tables, pair_axes
from snippets.rope import apply_rope, rope_frequencies, rope_tables
from snippets.rope_scaling import llama3, longrope, yarn
from snippets.xpos import apply_xpos, xpos_tables
from tests.peers import ANEW, BASE, DIM, FLOAT32, Case, Way, learnable, peer


class Rotary(NamedTuple):
    """A rotation of some width and base, as another library has it."""

    turn: Callable  # (q, k, *tables), both turned
    tables: Callable  # (x, positions of (batch, tokens)), by its own angles
    exact: Callable | None = None  # angles of (batch, tokens, pairs), the same by these


def halves(module, name, **parameters):
    """What models in transformers share that have the layout half."""

    def rotary(dim, base):
        modeling = peer(f"transformers.models.{module}.modeling_{module}")
        rope = {"rope_type": "default", "rope_theta": base, **parameters}
        config = getattr(peer("transformers"), f"{name}Config")(
            hidden_size=dim, num_attention_heads=1, rope_parameters=rope
        )
        tables = getattr(modeling, f"{name}RotaryEmbedding")(config)

        def exact(angles):
            doubled = torch.cat((angles, angles), -1)
            return doubled.cos(), doubled.sin()

        return Rotary(modeling.apply_rotary_pos_emb, tables, exact)

    return rotary


def gptj(dim, base):
    modeling = peer("transformers.models.gptj.modeling_gptj")

    def turn(q, k, sin, cos):
        turned = (modeling.apply_rotary_pos_emb(x.transpose(1, 2), sin, cos) for x in (q, k))
        return tuple(x.transpose(1, 2) for x in turned)

    def tables(x, positions):
        table = modeling.create_sinusoidal_positions(int(positions.max()) + 1, dim)
        return table[positions].chunk(2, -1)

    return Rotary(turn, tables, lambda angles: (angles.sin(), angles.cos()))


def rotary_embedding_torch(dim, base):
    module = peer("rotary_embedding_torch")
    rotary = module.RotaryEmbedding(dim, theta=base)
    return Rotary(
        lambda q, k, angles: tuple(module.apply_rotary_emb(angles, x) for x in (q, k)),
        lambda x, positions: (rotary(positions[0].float()),),
        lambda angles: (angles[0].repeat_interleave(2, -1),),
    )


def x_transformers(dim, base):
    module = peer("x_transformers.x_transformers")
    rotary = module.RotaryEmbedding(dim, base=base)
    return Rotary(
        lambda q, k, angles: tuple(module.apply_rotary_pos_emb(x, angles) for x in (q, k)),
        lambda x, positions: rotary(positions)[:1],
        lambda angles: (angles.repeat_interleave(2, -1),),
    )


def xpos_rotary_embedding_torch(dim):
    module = peer("rotary_embedding_torch")
    rotary = module.RotaryEmbedding(dim, use_xpos=True)

    def turn(q, k, angles, scale):
        turned = module.apply_rotary_emb(angles, q, scale=scale)
        return turned, module.apply_rotary_emb(angles, k, scale=scale**-1)

    def tables(x, positions):
        at = positions[0].float()
        return rotary(at), rotary.get_scale(at)

    return Rotary(turn, tables)


def xpos_x_transformers(dim):
    module = peer("x_transformers.x_transformers")
    rotary = module.RotaryEmbedding(dim, use_xpos=True)

    def turn(q, k, angles, scale):
        turned = module.apply_rotary_pos_emb(q, angles, scale)
        return turned, module.apply_rotary_pos_emb(k, angles, scale**-1)

    return Rotary(turn, lambda x, positions: rotary(positions))


class Library(NamedTuple):
    """Who has RoPE: what pages call it, what peers.json does, its layout, and how to make one."""

    name: str
    where: str
    layout: str
    rotary: Callable  # (dim, base)
    base: float = BASE  # to be checked with: another one, if it takes one
    share: int = 1  # of the channels, one in so many turns
    rows_differ: bool = True  # positions may differ from row to row


NEOX = halves("gpt_neox", "GPTNeoX", partial_rotary_factor=0.25)
MODELS = "transformers.models"
ROPE = [
    Library("transformers' LLaMA", f"{MODELS}.llama.modeling_llama", "half", halves("llama", "Llama"), 5e5),
    Library("transformers' GPT-NeoX", f"{MODELS}.gpt_neox.modeling_gpt_neox", "half", NEOX, share=4),
    Library("transformers' GPT-J", f"{MODELS}.gptj.modeling_gptj", "interleaved", gptj),
    Library(
        "rotary-embedding-torch",
        "rotary_embedding_torch.RotaryEmbedding",
        "interleaved",
        rotary_embedding_torch,
        700.0,
        rows_differ=False,
    ),
    Library("x-transformers", "x_transformers.RotaryEmbedding", "interleaved", x_transformers, 700.0),
]
XPOS = {"rotary-embedding-torch": xpos_rotary_embedding_torch, "x-transformers": xpos_x_transformers}


def size_of(q, first):
    size = " × ".join(map(str, q.shape))
    return f"{size}, position {first:,}" if first else size


def in_layers(layers):
    return f", one token, {layers} layers" if layers > 1 else ""


def rope(layout):
    def case(batch, heads, tokens, first=0, layers=1, dim=DIM):
        both = learnable(batch, 2 * heads, tokens, dim)  # q and k, as one projection gives them
        q, k = both.chunk(2, dim=1)
        positions, frequencies = torch.arange(first, first + tokens)[None], rope_frequencies(dim, base=10000)

        def turn(cos, sin):
            return apply_rope(both, cos, sin, layout).chunk(2, dim=1)

        def ways_of(library):
            rotary = library.rotary(dim, BASE)

            def exact():
                return [each.float() for each in rotary.exact(positions.double()[..., None] * frequencies)]

            theirs = functools.partial(rotary.turn, q, k)
            yield Way(library.name, theirs, lambda: rotary.tables(q, positions), FLOAT32)
            yield Way(f"{library.name}, float64 angles", theirs, exact, only=ANEW)

        ways = [Way("", turn, lambda: rope_tables(positions, frequencies))]
        for library in ROPE:
            if library.layout == layout and library.share == 1:
                ways += ways_of(library)
        what = f"apply_rope, {layout}, q and k{in_layers(layers)}"
        return Case("rope", what, size_of(q, first), ways, 1e-3, layers)

    return case


def xpos(batch, heads, tokens, first=0, layers=1):
    q, k = (learnable(batch, heads, tokens, DIM) for _ in range(2))
    positions = torch.arange(first, first + tokens)[None]
    centre = (first + tokens) // 2

    def tables():
        return *xpos_tables(positions, DIM, "query", centre), *xpos_tables(positions, DIM, "key", centre)

    def turn(*tables):
        return apply_xpos(q, *tables[:2]), apply_xpos(k, *tables[2:])

    def way_of(name, rotary):
        return Way(name, functools.partial(rotary.turn, q, k), lambda: rotary.tables(q, positions), FLOAT32)

    ways = [Way("", turn, tables)]
    for name, rotary in XPOS.items():
        if not first or name == "x-transformers":  # which alone keeps a centre from one token to the next
            ways.append(way_of(name, rotary(DIM)))
    return Case("xpos", f"apply_xpos, q and k{in_layers(layers)}", size_of(q, first), ways, 2e-2, layers)


def scaled(kind, dim, base, length=None, **parameters):
    """The frequencies and the attention factor of a kind of scaling in transformers."""
    original = parameters.get("original_max_position_embeddings", 4096)
    longer = int(original * parameters.get("factor", 1)) if kind == "longrope" else original
    config = peer("transformers").LlamaConfig(
        hidden_size=dim,
        num_attention_heads=1,
        max_position_embeddings=longer,
        rope_parameters={"rope_type": kind, "rope_theta": base, **parameters},
    )
    function = peer("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS[kind]
    return functools.partial(function, config, "cpu", seq_len=length)


def stretched(kind, ours, **parameters):
    def case(batch, heads, tokens):
        dim = 64 * batch
        frequencies, factors = rope_frequencies(dim, base=10000), [1.5] * (dim // 2)
        given = {"factor": 8.0, "original_max_position_embeddings": 4096, **parameters}
        if kind == "longrope":
            given |= {"short_factor": factors, "long_factor": factors}
        theirs = scaled(kind, dim, BASE, 8192, **given)
        ways = [
            Way("", lambda: ours(frequencies, torch.tensor(factors))),
            Way("transformers", lambda: theirs()[0], less="float32 throughout"),
        ]
        return Case("rope_scaling", kind, f"dim {dim}", ways)

    return case


def axial(batch, heads, tokens):
    q, k = learnable(batch, 2 * heads, tokens, DIM).chunk(2, dim=1)
    places = torch.cartesian_prod(torch.arange(tokens // 16), torch.arange(16))
    frequencies = axial_frequencies(DIM, "turns", 1e4)
    modeling = peer(f"{MODELS}.pixtral.modeling_pixtral")
    config = peer("transformers").PixtralVisionConfig(
        head_dim=DIM, rope_parameters={"rope_type": "axial", "rope_theta": BASE}
    )
    rotary = modeling.PixtralVisionRotaryEmbedding(config)

    def turn(cos, sin):
        return tuple(apply_axial_rope(x, cos, sin, "half") for x in (q, k))

    def theirs(cos, sin):
        return modeling.apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=0)

    ways = [
        Way("", turn, lambda: axial_rope_tables(places, frequencies)),
        Way("transformers' Pixtral", theirs, lambda: rotary(q, places), FLOAT32),
    ]
    return Case("axial_rope", "apply_axial_rope, half, q and k", size_of(q, 0), ways, 1e-3)


def mixed_prompt(batch, heads, tokens):
    q, k = learnable(batch, 2 * heads, tokens, DIM).chunk(2, dim=1)
    prompt = [tokens // 4, Grid(1, tokens // 8, 4), tokens // 4]
    positions = mrope_positions(prompt, spatial_merge_size=1, text_start="largest")[None]
    frequencies, axes = rope_frequencies(DIM, base=10000), pair_axes([12, 10, 10], "interleaved")
    modeling = peer(f"{MODELS}.qwen3_vl.modeling_qwen3_vl")
    config = peer("transformers").Qwen3VLTextConfig(
        hidden_size=DIM,
        head_dim=DIM,
        num_attention_heads=1,
        rope_parameters={"rope_type": "default", "rope_theta": BASE, "mrope_section": [12, 10, 10]},
    )
    rotary = modeling.Qwen3VLTextRotaryEmbedding(config)

    def turn(cos, sin):
        return tuple(apply_rope(x, cos, sin, "half") for x in (q, k))

    ways = [
        Way("", turn, lambda: mrope_tables(positions, frequencies, axes)),
        Way(
            "transformers' Qwen3-VL",
            lambda cos, sin: modeling.apply_rotary_pos_emb(q, k, cos, sin),
            lambda: rotary(q, positions.movedim(-1, 0)),
            FLOAT32,
        ),
    ]
    return Case("mrope", "mrope_tables, half, q and k", size_of(q, 0), ways, 1e-3)


CASES = [
    rope("interleaved"),
    rope("half"),
    xpos,
    axial,
    mixed_prompt,
    stretched("yarn", lambda w, _: yarn(w, 8.0, 4096)),
    stretched("llama3", lambda w, _: llama3(w, 8.0, 4096), low_freq_factor=1.0, high_freq_factor=4.0),
    stretched("longrope", lambda w, factors: longrope(w, factors, factors, 4096, 8192)),
]
LARGE = [rope("interleaved"), rope("half")]
DECODED = [*LARGE, xpos]
