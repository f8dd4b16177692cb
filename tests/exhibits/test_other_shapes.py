"""What the chapter on time, space and graphs says of its exhibits, and of models."""

import importlib
import inspect
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from exhibits import other_shapes
from snippets.fourier import fourier_features
from snippets.sinusoidal import sinusoidal_encoding, sinusoidal_encoding_t2t
from tests.exhibits.common import numbers
from tests.peers import peer
from tests.rows import each_of

MODELS = "transformers.models"
ROUNDED = {"rtol": 0, "atol": 1e-4}  # angles in float32, up to some thousand radians


def test_walks_come_home_from_triangles_one_time_in_four(returned):
    """After two steps one half is at the other two nodes, from where one half goes home."""
    assert returned("other_shapes.home") == {"triangles": 0.25, "ring": 0}
    assert returned("other_shapes.steps_home") == {"third": 0.25}


def test_the_table_of_steps_is_that_of_powers(printed):
    rows = [
        numbers(line)
        for line in printed("other_shapes.steps_home")
        if line.startswith("| t") or "ring" in line
    ]
    for sizes, row in zip(([3, 3], [6]), rows, strict=True):
        step = np.zeros((6, 6))
        first = 0
        for size in sizes:
            for i in range(size):
                step[first + i, first + (i + 1) % size] = step[first + (i + 1) % size, first + i] = 0.5
            first += size
        expected = [np.linalg.matrix_power(step, m)[0, 0] for m in range(1, 7)]
        assert row == pytest.approx(expected, abs=5e-5)


def test_a_wave_on_a_line_changes_sign_as_often_as_its_number_says(returned):
    values = returned("other_shapes.waves")
    assert [values[f"line_{n}"] for n in (1, 2, 3)] == [1, 2, 3]
    assert values["apart"] > 0.05, "the first wave parts the loops"


def test_a_turned_pair_is_as_right(returned, printed):
    values = returned("other_shapes.turned")
    assert values["wrong"] < 1e-12 and values["spaces"] < 1e-12
    lines = printed("other_shapes.turned")
    # each of two vectors of length 1 is turned by 0.5: twice the chord, squared, is added
    chord = 2 * math.sin(0.25)
    assert numbers(lines[2]) == [pytest.approx(math.sqrt(2) * chord, abs=5e-3)]
    assert numbers(lines[0])[-2:] == [0.5, 0.5]  # 1 - cos of a sixth of a turn


def test_twins_are_alike_but_for_the_triangles_of_neighbours(returned):
    values = returned("other_shapes.twins")
    assert values["walks"] < 1e-12 and values["values"] < 1e-12
    assert (values["rook"], values["shrikhande"]) == (2, 0)


def test_times_without_a_factor_look_alike(returned):
    values = returned("other_shapes.unit")
    for name, factor, others in (("flat", 1, range(101)), ("least", 1000, [30])):
        speeds = [factor * 10000 ** (-2 * p / values["dim"]) for p in range(values["dim"] // 2)]
        pairs = {abs(n - other) / 100 for n in range(101) for other in others}
        alike = [sum(math.cos(apart * w) for w in speeds) / len(speeds) for apart in pairs]
        assert values[name] == pytest.approx(min(alike), abs=1e-6)


def test_times_that_are_not_whole_are_turned_alike(returned):
    assert returned("other_shapes.irregular")["apart"] < 1e-9


# --- waves of several coordinates


@pytest.mark.claim(
    "shapes-nerf-ends-meet",
    "With the frequencies of NeRF's paper, powers of two times pi, two points that are two apart along an "
    "axis have the same features, and so do the two ends of the range from minus one to one. With the "
    "frequencies of its code, powers of two without pi, two points of this range that differ along an "
    "axis do not have the same features.",
)
def test_with_pi_the_ends_meet(returned):
    powers = 2.0 ** torch.arange(10, dtype=torch.float64)[:, None]
    line = torch.linspace(-1, 1, 401, dtype=torch.float64)[:, None]
    paper, code = (fourier_features(line, factor * powers) for factor in (math.pi, 1.0))
    moved = fourier_features(line + 2, math.pi * powers)
    assert_close(paper, moved, rtol=0, atol=1e-12)
    assert_close(paper[0], paper[-1], rtol=0, atol=1e-12)
    # the slowest pair alone, a circle gone round by less than a third, keeps places apart
    apart = torch.cdist(code, code) + torch.eye(401)
    chord = 2 * (0.5 * (line - line.mT).abs()).sin() / math.sqrt(20)
    assert (apart >= chord - 1e-12).all() and chord[~torch.eye(401).bool()].min() > 1e-4
    values = returned("other_shapes.nerf")
    assert values["paper"] < 1e-9 and values["code"] > 0.5


def test_its_waves_are_those_of_nerf_but_for_their_order(returned):
    """By the formula of the paper and of the code, one number at a time."""
    place = [0.3, -0.7, 0.2]
    for factor in (math.pi, 1.0):
        code = torch.kron(2.0 ** torch.arange(4)[:, None].double(), torch.eye(3).double()) * factor
        made = fourier_features(torch.tensor(place).double(), code) * math.sqrt(2 * len(code))
        angles = [factor * 2**n * x for n in range(4) for x in place]
        expected = [wave(angle) for wave in (math.cos, math.sin) for angle in angles]
        assert made.tolist() == pytest.approx(expected, abs=1e-6)


# --- timesteps


def qwen(t):
    module = peer(f"{MODELS}.qwen2_5_omni.modeling_qwen2_5_omni")
    return module.SinusPositionEmbedding(64)(t), sinusoidal_encoding_t2t(1000 * t, 64)


def vibevoice(t):
    module = peer(f"{MODELS}.vibevoice.modeling_vibevoice")
    config = SimpleNamespace(frequency_embedding_size=64, diffusion_max_period=10000)
    theirs = module.VibeVoiceDiffusionHeadSinusoidalEmbedding(config)(1000 * t)
    return theirs, sinusoidal_encoding(1000 * t, 64, layout="cos_sin")


def gradium(t):
    module = peer(f"{MODELS}.gradium_phonon_tts.modeling_gradium_phonon_tts")
    config = SimpleNamespace(frequency_embedding_size=64, max_period=10000.0)
    angles = t[:, None] * module.GradiumPhononTTSTimestepEmbedding.compute_default_freqs(config)
    return torch.cat((angles.cos(), angles.sin()), -1), sinusoidal_encoding(t, 64, layout="cos_sin")


def pi0(t):
    config = peer("transformers").AutoConfig.for_model("pi0")
    config.dit_config.hidden_size = 64
    theirs = peer(f"{MODELS}.pi0.modeling_pi0").PI0TimestepEmbeddings(config)(t)
    turns = 2 * math.pi / config.min_period
    ours = sinusoidal_encoding_t2t(turns * t.double(), 64, config.max_period / config.min_period)
    return theirs, ours


@pytest.mark.claim(
    "shapes-timesteps-are-sinusoids",
    "In the tested version of transformers, Qwen2.5-Omni, VibeVoice, Phonon TTS and pi0 encode the time "
    "of diffusion or flow by the snippet's sinusoids, in the layout, in the unit and with the base that "
    "the table names, up to the rounding of float32 angles.",
)
@each_of("model", [qwen, vibevoice, gradium, pi0])
def test_timesteps_are_sinusoids(model):
    theirs, ours = model(torch.tensor([0.0, 0.001, 0.25, 0.5, 0.999, 1.0]))
    assert_close(ours, theirs, rtol=0, atol=2e-4)


def test_three_ways_to_write_one_step(printed, returned):
    step = 500
    expected = {
        "DDPM": (math.sin(step * 10000 ** (-1 / 31)), math.cos(step * 10000 ** (-1 / 31))),
        "guided-diffusion": (math.cos(step * 10000 ** (-1 / 32)), math.sin(step * 10000 ** (-1 / 32))),
        "pi0": [f(0.5 * 2 * math.pi / (0.004 * 1000 ** (1 / 31))) for f in (math.sin, math.cos)],
    }
    expected["Qwen2.5-Omni"] = expected["DDPM"]
    shown = {line.split()[0]: numbers(line)[-2:] for line in printed("other_shapes.timesteps")[1:]}
    assert shown.keys() == expected.keys()
    for name, row in shown.items():
        assert row == pytest.approx(list(expected[name]), abs=1e-4), name
    assert returned("other_shapes.timesteps")["apart"] > 1


# --- models that hear or forecast


def module_of(name):
    return peer(f"{MODELS}.{name}.modeling_{name}")


def configured(name):
    return peer("transformers").AutoConfig.for_model(name)


def sinusoids_of_whisper():
    module = module_of("whisper")
    rows = sinusoidal_encoding_t2t(torch.arange(50), 32)
    assert_close(module.sinusoids(50, 32), rows, **ROUNDED)
    init = inspect.getsource(module.WhisperEncoder.__init__)
    assert "embed_positions.requires_grad_(False)" in init
    assert issubclass(module.WhisperPositionalEmbedding, torch.nn.Embedding)
    assert "WhisperPositionalEmbedding(" in inspect.getsource(module.WhisperDecoder.__init__)


def convolves(name, kind):
    config = configured(name)
    layer = getattr(module_of(name), f"{kind}PositionalConvEmbedding")(config)
    assert isinstance(layer.conv, torch.nn.Conv1d) and layer.conv.kernel_size == (128,)
    encoder = inspect.getsource(getattr(module_of(name), f"{kind}Encoder"))
    assert "hidden_states + position_embeddings" in encoder


def table_of_patches():
    config = configured("audio-spectrogram-transformer")
    module = importlib.import_module(
        f"{MODELS}.audio_spectrogram_transformer.modeling_audio_spectrogram_transformer"
    )
    table = module.ASTEmbeddings(config).position_embeddings
    assert isinstance(table, torch.nn.Parameter) and table.requires_grad


def scores_of_transformer_xl(name, attention, u, v):
    made = getattr(module_of(name), attention)
    source = inspect.getsource(made)
    assert all(part in source for part in (f"self.{u}", f"self.{v}", "_rel_shift"))


def conformer():
    module, config = module_of("wav2vec2_conformer"), configured("wav2vec2-conformer")
    assert config.position_embeddings_type == "relative"
    source = inspect.getsource(module.Wav2Vec2ConformerSelfAttention)
    assert "pos_bias_u" in source and "pos_bias_v" in source and "_apply_rotary_embedding" in source
    assert isinstance(module.Wav2Vec2ConformerPositionalConvEmbedding(config).conv, torch.nn.Conv1d)


def table_of_shaw():
    attention = module_of("granite_speech").GraniteSpeechConformerAttention
    config = configured("granite_speech").encoder_config
    table = attention(config).rel_pos_emb.weight
    assert table.shape == (2 * config.max_pos_emb + 1, config.dim_head)
    assert "query_states, rel_pos_emb" in inspect.getsource(attention.forward)


def turns_part():
    config = configured("moonshine")
    assert 0 < config.rope_parameters["partial_rotary_factor"] < 1
    assert "apply_rotary_pos_emb(" in inspect.getsource(module_of("moonshine").MoonshineAttention.forward)


def turns_all():
    source = inspect.getsource(module_of("timesfm2_5").TimesFm2_5Attention.forward)
    assert "apply_rotary_pos_emb(" in source
    assert configured("timesfm2_5").rope_parameters.get("partial_rotary_factor", 1.0) == 1.0


def sinusoids_beside_dates():
    module = module_of("time_series_transformer")
    made = module.TimeSeriesSinusoidalPositionalEmbedding(50, 32).create_weight()
    assert_close(made, sinusoidal_encoding(torch.arange(50), 32, layout="sin_cos"), **ROUNDED)
    assert "past_time_features" in inspect.signature(module.TimeSeriesTransformerModel.forward).parameters


def either_of_patchtst():
    config = configured("patchtst")
    make = module_of("patchtst").PatchTSTPositionalEncoding._init_pe
    fixed = make(config, 30)
    rows = sinusoidal_encoding(torch.arange(30), config.d_model)
    assert config.positional_encoding_type == "sincos" and not fixed.requires_grad
    centred = rows - rows.mean()
    assert_close(fixed.data, centred / (10 * centred.std()), **ROUNDED)
    config.positional_encoding_type = "random"
    assert make(config, 30).requires_grad


def sinusoids_of_timesfm():
    config = configured("timesfm")
    made = module_of("timesfm").TimesFmPositionalEmbedding(config)(40)[0]
    assert_close(made, sinusoidal_encoding_t2t(torch.arange(40), config.hidden_size), **ROUNDED)


WITNESSES = {
    "whisper": sinusoids_of_whisper,
    "wav2vec2": lambda: convolves("wav2vec2", "Wav2Vec2"),
    "audio_spectrogram_transformer": table_of_patches,
    "parakeet": lambda: scores_of_transformer_xl("parakeet", "ParakeetEncoderAttention", "bias_u", "bias_v"),
    "wav2vec2_conformer": conformer,
    "granite_speech": table_of_shaw,
    "moonshine": turns_part,
    "time_series_transformer": sinusoids_beside_dates,
    "patchtst": either_of_patchtst,
    "timesfm": sinusoids_of_timesfm,
    "timesfm2_5": turns_all,
}


@pytest.mark.claim(
    "shapes-listeners-as-their-code-has-them",
    "Each listed audio or time-series model has what the list states in its modeling file in the tested "
    "version of transformers.",
)
@each_of("name", other_shapes.LISTENERS)
def test_listeners_are_as_their_code_has_them(name):
    assert peer("transformers").__version__ == "5.23.0", "look at the sentence again"
    WITNESSES[name]()


def test_the_table_of_listeners_has_a_row_for_each(printed, returned):
    rows = printed("other_shapes.listeners")[2:]
    assert [row.split("`")[1] for row in rows] == list(WITNESSES)
    assert returned("other_shapes.listeners") == {"models": len(WITNESSES)}
