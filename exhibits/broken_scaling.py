"""Bugs in released code: frequency scaling left out or done twice."""

import math

import torch

from exhibits._broken_and_mended import compare
from exhibits._toy_decoder import (
    angles,
    check_decoder,
    look,
    turned,
    turned_by,
)
from snippets.check_positions import check_rotation
from snippets.rope import rope_frequencies
from snippets.rope_scaling import (
    dynamic_ntk,
    llama3,
    yarn,
    yarn_attention_factor,
)


def scaling_parsed_and_never_read():
    scaling = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }

    def broken(x, positions):
        plain = rope_frequencies(x.shape[-1], 500_000.0)
        return turned_by(x, positions, plain)

    def fixed(x, positions):
        plain = rope_frequencies(x.shape[-1], 500_000.0)
        slowed = llama3(plain, factor=8.0, original_length=8192)
        return turned_by(x, positions, slowed)

    def check(rotate):
        settings = {"rope_theta": 500_000.0} | scaling
        return check_rotation(rotate, 32, settings=settings)

    return compare(broken, fixed, check, finds="as_configured")


def factor_left_out_of_full_layers():
    """Gemma 3: `full` is for full layers; window layers have base 10,000."""
    full = {"rope_type": "linear", "rope_theta": 1_000_000.0, "factor": 8.0}

    def broken(x, positions):
        plain = rope_frequencies(x.shape[-1], 1_000_000.0)
        return turned_by(x, positions, plain)

    def fixed(x, positions):
        plain = rope_frequencies(x.shape[-1], 1_000_000.0)
        return turned_by(x, positions, plain / full["factor"])

    def check(rotate):
        return check_rotation(rotate, 16, settings=full)

    return compare(broken, fixed, check, finds="as_configured")


def factor_in_layers_with_a_window():
    config = {
        "sliding_attention": {"rope_theta": 10_000.0},
        "full_attention": {
            "rope_type": "linear",
            "rope_theta": 1_000_000.0,
            "factor": 8.0,
        },
    }
    own = config["sliding_attention"]
    factors = [kind.get("factor", 1.0) for kind in config.values()]

    def broken(x, positions):
        plain = rope_frequencies(x.shape[-1], own["rope_theta"])
        return turned_by(x, positions, plain / max(factors))  # one factor

    def fixed(x, positions):
        plain = rope_frequencies(x.shape[-1], own["rope_theta"])
        return turned_by(x, positions, plain / own.get("factor", 1.0))

    def check(rotate):
        return check_rotation(rotate, 16, settings=own)

    return compare(broken, fixed, check, finds="as_configured")


def positions_doubled():
    settings = {"rope_type": "dynamic", "rope_theta": 10_000.0, "factor": 6.0}
    linear = settings["rope_type"] == "linear"

    def broken(x, positions):
        scale = 1 / settings["factor"] if linear else 2.0
        return turned(x, positions * scale)

    def fixed(x, positions):
        scale = 1 / settings["factor"] if linear else 1.0
        return turned(x, positions * scale)

    def check(rotate):
        return check_rotation(rotate, 16, settings=settings)

    return compare(broken, fixed, check, finds="as_configured")


def length_scaled_twice():
    """Memory after the table has other data; the kernel does not check."""
    config = {"max_position_embeddings": 65_536, "factor": 8.0}  # 8 * 8,192
    made = torch.Generator().manual_seed(0)
    rows = 8 * config["max_position_embeddings"]
    memory = torch.randn(rows, 8, generator=made)
    memory[: config["max_position_embeddings"]] = angles(torch.arange(65_536))

    def rotate(x, positions):
        return turned(x, positions, lambda p, _: memory[p])

    def check_up_to(length):
        return check_rotation(rotate, 16, length=int(length))

    broken = config["max_position_embeddings"] * config["factor"]
    fixed = config["max_position_embeddings"]
    return compare(broken, fixed, check_up_to, finds="precise_angles")


def length_after_for_length_before():
    settings = {
        "rope_type": "yarn",
        "rope_theta": 10_000.0,
        "factor": 40.0,
        "original_max_position_embeddings": 4096,
    }
    length_after = 163_840  # max_position_embeddings, which is 40 times 4,096

    def broken(x, positions):
        plain = rope_frequencies(x.shape[-1], settings["rope_theta"])
        slowed = yarn(plain, 40.0, length_after)
        return turned_by(x, positions, slowed, yarn_attention_factor(40.0))

    def fixed(x, positions):
        plain = rope_frequencies(x.shape[-1], settings["rope_theta"])
        before = settings["original_max_position_embeddings"]
        slowed = yarn(plain, 40.0, before)
        return turned_by(x, positions, slowed, yarn_attention_factor(40.0))

    def check(rotate):
        return check_rotation(rotate, 64, settings=settings)

    return compare(broken, fixed, check, finds="as_configured")


def attention_factor_not_passed_on():
    settings = {
        "rope_type": "yarn",
        "rope_theta": 10_000.0,
        "factor": 64.0,
        "original_max_position_embeddings": 4096,
        "attention_factor": 1.0,
    }
    known = ("factor", "attn_factor", "beta_fast", "beta_slow")

    def rotate(x, positions, given):
        plain = rope_frequencies(x.shape[-1], settings["rope_theta"])
        slowed = yarn(plain, given["factor"], 4096)
        default = yarn_attention_factor(given["factor"])
        factor = given.get("attention_factor", default)
        return turned_by(x, positions, slowed, factor)

    def broken(x, positions):
        passed_on = {k: settings[k] for k in known if k in settings}
        return rotate(x, positions, passed_on)

    def fixed(x, positions):
        return rotate(x, positions, settings)

    def check(rotate):
        return check_rotation(rotate, 64, settings=settings)

    return compare(broken, fixed, check, finds="as_configured")


def long_factors_at_every_length():
    settings = {
        "rope_type": "longrope",
        "rope_theta": 10_000.0,
        "original_max_position_embeddings": 4096,
        "factor": 32.0,
        "short_factor": torch.linspace(1, 1.03, 16).tolist(),
        "long_factor": torch.linspace(1, 64.8, 16).tolist(),
    }
    scale = math.sqrt(1 + math.log(32) / math.log(4096))
    plain = rope_frequencies(32, settings["rope_theta"])

    def broken(x, positions):
        slower = torch.tensor(settings["long_factor"], dtype=torch.float64)
        return turned_by(x, positions, plain / slower, scale)

    def fixed(x, positions):
        original = settings["original_max_position_embeddings"]
        late = int(positions.max()) >= original
        which = settings["long_factor" if late else "short_factor"]
        slower = torch.tensor(which, dtype=torch.float64)
        return turned_by(x, positions, plain / slower, scale)

    def check(rotate):
        return check_rotation(rotate, 32, settings=settings, length=4096)

    return compare(broken, fixed, check, finds="as_configured")


def factors_switched_in_the_middle():
    original = 16

    def two_tables(is_long):
        def slower(positions, dim):
            long = torch.linspace(4, 64, dim // 2)
            factors = long if is_long(positions) else 1
            return angles(positions, dim) / factors

        def attend(layer, q, k, v, places, real, cache):
            q, k = turned(q, places, slower), turned(k, places, slower)
            cache[layer] = cache[layer].plus(k, v, places, real)
            return look(q, cache[layer])

        return attend

    broken = two_tables(lambda positions: int(positions.max()) >= original)
    fixed = two_tables(lambda positions: True)  # for the whole answer

    return compare(broken, fixed, check_decoder, finds="whole_as_chunks")


def base_of_the_moment():
    factor, original, longest = 8, 2, 64

    def ntk(length_of):
        def slower(positions, dim):
            longer = length_of(positions) / original
            grown = max(factor * longer - factor + 1, 1)
            base = 100.0 * grown ** (dim / (dim - 2))
            return angles(positions, dim, base)

        def attend(layer, q, k, v, places, real, cache):
            q, k = turned(q, places, slower), turned(k, places, slower)
            cache[layer] = cache[layer].plus(k, v, places, real)
            return look(q, cache[layer])

        return attend

    broken = ntk(lambda positions: int(positions.max()) + 1)  # at each step
    fixed = ntk(lambda positions: longest)  # one for the whole answer

    return compare(broken, fixed, check_decoder, finds="whole_as_steps")


def dynamic_for_one_length():
    """A server builds its table at start, when no length is known."""
    settings = {"rope_type": "dynamic", "rope_theta": 10_000.0, "factor": 2.0}
    original = 4096

    def at(x, positions, length):
        plain = rope_frequencies(x.shape[-1], settings["rope_theta"])
        slowed = dynamic_ntk(plain, settings["factor"], original, length)
        return turned_by(x, positions, slowed)

    def broken(x, positions):
        return at(x, positions, settings["factor"] * original)

    def fixed(x, positions):
        return at(x, positions, max(original, int(positions.max()) + 1))

    def check(rotate):
        return check_rotation(rotate, 16, settings=settings, length=original)

    return compare(broken, fixed, check, finds="as_configured")


def kept_from_the_longest_prompt():
    original, longest = 4096, [4096]

    def frequencies(dim, length):
        plain = rope_frequencies(dim, base=10000)
        return dynamic_ntk(plain, 2.0, original, length)

    def broken(x, positions):
        longest[0] = max(longest[0], int(positions.max()) + 1)
        return turned_by(x, positions, frequencies(x.shape[-1], longest[0]))

    def fixed(x, positions):
        length = max(original, int(positions.max()) + 1)
        return turned_by(x, positions, frequencies(x.shape[-1], length))

    def check(rotate):
        return check_rotation(rotate, 16, length=2 * original)

    return compare(broken, fixed, check, finds="same_twice")
