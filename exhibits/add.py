"""Tables and answers of the page for a config.json, without a script."""

import json
import re
import tomllib
from pathlib import Path

from snippets import read_config

DIALECTS = Path(__file__).parents[1] / "docs/dialects.toml"
MEASURED = json.loads(read_config.MEASURED)
MODELS = MEASURED["models"]
READ = "transformers 4", "transformers 5"  # the columns with keys


def _row(*cells):
    print("|", " | ".join(cells), "|")


def _answer(**config):
    parts = read_config.read_config(json.dumps(config))
    print(read_config.format_report(parts), end="")


def known():
    """Return counts of model types, the version of transformers in which
    they were measured, and the limit on the length of a file.
    """
    rotating = [kind for kind, row in MODELS.items() if "layout" in row]
    return {
        "classes": len(MODELS),
        "rotating": len(rotating),
        "measured": sum(map(len, MEASURED["rotations"].values())),
        "limit": read_config.LIMIT,
        "version": re.search(r"transformers ([\d.]*\d)", read_config.TABLE)[
            1
        ],
    }


def keys():
    settings = tomllib.loads(DIALECTS.read_text("utf-8"))["setting"]
    _row("Setting", *READ, "In the printed calls")
    _row(*["---"] * 4)
    for setting in settings:
        cells = {each["stack"]: each["key"] for each in setting["cells"]}
        if "becomes" in setting:
            keys = (cells.get(stack, "none") for stack in READ)
            _row(f"**{setting['name']}**", *keys, setting["becomes"])


def llama_3_1():
    cases = tomllib.loads(DIALECTS.read_text("utf-8"))["case"]
    name = "Llama 3.1, as released for transformers 4"
    (case,) = [case for case in cases if case["name"] == name]
    _answer(
        model_type="llama",
        hidden_size=4096,
        num_attention_heads=32,
        num_hidden_layers=32,
        **json.loads(case["config"]),
    )


def gemma_3():
    _answer(model_type="gemma3_text")


def gpt_oss():
    _answer(model_type="gpt_oss")


def nemotron_3():
    _answer(
        model_type="nemotron_h",
        head_dim=128,
        hybrid_override_pattern="MEMEM*EMEMEM*E",
        max_position_embeddings=262144,
        partial_rotary_factor=1.0,
        rope_theta=10000,
    )


def a_misspelt_key():
    _answer(
        model_type="llama",
        head_dim=128,
        num_hidden_layers=32,
        rope_tetha=500000.0,
        rope_scaling={"rope_type": "yarn", "factor": 4.0, "beta_fats": 8},
    )
