"""What the chapter on the whole Transformer says of its exhibits and of other people's code."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch

from tests.peers import peer


@pytest.mark.claim(
    "pictures-share-positions",
    "In Hugging Face Transformers' Qwen2-VL, text after three text tokens and the sixteen tokens of a "
    "square image continues at position seven: the image takes up as many positions as it has rows.",
)
def test_text_goes_on_after_the_rows_of_a_picture_and_not_after_its_tokens():
    theirs = peer("transformers.models.qwen2_vl.modeling_qwen2_vl").Qwen2VLModel
    merged = 2  # patches of a side that become one token
    model = SimpleNamespace(config=SimpleNamespace(vision_config=SimpleNamespace(spatial_merge_size=merged)))
    model.get_vision_position_ids = partial(theirs.get_vision_position_ids, model)
    for rows in (2, 4, 7):
        kinds = torch.tensor([[0] * 3 + [1] * rows**2 + [0] * 2])
        patches = torch.tensor([[1, rows * merged, rows * merged]])
        positions, _ = theirs.get_rope_index(model, torch.zeros_like(kinds), kinds, image_grid_thw=patches)
        assert (positions[..., :3] == torch.arange(3)).all()
        assert (positions[..., -2:] == torch.tensor([3 + rows, 4 + rows])).all()
