"""Test bugs of the register in the installed libraries themselves, not in code of our own.

Claims about a version refer to the pinned version. A failing test here may be good news: then the entry in
docs/broken/register.toml is out of date.
"""

import importlib.metadata
import re
import tomllib

import pytest
import torch

from executable_prose.project import DOCS, ROOT
from exhibits._image_checks import check_prompt
from exhibits._toy_decoder import DIM
from snippets.check_positions import check_attention, check_model, check_rotation, check_start, read_layers
from tests.peers import peer

pytestmark = pytest.mark.peer
ENTRIES = tomllib.loads((ROOT / "docs/broken/register.toml").read_text("utf-8"))["entry"]


def failing(findings):
    """The checks that fail, with what they found."""
    return {finding.check: finding.found for finding in findings if finding.verdict == "fails"}


def test_the_register_speaks_of_the_versions_that_are_installed():
    names = ["transformers", "attn-gym", "rotary-embedding-torch", "x-transformers", "torch"]
    for name in names:
        said = {
            version
            for entry in ENTRIES
            for version in re.findall(rf"(?<![\w-]){name} (\d+\.\d+\.\d+)", entry["stands"])
        }
        assert said == {importlib.metadata.version(name).partition("+")[0]}, name


def test_an_entry_that_was_run_says_so():
    """An entry with a paragraph "In the library" on its page states in its status that the code was run."""
    for page in sorted((DOCS / "broken").glob("*.md")):
        for part in page.read_text("utf-8").split("```register ")[1:]:
            id = part.split()[0]
            (entry,) = (entry for entry in ENTRIES if entry["id"] == id)
            assert ("**In the library.**" in part) <= bool(re.search(r"\bran\b|\brun\b", entry["stands"])), id


# Conversion


@pytest.mark.claim(
    "library-vjepa2",
    "In transformers 5.23.0, the rotation of V-JEPA 2 has a table in the half layout and an interleaved "
    "swap: the norms of vectors and the scores at a fixed offset depend on the position.",
)
def test_vjepa2_has_its_table_in_halves_and_swaps_neighbours():
    vjepa2 = peer("transformers.models.vjepa2.modeling_vjepa2")
    found = failing(check_rotation(lambda x, at: vjepa2.rotate_queries_or_keys(x, at.to(x)), 16))
    assert "the table is in the half layout, the swap interleaved" in found["one_layout"]
    assert {"norm_kept", "offsets_alone"} < set(found)


@pytest.mark.claim(
    "library-permute-for-rope",
    "PermuteForRope of transformers 5.23.0 reorders the rows of k_proj in as many groups as there are "
    "query heads, not key heads.",
)
def test_permute_for_rope_takes_the_heads_of_queries_for_keys():
    transformers, loading = peer("transformers"), peer("transformers.core_model_loading")

    def rows(heads, key_heads):
        config = transformers.LlamaConfig(num_attention_heads=heads, num_key_value_heads=key_heads)
        names = ["k_proj.weight"]
        made = loading.PermuteForRope().convert({names[0]: torch.arange(32)[:, None]}, names, names, config)
        return made[names[0]].flatten()

    def permuted(groups):
        return torch.arange(32).view(groups, -1, 2).mT.flatten()

    assert rows(2, 2).equal(permuted(2))
    assert rows(8, 2).equal(permuted(8)) and not rows(8, 2).equal(permuted(2))


# Configuration and scaling


@pytest.mark.claim(
    "library-base-moved",
    'In transformers 5.23.0, getattr(config, "rope_theta", 10_000.0) is 10,000 for a Llama whose file has a '
    "rope_theta of 500,000.",
)
def test_a_base_asked_for_by_its_old_name_is_the_default():
    file = {"model_type": "llama", "rope_theta": 500_000.0}
    config = peer("transformers").LlamaConfig.from_dict(file)
    assert getattr(config, "rope_theta", 10_000.0) == 10_000
    assert config.rope_parameters["rope_theta"] == 500_000


@pytest.mark.claim(
    "library-olmo3-base",
    "In transformers 5.23.0, a `rope_theta` of 10,000 in the file of an Olmo 3 is the base of its "
    "full-attention layers; its sliding-window layers have 500,000, the default of the class.",
)
def test_a_base_at_the_top_of_a_file_reaches_the_full_layers_of_olmo3_only():
    config = peer("transformers").Olmo3Config.from_dict({"model_type": "olmo3", "rope_theta": 10_000.0})
    bases = {kind: each["rope_theta"] for kind, each in config.rope_parameters.items()}
    assert bases == {"full_attention": 10_000, "sliding_attention": 500_000}


@pytest.mark.claim(
    "library-rotary-dim",
    "In transformers 5.23.0, a `rotary_dim` of 64 in a file with heads of 128 channels gives 32 frequencies "
    "in MiniMax-M2, but 64 in MiniMax, as without the key.",
)
def test_rotary_dim_is_read_by_minimax_m2_and_not_by_minimax():
    def frequencies(name, **file):
        config = getattr(peer("transformers"), f"{name}Config").from_dict({"head_dim": 128, **file})
        module = peer(f"transformers.models.{config.model_type}.modeling_{config.model_type}")
        return len(getattr(module, f"{name}RotaryEmbedding")(config).inv_freq)

    assert frequencies("MiniMaxM2", rotary_dim=64) == 32 and frequencies("MiniMaxM2") == 64
    assert frequencies("MiniMax", rotary_dim=64) == frequencies("MiniMax") == 64


@pytest.mark.claim(
    "library-olmo3-yarn",
    "In transformers 5.23.0, YaRN settings under `rope_scaling` in the file of an Olmo 3 change the "
    "frequencies of its full-attention layers, but not those of its sliding-window layers.",
)
def test_yarn_of_olmo3_reaches_full_layers_only():
    config = peer("transformers").Olmo3Config
    rotary = peer("transformers.models.olmo3.modeling_olmo3").Olmo3RotaryEmbedding
    yarn = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8192}
    file = {"model_type": "olmo3", "rope_theta": 500_000.0, "max_position_embeddings": 65_536}
    scaled = dict(rotary(config.from_dict(file | {"rope_scaling": dict(yarn)})).named_buffers())
    plain = dict(rotary(config.from_dict(file)).named_buffers())
    full, window = "full_attention_inv_freq", "sliding_attention_inv_freq"
    assert scaled[window].equal(plain[window]) and plain[full].equal(plain[window])
    assert scaled[full][-1] == pytest.approx(plain[full][-1].item() / 8)


@pytest.mark.claim(
    "library-longrope-switches",
    "In transformers 5.23.0, Phi-3 with LongRoPE uses different angles for the first half of a text if it "
    "is processed in two calls than if it is processed in one call that exceeds the original length.",
)
def test_longrope_switches_in_the_middle_of_a_text():
    transformers, phi3 = peer("transformers"), peer("transformers.models.phi3.modeling_phi3")
    factors = {"short_factor": [1.0] * 8, "long_factor": [4.0] * 8, "factor": 4.0}
    scaling = {"rope_type": "longrope", "rope_theta": 10_000.0, **factors}
    scaling["original_max_position_embeddings"] = 64
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "max_position_embeddings": 256}
    config = transformers.Phi3Config(rope_parameters=scaling, original_max_position_embeddings=64, **sizes)
    rotary = phi3.Phi3RotaryEmbedding(config)

    def cosines(begin, end):
        return rotary(torch.zeros(1), torch.arange(begin, end)[None])[0]

    whole, parts = cosines(0, 100), torch.cat((cosines(0, 50), cosines(50, 100)), dim=1)
    gap = (whole - parts).abs().amax((0, 2))
    assert gap[:50].max() > 1 and gap[50:].max() == 0
    parts = torch.cat((cosines(0, 30), cosines(30, 60)), dim=1)
    assert (cosines(0, 60) - parts).abs().max() == 0


@pytest.mark.claim(
    "library-longest-prompt",
    "In transformers 5.23.0, a Llama with dynamic scaling rotates a prompt beyond the original length "
    "differently after a longer prompt, and a prompt below the original length as before.",
)
def test_dynamic_scaling_remembers_the_longest_prompt():
    transformers, llama = peer("transformers"), peer("transformers.models.llama.modeling_llama")
    scaling = {"rope_type": "dynamic", "rope_theta": 10_000.0, "factor": 2.0}
    config = transformers.LlamaConfig(head_dim=16, max_position_embeddings=4096, rope_parameters=scaling)
    rotary = llama.LlamaRotaryEmbedding(config)

    def cosines(tokens):
        return rotary(torch.zeros(1), torch.arange(tokens)[None])[0]

    short, before, _ = cosines(3000), cosines(5000), cosines(16_000)
    assert (cosines(5000) - before).abs().max() > 1
    assert cosines(3000).equal(short)


@pytest.mark.claim(
    "library-base-of-the-moment",
    "In transformers 5.23.0, a Llama with dynamic scaling gives different logits beyond its original "
    "length when it processes a text token by token than in one pass; a Llama with YaRN gives the same "
    "logits.",
)
def test_dynamic_scaling_does_not_go_with_a_cache():
    transformers = peer("transformers")

    def wrong(**scaling):
        torch.manual_seed(0)
        sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
        rope = {"rope_theta": 10_000.0, "factor": 4.0, **scaling}
        config = transformers.LlamaConfig(
            vocab_size=50, max_position_embeddings=16, initializer_range=0.3, rope_parameters=rope, **sizes
        )
        inner = transformers.LlamaForCausalLM(config).eval()

        def model(ids, mask, positions, cache):
            told = {"position_ids": positions, "past_key_values": cache, "use_cache": True}
            out = inner(ids, attention_mask=None if mask is None else mask.long(), **told)
            return out.logits, out.past_key_values

        return failing(check_model(model, 50, weights=list(inner.parameters())))

    assert "whole_as_steps" in wrong(rope_type="dynamic")
    assert not wrong(rope_type="yarn", original_max_position_embeddings=16)


@pytest.mark.claim(
    "library-two-rows",
    "In transformers 5.23.0, RoBERTa with max_position_embeddings 20 accepts 18 tokens; 19 raise an error.",
)
def test_roberta_takes_two_tokens_less_than_its_rows():
    transformers = peer("transformers")
    sizes = {"hidden_size": 16, "intermediate_size": 16, "vocab_size": 32, "num_attention_heads": 1}
    config = transformers.RobertaConfig(num_hidden_layers=1, max_position_embeddings=20, **sizes)
    model = transformers.RobertaModel(config)
    assert model(torch.full((1, 18), 5))[0].shape == (1, 18, 16)
    with pytest.raises((RuntimeError, IndexError), match=r"out of bounds|out of range"):
        model(torch.full((1, 19), 5))


@pytest.mark.claim(
    "library-exaone4-window",
    "In EXAONE 4 of transformers 5.23.0, a full-attention layer does not rotate if the configuration has a "
    "sliding_window, and rotates if it is None.",
)
def test_a_full_layer_of_exaone4_turns_if_there_is_no_window():
    transformers = peer("transformers")

    def kinds(window):
        sizes = {"vocab_size": 32, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 4}
        heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
        layers = ["sliding_attention" if window else "full_attention"] * 3 + ["full_attention"]
        config = transformers.Exaone4Config(sliding_window=window, layer_types=layers, **sizes, **heads)
        torch.manual_seed(0)
        model = transformers.Exaone4ForCausalLM(config).eval()
        return [layer.kind for layer in read_layers(model, lambda token: model(torch.full((1, 32), token)))]

    assert kinds(64) == ["turns"] * 3 + ["still"]
    assert kinds(None) == ["turns"] * 4
    with pytest.raises(ZeroDivisionError):
        transformers.Exaone4Config(sliding_window=None)


@pytest.mark.claim(
    "library-granite4-switch",
    "In transformers 5.23.0, the attention layers of a Granite 4 (`granitemoehybrid`) with a `rope_theta` "
    'rotate if its `position_embedding_type` is "rope", and do not rotate if it is absent.',
)
def test_granite4_rotates_only_if_its_file_says_so():
    transformers = peer("transformers")

    def kinds(**file):
        sizes = {"vocab_size": 32, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2}
        heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "shared_intermediate_size": 32}
        mamba = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1, "num_local_experts": 0}
        layers = {"layer_types": ["attention"] * 2, "rope_theta": 10_000_000.0}
        config = transformers.GraniteMoeHybridConfig.from_dict(sizes | heads | mamba | layers | file)
        torch.manual_seed(0)
        model = transformers.GraniteMoeHybridForCausalLM(config).eval()
        return [layer.kind for layer in read_layers(model, lambda token: model(torch.full((1, 32), token)))]

    assert kinds(position_embedding_type="rope") == ["turns"] * 2
    assert kinds() == ["still"] * 2


# Start and training


@pytest.mark.claim(
    "library-inv-freq-empty",
    "In transformers 5.23.0, a Llama that was built on meta, emptied by to_empty and loaded from a state "
    "dict has no valid inv_freq; after initialize_weights, all its parameters and buffers are restored.",
)
def test_a_llama_from_meta_has_no_frequencies_until_they_are_made():
    transformers = peer("transformers")
    sizes = {"hidden_size": 32, "intermediate_size": 32, "vocab_size": 32, "num_hidden_layers": 1}
    config = transformers.LlamaConfig(num_attention_heads=2, num_key_value_heads=2, **sizes)

    def build():
        return transformers.LlamaForCausalLM(config)

    found = failing(check_start(build))
    assert set(found) == {"started_on_meta"} and "rotary_emb.inv_freq" in found["started_on_meta"]
    assert not failing(check_start(build, initialize=transformers.PreTrainedModel.initialize_weights))


@pytest.mark.claim(
    "library-rounded-positions",
    "rotate_queries_or_keys of rotary-embedding-torch 0.9.1 rotates bfloat16 queries by rounded "
    "positions: at position 257 it is wrong in bfloat16 and right in float32.",
)
def test_rotary_embedding_torch_rounds_positions_with_its_queries():
    rotary = peer("rotary_embedding_torch").RotaryEmbedding(16)

    def rotate(x, positions):
        tokens = zip(x.unbind(2), positions.tolist(), strict=True)
        return torch.cat([rotary.rotate_queries_or_keys(t[:, :, None], offset=at) for t, at in tokens], 2)

    wrong = [finding for finding in check_rotation(rotate, 16) if finding.verdict == "fails"]
    assert [finding.check for finding in wrong] == ["precise_angles"]
    assert "in bfloat16" in wrong[0].question and "position 257" in wrong[0].where


@pytest.mark.claim(
    "library-three-axes",
    "_is_packed_sequence of transformers 5.23.0 mistakes positions with three axes for packed documents, but "
    "not the same positions with one axis.",
)
def test_three_axes_are_taken_for_packed_texts():
    flash = peer("transformers.modeling_flash_attention_utils")
    places = torch.arange(8)[None]
    axes = places.expand(3, 1, 8)
    assert flash._is_packed_sequence(axes, batch_size=1)
    assert not flash._is_packed_sequence(places, batch_size=1)
    (lengths, _), _ = flash.prepare_fa_kwargs_from_position_ids(axes)
    assert lengths.tolist() == [0, 8, 16, 24]


# Serving


@pytest.mark.claim(
    "library-window-and-one",
    "generate_sliding_window(4) of attn-gym 0.0.17 lets each token see 5 keys, including itself; "
    "generate_sliding_window(3) lets it see 4.",
)
def test_the_window_of_attn_gym_shows_one_key_more():
    masks = peer("attn_gym.masks.sliding_window")
    none = torch.tensor(0)

    def attention(window):
        def attend(q, k, v, here, there):
            shown = masks.generate_sliding_window(window)(none, none, here[:, None], there)
            return (q @ k.mT / DIM**0.5).masked_fill(~shown, -torch.inf).softmax(-1) @ v

        return attend

    def wrong(window):
        return failing(check_attention(attention(window), DIM, causal=True, window=4))

    assert "a window of 5 keys" in wrong(4)["hidden_keys"] and not wrong(3)


@pytest.mark.claim(
    "library-first-dtype",
    "rotary-embedding-torch 0.9.1 caches the angles of its first call: after a first call in bfloat16, it "
    "rotates float32 inputs wrongly from position 257 on; after one in float32, correctly.",
)
def test_rotary_embedding_torch_keeps_the_angles_of_its_first_dtype():
    library = peer("rotary_embedding_torch")

    def wrong(first):
        rotary = library.RotaryEmbedding(DIM)
        rotary.rotate_queries_or_keys(torch.ones(1, 1, 2048, DIM, dtype=first))

        def rotate(x, positions):
            tokens = zip(x.unbind(2), positions.tolist(), strict=True)
            return torch.cat([rotary.rotate_queries_or_keys(t[:, :, None], offset=at) for t, at in tokens], 2)

        found = check_rotation(rotate, DIM, length=2048)
        return [f for f in found if f.verdict == "fails" and f.question.endswith("in float32?")]

    assert "position 257" in wrong(torch.bfloat16)[0].where
    assert not wrong(torch.float32)


@pytest.mark.claim(
    "library-words-behind-a-film",
    "In Qwen2-VL of transformers 5.23.0, the text after a video of 20 frames of 2 by 2 patches continues at "
    "position 4, although the last frame is at 21.",
)
def test_words_behind_a_film_begin_before_its_last_frames():
    transformers, qwen = peer("transformers"), peer("transformers.models.qwen2_vl.modeling_qwen2_vl")

    class Positions:
        config = transformers.Qwen2VLConfig()
        get_rope_index = qwen.Qwen2VLModel.get_rope_index
        get_vision_position_ids = qwen.Qwen2VLModel.get_vision_position_ids

    def grids(parts, film):
        return torch.tensor([(t, 2 * y, 2 * x) for t, y, x in parts if (t > 1) == film])

    def place(parts):
        kinds = []
        for part in parts:
            text = isinstance(part, int)
            kinds += [0 if text else 1 + (part[0] > 1)] * (part if text else part[0] * part[1] * part[2])
        kinds = torch.tensor(kinds)[None]
        seen = [part for part in parts if not isinstance(part, int)]
        pictures, films = grids(seen, False), grids(seen, True)
        told = {"image_grid_thw": pictures, "video_grid_thw": films}
        return Positions().get_rope_index(torch.ones_like(kinds), kinds, **told)[0][:, 0]

    def fixed(parts):
        start, found = 0, []
        for part in parts:
            found.append(place([part]) + start)
            start = int(found[-1].max()) + 1
        return torch.cat(found, 1)

    assert failing(check_prompt(place)) and not failing(check_prompt(fixed))
    found = place([2, (20, 2, 2), 3])
    assert int(found[0, 2:82].max()) == 21 and found[0, 82:].tolist() == [4, 5, 6]


@pytest.mark.claim(
    "library-gates",
    "A decoder of x-transformers 2.31.10 with attn_data_dependent_alibi reports that it can cache keys "
    "and values, but its logits differ between decoding token by token with the cache and one pass.",
)
def test_data_dependent_alibi_of_x_transformers_forgets_with_a_cache():
    library = peer("x_transformers")
    torch.manual_seed(0)
    layers = library.Decoder(dim=32, depth=2, heads=4, attn_dim_head=16, attn_data_dependent_alibi=True)
    sizes = {"num_tokens": 50, "max_seq_len": 64, "use_abs_pos_emb": False}
    inner = library.TransformerWrapper(attn_layers=layers, **sizes).eval()
    assert inner.can_cache_kv

    def kept(ids, mask, positions, cache):
        keys, before = cache or (None, ids[:, :0])
        text = torch.cat((before, ids), 1)
        out, keys = inner(text, return_intermediates=True, cache=keys)
        return out[:, -ids.shape[1] :], (keys, text)

    def anew(ids, mask, positions, cache):
        text = torch.cat((ids[:, :0] if cache is None else cache, ids), 1)
        return inner(text)[:, -ids.shape[1] :], text

    def wrong(model):
        return failing(check_model(model, 50, weights=list(inner.parameters())))

    assert "whole_as_steps" in wrong(kept) and "whole_as_steps" not in wrong(anew)
