"""The census measures: a model whose code or numbers are changed gives another row."""

import torch
from transformers import LlamaConfig
from transformers.models.llama import modeling_llama

from experiments.census.measured import measured
from experiments.census.streams import is_sinusoids
from tests.rows import each_of


def tiny(**changed):
    return LlamaConfig(
        hidden_size=64, num_attention_heads=2, num_hidden_layers=4, intermediate_size=64, **changed
    )


def row(**changed):
    return measured(modeling_llama.LlamaForCausalLM, tiny(**changed))


def test_as_it_stands():
    facts = row()
    assert (facts["layout"], facts["base"], facts["share"], facts["bare"]) == (["half"], [1e4], [1.0], [])


@each_of("base", [500.0, 5e5])
def test_another_base(base):
    assert row(rope_parameters={"rope_type": "default", "rope_theta": base})["base"] == [base]


def test_another_share(monkeypatch):
    rotate = modeling_llama.apply_rotary_pos_emb

    def half_of_each_head(q, k, cos, sin, **_):
        parts = [x.chunk(2, -1) for x in (q, k)]
        turned = rotate(*(turns for turns, _ in parts), cos[..., ::2], sin[..., ::2])
        return [torch.cat([a, stays], -1) for a, (_, stays) in zip(turned, parts, strict=True)]

    monkeypatch.setattr(modeling_llama, "apply_rotary_pos_emb", half_of_each_head)
    assert row()["share"] == [0.5]


def test_another_layout(monkeypatch):
    rotate = modeling_llama.apply_rotary_pos_emb

    def neighbours(x):
        return x.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)

    def back(x):
        return x.unflatten(-1, (2, -1)).transpose(-1, -2).flatten(-2)

    def interleaved(q, k, cos, sin, **_):
        return [back(x) for x in rotate(neighbours(q), neighbours(k), cos, sin)]

    monkeypatch.setattr(modeling_llama, "apply_rotary_pos_emb", interleaved)
    assert row()["layout"] == ["interleaved"]


def test_one_layer_left_unturned(monkeypatch):
    rotate, calls = modeling_llama.apply_rotary_pos_emb, []

    def third_stays(q, k, cos, sin, **_):
        calls.append(q)
        return (q, k) if len(calls) % 4 == 3 else rotate(q, k, cos, sin)

    monkeypatch.setattr(modeling_llama, "apply_rotary_pos_emb", third_stays)
    monkeypatch.setattr(
        "experiments.census.measured.added", lambda *_: "no"
    )  # it runs the first layer alone, which would be counted
    assert row()["bare"] == [2]


def test_sinusoids_are_told_from_drawn_tables():
    angles = torch.arange(40.0)[:, None] * torch.logspace(0, -3, 8)
    assert is_sinusoids(torch.cat([angles.sin(), angles.cos()], -1))
    assert not is_sinusoids(torch.randn(40, 16))
    assert not is_sinusoids(torch.ones(40, 16))
