"""The files of snippets/in_a_model/ put a snippet into a model that many know: it gives what it gave before.

Reference pages show them. Where no checkpoint has the method, the model is to give what our decoder gives.
"""

import importlib
from unittest.mock import Mock

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from snippets.block import Decoder, Encoding
from snippets.cope import CopeScores
from snippets.mrope import Grid, mrope_positions
from snippets.sandwich import sandwich_bias
from tests.peers import peer
from tests.peers.models import Learned, gpt2

WORDS, DIM, HEADS, TOKENS = 50, 32, 4, 12
IDS = torch.randint(WORDS, (2, TOKENS), generator=torch.Generator().manual_seed(0))
PADDED = torch.tensor([[0] * 5 + [1] * 7, [1] * TOKENS])
NEW = [IDS[:, :9], IDS[:, 9:10], IDS[:, 10:]]
SIZES = {"vocab_size": WORDS, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
BERT = SIZES | {"hidden_size": DIM, "num_attention_heads": HEADS, "num_hidden_layers": 2}
BERT |= {"intermediate_size": 48}
LLAMA = BERT | {"num_key_value_heads": 2, "max_position_embeddings": 64}
GPT2 = SIZES | {"n_positions": 64, "n_embd": DIM, "n_layer": 2, "n_head": HEADS}
T5 = SIZES | {"d_model": DIM, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": HEADS}
INKLING = LLAMA | {"num_hidden_layers": 6, "head_dim": 8, "moe_intermediate_size": 16, "n_routed_experts": 8}
INKLING |= {"swa_num_attention_heads": 2, "swa_num_key_value_heads": 1, "swa_head_dim": 16}
INKLING |= {"sliding_window_size": 3, "d_rel": 5, "rel_extent": 4, "log_scaling_n_floor": 6}
GPT_OSS = LLAMA | {"head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 3}
XLNET = SIZES | {"d_model": DIM, "d_inner": 48, "n_layer": 2, "n_head": HEADS, "attn_type": "uni"}
MARIAN = SIZES | {"d_model": DIM, "encoder_layers": 2, "decoder_layers": 2}
LLAMA_2 = {"rope_type": "default", "rope_theta": 5e5}
LLAMA_3 = {
    "rope_type": "llama3",
    "rope_theta": 5e5,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
YARN = {"rope_type": "yarn", "rope_theta": 5e5, "factor": 4.0, "original_max_position_embeddings": 16}
YARNS = [YARN, YARN | {"beta_fast": 8.0, "beta_slow": 0.5, "truncate": False, "attention_factor": 1.3}]
P_ROPE = {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.5}
P_ROPES = [P_ROPE, P_ROPE | {"factor": 8.0}]


@pytest.fixture
def in_a_model(request, monkeypatch):
    """A file of snippets/in_a_model/, whose snippets say whether they were asked."""

    def load(name):
        module = importlib.import_module(f"snippets.in_a_model.{name}")
        for key, each in list(vars(module).items()):
            if getattr(each, "__module__", "").startswith("snippets."):
                monkeypatch.setattr(module, key, Mock(wraps=each))
                request.addfinalizer(getattr(module, key).assert_called)
        return module

    return load


def made(name, **sizes):
    """A small random model of transformers."""
    model = getattr(peer("transformers"), name)
    torch.manual_seed(0)
    return model(model.config_class(**sizes)).eval()


def in_parts(model):
    """The scores of words that come one part after the other, by a cache."""
    past, parts = None, []
    for ids in NEW:
        given = model(ids, past_key_values=past, use_cache=True)
        past, parts = given.past_key_values, [*parts, given.logits]
    return torch.cat(parts, 1)


@torch.no_grad()
def given(model):
    """What a model says of whole rows, of rows with padding on the left, and word by word."""
    positions = (PADDED.cumsum(-1) - 1).clamp(min=0)
    padded = model(IDS, attention_mask=PADDED, position_ids=positions).logits[PADDED.bool()]
    return model(IDS).logits, padded, in_parts(model)


@pytest.mark.parametrize(
    ("name", "ropes"), [("rope", [LLAMA_2]), ("rope_scaling", [LLAMA_3, *YARNS, *P_ROPES])]
)
def test_llama_gives_what_it_gave(name, ropes, in_a_model, monkeypatch):
    modeling = peer("transformers.models.llama.modeling_llama")
    monkeypatch.setattr(modeling, "apply_rotary_pos_emb", modeling.apply_rotary_pos_emb)
    put = in_a_model(name)
    for rope in ropes:
        model = made("LlamaForCausalLM", **LLAMA, rope_parameters=rope)
        before, rotary = given(model), model.model.rotary_emb
        if name == "rope_scaling":
            rotary.inv_freq.zero_()
            rotary.attention_scaling = {"yarn": 0.0}.get(rope["rope_type"], 1.0)
        put.patch_model(model)
        assert_close(given(model), before)


def test_llama_attends_as_it_did(in_a_model):
    model = made("LlamaForCausalLM", **LLAMA)
    before = given(model)
    in_a_model("attention").patch_model(model)
    assert_close(given(model), before)
    weights = model(IDS, output_attentions=True).attentions[0]
    assert_close(weights.sum(-1), torch.ones(2, HEADS, TOKENS))


@torch.no_grad()
def test_packed_documents_give_in_llama_what_they_give_alone(in_a_model):
    model = made("LlamaForCausalLM", **LLAMA)
    documents = torch.tensor([[0] * 5 + [1] * 7])
    packed = model(IDS[:1], **in_a_model("decoding").packed(documents)).logits
    alone = torch.cat([model(IDS[:1, :5]).logits, model(IDS[:1, 5:]).logits], 1)
    assert_close(packed, alone)


def gpt():
    return made("GPT2LMHeadModel", **GPT2)


def test_gpt2_gives_what_it_gave_and_refuses_a_position_without_a_row(in_a_model):
    model = gpt()
    before = given(model)
    in_a_model("learned").patch_model(model)
    assert_close(given(model), before, rtol=0, atol=0)
    with pytest.raises(ValueError, match="0 to 63, got 60 to 71"):
        model(IDS, position_ids=torch.arange(TOKENS)[None] + 60)


@torch.no_grad()
def test_gpt2_gives_of_embedded_words_what_it_gave_of_words(in_a_model):
    model = gpt()
    expected = model(IDS).logits
    embed = in_a_model("embed").patch_model(model)
    assert_close(model(inputs_embeds=embed(IDS, torch.arange(TOKENS))).logits, expected)


def test_marian_gives_what_it_gave(in_a_model):
    heads = {"encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS}
    model = made("MarianMTModel", **MARIAN, **heads, decoder_start_token_id=0)
    before = seq2seq(model)
    for stack in (model.model.encoder, model.model.decoder):
        stack.embed_positions.weight.data.zero_()
    in_a_model("sinusoidal").patch_model(model)
    assert_close(seq2seq(model), before)


def test_t5_gives_what_it_gave(in_a_model):
    model = made("T5ForConditionalGeneration", **T5, decoder_start_token_id=0)
    before = seq2seq(model)
    in_a_model("t5_bias").patch_model(model)
    assert_close(seq2seq(model), before)


@torch.no_grad()
def seq2seq(model):
    texts = IDS.repeat(1, 15)  # longer than T5 tells apart
    whole = model(texts, decoder_input_ids=IDS).logits
    past, parts = None, []
    for ids in NEW:
        part = model(texts, decoder_input_ids=ids, past_key_values=past, use_cache=True)
        past, parts = part.past_key_values, [*parts, part.logits]
    return whole, torch.cat(parts, 1)


def bloom_gives(model):
    padded = model(IDS, attention_mask=PADDED).logits[PADDED.bool()]
    return model(IDS).logits, padded, in_parts(model)


@pytest.mark.parametrize("heads", [4, 3])
@torch.no_grad()
def test_bloom_gives_what_it_gave(heads, in_a_model):
    model = made("BloomForCausalLM", **SIZES, hidden_size=12 * heads, n_layer=2, n_head=heads)
    before = model(IDS).logits, model(IDS, attention_mask=PADDED).logits[PADDED.bool()], in_parts(model)
    in_a_model("alibi").patch_model(model)
    after = model(IDS).logits, model(IDS, attention_mask=PADDED).logits[PADDED.bool()], in_parts(model)
    assert_close(after, before)


@torch.no_grad()
def test_deberta_gives_what_it_gave(in_a_model):
    terms = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "share_att_key": True}
    distances = {"position_buckets": 8, "max_position_embeddings": 16, "norm_rel_ebd": "layer_norm"}
    model = made("DebertaV2ForMaskedLM", **BERT, **terms, **distances)
    before = model(IDS).logits
    in_a_model("deberta").patch_model(model)
    assert_close(model(IDS).logits, before)


@torch.no_grad()
def test_inkling_2_gives_what_it_gave(in_a_model):
    model = made("Inkling2ForCausalLM", **INKLING, unpadded_vocab_size=WORDS, rel_l2_clip_threshold=2.0)
    for layer in model.model.layers:
        nn.init.normal_(layer.self_attn.rel_logits_proj.proj)
        nn.init.normal_(layer.self_attn.r_proj.weight, std=0.5)  # so that some states are clipped
    before = given(model)
    in_a_model("relative_logits").patch_model(model)
    assert_close(given(model), before)
    model.model.layers[0].self_attn.rel_logits_proj.proj.zero_()
    assert (model(IDS).logits - before[0]).abs().max() > 1e-3  # it is heard


@torch.no_grad()
def test_gpt_oss_gives_what_it_gave(in_a_model):
    model = made("GptOssForCausalLM", **GPT_OSS, rope_parameters=LLAMA_2)
    for layer in model.model.layers:
        nn.init.normal_(layer.self_attn.sinks)
    before = given(model)
    in_a_model("sinks").patch_model(model)
    assert_close(given(model), before)
    model.model.layers[0].self_attn.sinks.fill_(5.0)
    assert (model(IDS).logits - before[0]).abs().max() > 1e-4  # it is heard


@torch.no_grad()
def test_ministral_3_gives_what_it_gave(in_a_model, monkeypatch):
    modeling = peer("transformers.models.ministral3.modeling_ministral3")
    monkeypatch.setattr(modeling, "get_llama_4_attn_scale", modeling.get_llama_4_attn_scale)
    rope = LLAMA_2 | {"llama_4_scaling_beta": 2.0, "original_max_position_embeddings": 4}
    model = made("Ministral3ForCausalLM", **LLAMA, rope_parameters=rope)
    for layer in model.model.layers:
        nn.init.normal_(layer.self_attn.q_proj.weight)  # so that scores differ
    before = given(model)
    in_a_model("temperature").patch_model(model)
    assert_close(given(model), before)
    model.config.rope_parameters["llama_4_scaling_beta"] = 0.0
    assert (model(IDS).logits - before[0]).abs().max() > 1e-4  # it is heard


@torch.no_grad()
def test_wav2vec2_bert_gives_what_it_gave(in_a_model, monkeypatch):
    modeling = peer("transformers.models.wav2vec2_bert.modeling_wav2vec2_bert")
    name = "_apply_relative_key_position_encoding"
    monkeypatch.setattr(modeling, name, getattr(modeling, name))
    clips = {"left_max_position_embeddings": 6, "right_max_position_embeddings": 2}
    widths = {"feature_projection_input_dim": 10, "output_hidden_size": DIM}
    model = made("Wav2Vec2BertModel", **BERT, **clips, **widths, position_embeddings_type="relative_key")
    sound = torch.randn(2, 20, 10, generator=torch.Generator().manual_seed(1))
    before = model(sound).last_hidden_state
    in_a_model("shaw").patch_model(model)
    assert_close(model(sound).last_hidden_state, before)


@torch.no_grad()
def test_xlnet_gives_what_it_gave(in_a_model):
    model = made("XLNetLMHeadModel", **XLNET)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    before = model(IDS).logits
    in_a_model("transformer_xl").patch_model(model)
    assert_close(model(IDS).logits, before)


@torch.no_grad()
def test_x_transformers_gives_what_it_gave(in_a_model, monkeypatch):
    library = peer("x_transformers.x_transformers")
    monkeypatch.setattr(library, "apply_rotary_pos_emb", library.apply_rotary_pos_emb)
    torch.manual_seed(0)
    layers = library.Decoder(dim=64, depth=2, heads=2, rotary_xpos=True, rotary_emb_dim=64)
    model = library.TransformerWrapper(num_tokens=WORDS, max_seq_len=64, attn_layers=layers).eval()
    before = model(IDS)
    in_a_model("xpos").patch_model(model)
    assert_close(model(IDS), before)


@torch.no_grad()
def test_vit_takes_what_fourier_features_give_for_its_table(in_a_model):
    sizes, image = BERT | {"image_size": 12, "patch_size": 4}, torch.randn(2, 3, 12, 12)
    model, plain = (made("ViTForImageClassification", **sizes) for _ in range(2))
    in_a_model("fourier").patch_model(model, features=16, hidden=8, gamma=2.0)
    places = torch.cartesian_prod(torch.arange(3), torch.arange(3))
    plain.vit.embeddings.position_embeddings[0, 1:] = model.vit.embeddings.fourier(places)
    assert_close(model(image).logits, plain(image).logits)


@torch.no_grad()
def test_vit_gives_of_pictures_of_any_size_what_it_gave(in_a_model):
    model = made("ViTForImageClassification", **BERT, image_size=12, patch_size=4)
    nn.init.normal_(model.vit.embeddings.position_embeddings)
    pictures = [torch.randn(2, 3, *size) for size in ((12, 12), (20, 20), (8, 28))]
    before = [model(picture, interpolate_pos_encoding=True).logits for picture in pictures]
    in_a_model("vit_table").patch_model(model, "bicubic")
    after = [model(picture, interpolate_pos_encoding=True).logits for picture in pictures]
    assert_close(after, before)
    model.vit.embeddings.position_embeddings[0, 1:].zero_()
    assert (
        model(pictures[1], interpolate_pos_encoding=True).logits - before[1]
    ).abs().max() > 1e-3  # it is heard


@torch.no_grad()
def test_swin_gives_what_it_gave(in_a_model):
    sizes = {"image_size": 48, "patch_size": 2, "embed_dim": 16, "window_size": 3}
    model = made("SwinForImageClassification", **sizes, depths=[2, 2], num_heads=[2, 4])
    for name, parameter in model.named_parameters():
        if "relative_position_bias_table" in name:
            nn.init.normal_(parameter)
    picture = torch.randn(2, 3, 48, 48, generator=torch.Generator().manual_seed(1))
    before = model(picture).logits
    in_a_model("swin_bias").patch_model(model)
    assert_close(model(picture).logits, before)
    for stage in model.swin.encoder.layers:
        stage.blocks[0].attention.relative_position_bias.relative_position_bias_table.zero_()
    assert (model(picture).logits - before).abs().max() > 1e-4  # it is heard


@torch.no_grad()
def test_dinov3_gives_what_it_gave(in_a_model):
    sizes = {"image_size": 16, "patch_size": 4, "hidden_size": 32, "intermediate_size": 48}
    model = made("DINOv3ViTModel", **sizes, num_hidden_layers=2, num_attention_heads=2)
    pictures = [torch.randn(2, 3, *size) for size in ((16, 16), (8, 28), (4, 4))]
    before = [model(picture).last_hidden_state for picture in pictures]
    in_a_model("axial_rope").patch_model(model)
    after = [model(picture).last_hidden_state for picture in pictures]
    assert_close(after, before)
    model.rope_embeddings.forward = lambda picture: (torch.ones(28 // 2, 16), torch.zeros(28 // 2, 16))
    assert (model(pictures[1]).last_hidden_state - before[1]).abs().max() > 1e-3  # it is heard


QWEN = {"vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
QWEN |= {"num_attention_heads": 2, "num_key_value_heads": 1}


@pytest.mark.parametrize(
    ("name", "layout", "sections"), [("Qwen2VL", "chunks", [2, 3, 3]), ("Qwen3VL", "interleaved", [4, 2, 2])]
)
@torch.no_grad()
def test_qwen_vl_gives_what_it_gave(name, layout, sections, in_a_model):
    library = peer("transformers")
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": sections}
    text = QWEN | {"rope_parameters": rope} | ({"head_dim": 16} if name == "Qwen3VL" else {})
    vision = {"depth": 1, "num_heads": 2, "hidden_size": 32, "out_hidden_size": 32}
    config = getattr(library, f"{name}Config")(text_config=text, vision_config=vision)
    torch.manual_seed(0)
    model = getattr(library, f"{name}ForConditionalGeneration")(config).eval()
    for layer in model.model.language_model.layers:
        nn.init.normal_(layer.self_attn.q_proj.weight)  # so that scores differ
    prompt = mrope_positions([2, Grid(1, 2, 2), TOKENS - 6], spatial_merge_size=1, text_start="largest")
    ids = prompt.T[:, None].expand(3, len(IDS), TOKENS)
    asked = (lambda: model(IDS).logits, lambda: model(IDS, position_ids=ids).logits)
    before = [each() for each in asked]
    in_a_model("mrope").patch_model(model, layout)
    assert_close([each() for each in asked], before)
    swapped = model(IDS, position_ids=ids[[0, 2, 1]]).logits
    assert (swapped - before[1]).abs().max() > 1e-4  # it is heard


def as_decoder(encoding):
    """A decoder of ours with an encoding, and GPT-2 with the same weights but without it."""
    torch.manual_seed(0)
    plain = Decoder(Learned(TOKENS, DIM), WORDS, DIM, HEADS, layers=2)
    ours = Decoder(encoding, WORDS, DIM, HEADS, layers=2)
    ours.load_state_dict(plain.state_dict(), strict=False)
    return ours, gpt2(plain, HEADS)


def agree(ours, logits):
    positions = torch.arange(TOKENS)[None]
    expected, _ = ours(IDS, positions, torch.ones_like(positions))
    assert_close(logits, expected)


@pytest.mark.parametrize("name", ["kerple", "fire", "clipped_bias"])
@torch.no_grad()
def test_gpt2_with_a_learned_bias_is_our_decoder_with_it(name, in_a_model):
    encoding = Encoding()
    ours, model = as_decoder(encoding)
    logits = in_a_model(name).patch_model(model, *[3] * (name == "clipped_bias"))
    for parameter in model.bias.parameters():
        parameter.uniform_(0.1, 0.9)
    encoding.bias = lambda queries, keys: model.bias(queries, keys)
    agree(ours, logits(IDS))


@torch.no_grad()
def test_gpt2_with_sandwich_is_our_decoder_with_it(in_a_model):
    encoding = Encoding()
    encoding.bias = lambda queries, keys: sandwich_bias(queries, keys, HEADS)
    ours, model = as_decoder(encoding)
    agree(ours, in_a_model("sandwich").patch_model(model)(IDS))


@torch.no_grad()
def test_gpt2_with_a_gate_is_our_decoder_with_it(in_a_model):
    encoding = Encoding()
    ours, model = as_decoder(encoding)
    embed = in_a_model("gated_encoding").patch_model(model)
    model.gate.weight.normal_()
    encoding.embed = lambda x, positions: model.gate(x, positions)
    agree(ours, model(inputs_embeds=embed(IDS, torch.arange(TOKENS))).logits)


@torch.no_grad()
def test_gpt2_with_cope_is_our_decoder_with_it(in_a_model):
    encoding = Encoding()
    ours, model = as_decoder(encoding)
    in_a_model("cope").patch_model(model, rows=5)
    learned = CopeScores(DIM // HEADS, 5)
    learned.table.normal_()
    for block in model.transformer.h:
        block.attn.cope = learned
    encoding.score = lambda q, k, queries, keys: learned(q, k)
    agree(ours, model(IDS).logits)


@torch.no_grad()
def test_gpt2_with_local_and_global_rows_is_our_decoder_with_them(in_a_model):
    encoding = Encoding()
    ours, model = as_decoder(encoding)
    in_a_model("local_global").patch_model(model, window=2, width=3, far_buckets=2)
    tables = model.transformer.h[0].attn.tables
    for table in tables.parameters():
        table.normal_()
    encoding.score = lambda *given: tables(*given)
    agree(ours, model(IDS).logits)
    assert_close(in_parts(model), model(IDS).logits)
