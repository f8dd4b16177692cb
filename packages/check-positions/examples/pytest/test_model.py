"""The rotation is right, and it is that of the released config.json."""

import json
from pathlib import Path

import pytest
from model import rotate

from check_positions import check_rotation

CONFIG = json.loads(Path(__file__).with_name("config.json").read_text())


@pytest.mark.positions("config.json")
def test_rotation_matches_the_configuration(assert_positions):
    dim = CONFIG["hidden_size"] // CONFIG["num_attention_heads"]
    assert_positions(check_rotation(rotate, dim, settings=CONFIG["rope_parameters"], layout="half"))
