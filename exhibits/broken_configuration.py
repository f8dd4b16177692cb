"""Bugs in released code: configurations read wrongly, or not at all."""

from functools import partial

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from exhibits._broken_and_mended import compare
from exhibits._toy_decoder import angles, turned, turned_by
from snippets.check_positions import check_layers, check_rotation, read_layers
from snippets.rope import rope_frequencies


class Attention(nn.Module):
    def __init__(self, turns, dim=16):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))
        self.turns = turns

    def forward(self, x):  # (batch, tokens, dim)
        q, k, v = (f(x)[:, None] for f in (self.q, self.k, self.v))
        if self.turns:
            places = torch.arange(x.shape[1])
            q, k = turned(q, places), turned(k, places)
        return x + scaled_dot_product_attention(q, k, v, is_causal=True)[:, 0]


def base_moved_in_version_5():
    """The same base, as version 5 writes it and as older files have it."""
    inside = {
        "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000.0}
    }
    outside = {
        "rope_theta": 1_000_000.0,
        "rope_parameters": {"rope_type": "default"},
    }

    def broken(config):
        return config.get("rope_theta", 10_000.0)

    def fixed(config):  # inner key wins; KeyError if absent
        return (config | config["rope_parameters"])["rope_theta"]

    def check(base_of):
        found = []
        for base in (base_of(inside), base_of(outside)):
            w = rope_frequencies(16, base)
            rotate = partial(turned_by, frequencies=w)
            settings = {"rope_theta": 1_000_000.0}
            found += check_rotation(rotate, 16, settings=settings)
        return found

    return compare(broken, fixed, check, finds="as_configured")


def old_default_wins():
    """A file of transformers 5, read by a library of version 4."""
    config = {
        "rope_theta": 10_000.0,  # its own default: the file has no such key
        "rope_parameters": {"rope_type": "default", "rope_theta": 500_000.0},
    }

    def rotate(x, positions, settings):
        base = settings["rope_theta"]
        return turned(x, positions, lambda p, dim: angles(p, dim, base))

    old = {"rope_theta": config["rope_theta"]}

    def broken(x, positions):
        return rotate(x, positions, config["rope_parameters"] | old)

    def fixed(x, positions):
        return rotate(x, positions, old | config["rope_parameters"])

    def check(rotate):
        return check_rotation(rotate, 16, settings=config["rope_parameters"])

    return compare(broken, fixed, check, finds="as_configured")


def kind_under_another_key():
    """A scaling dictionary as written up to 2024, with the key `type`."""
    scaling = {"rope_theta": 10_000.0, "type": "linear", "factor": 4.0}

    def rotate(x, positions, kind):
        factor = scaling["factor"] if kind == "linear" else 1.0
        w = rope_frequencies(x.shape[-1], scaling["rope_theta"])
        return turned_by(x, positions, w / factor)

    def broken(x, positions):
        return rotate(x, positions, scaling.get("rope_type", "default"))

    def fixed(x, positions):
        kind = scaling.get("rope_type") or scaling.get("type")
        return rotate(x, positions, kind)

    def check(rotate):
        return check_rotation(rotate, 16, settings=scaling)

    return compare(broken, fixed, check, finds="as_configured")


def share_never_read():
    settings = {"rope_theta": 10_000.0, "partial_rotary_factor": 0.5}

    def broken(x, positions):
        w = rope_frequencies(x.shape[-1], settings["rope_theta"])
        return turned_by(x, positions, w)

    def fixed(x, positions):
        wide = int(x.shape[-1] * settings["partial_rotary_factor"])
        w = rope_frequencies(wide, settings["rope_theta"])
        return turned_by(x, positions, w)

    def check(rotate):
        return check_rotation(rotate, 32, settings=settings)

    return compare(broken, fixed, check, finds="as_configured")


def share_taken_twice():
    """64 of 128 channels are rotated, and are passed as a separate head."""
    config = {"rope_theta": 10_000.0, "partial_rotary_factor": 0.5}

    def broken(x, positions):
        wide = int(x.shape[-1] * config["partial_rotary_factor"])
        w = rope_frequencies(wide, config["rope_theta"])
        return turned_by(x, positions, w)

    def fixed(x, positions):
        w = rope_frequencies(x.shape[-1], config["rope_theta"])
        return turned_by(x, positions, w)

    def check(rotate):
        return check_rotation(rotate, 64, settings={"rope_theta": 10_000.0})

    return compare(broken, fixed, check, finds="as_configured")


def share_by_the_width_of_the_head():
    settings = {"rope_theta": 10_000.0, "partial_rotary_factor": 0.25}

    def broken(x, positions):
        w = rope_frequencies(x.shape[-1], settings["rope_theta"])
        return turned_by(x, positions, w[: x.shape[-1] // 8])

    def fixed(x, positions):
        w = rope_frequencies(x.shape[-1] // 4, settings["rope_theta"])
        return turned_by(x, positions, w)

    def check(rotate):
        return check_rotation(rotate, 64, settings=settings)

    return compare(broken, fixed, check, finds="as_configured")


def halved_once_a_layer():
    """All layers share one module; a loop over layers sets its width."""
    settings = {"rope_theta": 10_000.0, "partial_rotary_factor": 0.5}

    class Shared:
        def __init__(self, wide):
            self.wide = wide

        def rotate(self, x, positions):
            w = rope_frequencies(self.wide, settings["rope_theta"])
            return turned_by(x, positions, w)

    kept, made = Shared(64), Shared(64 // 2)
    for _layer in range(3):
        kept.wide //= 2

    def check(rotate):
        return check_rotation(rotate, 64, settings=settings)

    return compare(kept.rotate, made.rotate, check, finds="as_configured")


def proportional_taken_for_partial():
    """The first four of 16 pairs rotate; pairs are half a head apart."""
    settings = {
        "rope_type": "proportional",
        "rope_theta": 10_000.0,
        "partial_rotary_factor": 0.25,
    }
    w = rope_frequencies(32, settings["rope_theta"])[:4]

    def broken(x, positions):  # pairs are four channels apart
        return turned_by(x, positions, w)

    def fixed(x, positions):  # pairs are sixteen apart
        return turned_by(x, positions, nn.functional.pad(w, (0, 12)))

    def check(rotate):
        return check_rotation(rotate, 32, settings=settings, layout="half")

    return compare(broken, fixed, check, finds="as_configured")


def _check_four(turns):
    """Check four layers, of which the last must not rotate."""
    torch.manual_seed(0)
    model = nn.Sequential(*(Attention(turns(layer)) for layer in range(4)))
    layers = read_layers(
        model, lambda token: model(torch.full((1, 32, 16), token / 5))
    )
    return check_layers(layers, [{"rope_theta": 10_000.0}] * 3 + [None])


def rotation_hangs_on_the_window():
    """Window layers rotate, full layers do not; a server drops windows."""
    config = {
        "sliding_window": None,  # 4,096 in the file
        "layer_types": ["sliding"] * 3 + ["full"],
    }

    def broken(layer):
        kind = config["layer_types"][layer]
        return config["sliding_window"] is None or kind == "sliding"

    def fixed(layer):
        return config["layer_types"][layer] == "sliding"

    return compare(broken, fixed, _check_four, finds="layers_as_configured")


def rotation_where_there_is_none():
    """The file has a base although not every layer rotates."""
    config = {
        "rope_theta": 10_000.0,
        "no_rope_layers": [1, 1, 1, 0],  # 1: this layer rotates
    }

    def broken(layer):
        return "rope_theta" in config

    def fixed(layer):
        return config["no_rope_layers"][layer] == 1

    return compare(broken, fixed, _check_four, finds="layers_as_configured")


def rows_counted_from_two():
    """The first two rows of the table are never used for a token."""
    config = {"max_position_embeddings": 2050}
    made = torch.Generator().manual_seed(0)
    table = torch.randn(config["max_position_embeddings"], 16, generator=made)

    def encode(x, positions):
        return x + table[positions + 2]

    def check_up_to(tokens):
        return check_rotation(encode, 16, length=tokens)

    broken = config["max_position_embeddings"]
    fixed = config["max_position_embeddings"] - 2
    return compare(broken, fixed, check_up_to, finds="reaches")
