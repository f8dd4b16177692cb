"""The two teaching modules are trained as the encodings of language.py are."""

import torch

from experiments import language, teaching


def test_the_rings_reach_as_far_as_the_clip_of_the_others():
    table = teaching.near_and_far().scores
    at = torch.tensor([teaching.CLIP + 100])

    def score(distance):
        q, k = torch.ones(1, 1, 1, 16), torch.zeros(1, 1, 1, 16)
        return table(q, k, at[None], at[None] - distance)

    far = [score(distance) for distance in (teaching.CLIP + 1, teaching.CLIP + 50)]
    assert torch.equal(*far)
    assert not torch.equal(far[0], score(teaching.CLIP))


def test_the_gates_are_those_that_the_model_applies():
    torch.manual_seed(0)
    model = teaching.taught_decoder("gated sinusoids", 0)
    torch.nn.init.normal_(model.encoding.add.weight)
    ids, at = torch.arange(256)[None], torch.full((1, 256), 7)
    x = model.scale * model.tokens(ids)
    added = model.encoding.embed(x, at) - x
    share = added.norm(dim=-1) / model.encoding.add.encode(at).norm(dim=-1)
    assert torch.allclose(share[0], torch.tensor(teaching.gates(model)), atol=2e-4)


def test_a_small_run_gives_all_that_is_kept():
    for name in teaching.ENCODINGS:
        made = teaching.run(name, 0, "cpu", updates=11, count=1)
        assert len(made["loss_by_position"]) == language.EVAL_LENGTH // language.BIN
        assert ("gates" in made) == (name == "gated sinusoids")
