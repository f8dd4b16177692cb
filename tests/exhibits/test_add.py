"""What the page on a config.json shows without a script: it is what the file to copy says."""

import json
import tomllib
from importlib.metadata import version

from exhibits import add
from snippets import read_config


def told(lines, **config):
    """The lines, which have to be those of the file."""
    answer = read_config.format_report(read_config.read_config(json.dumps(config)))
    assert "\n".join(lines) == answer.rstrip("\n")
    return answer


def test_classes_and_the_limit_are_those_of_the_file(gives):
    values = gives("add.known")["values"]
    models = json.loads(read_config.MEASURED)["models"]
    assert values["version"] == version("transformers")
    assert values["classes"] == len(models) > values["rotating"] > 110
    assert read_config.read_config(" " * values["limit"])[1].text.startswith("Invalid JSON")
    assert read_config.read_config(" " * (values["limit"] + 1))[1].text.startswith(
        "A config.json must have at most"
    )


def test_every_setting_says_what_it_becomes(printed):
    head, _, *rows = printed("add.keys")
    settings = tomllib.loads(add.DIALECTS.read_text("utf-8"))["setting"]
    assert head.count("|") == 5 and len(rows) == len(settings) - 1
    for row, setting in zip(rows, settings, strict=False):
        assert row.startswith(f"| **{setting['name']}** |") and row.endswith(f"| {setting['becomes']} |")
        (cell,) = [cell["key"] for cell in setting["cells"] if cell["stack"] == "transformers 5"]
        assert cell in row


def test_answers_are_those_of_the_file(printed):
    assert "window=4096" in told(printed("add.gemma_3"), model_type="gemma3_text")
    assert "sink_softmax" in told(printed("add.gpt_oss"), model_type="gpt_oss")
    bare = "\n".join(printed("add.nemotron_3"))
    assert "no RoPE" in bare and "rope_theta" in bare and "apply_rope" not in bare
    text = "\n".join(printed("add.llama_3_1"))
    assert "    factor=8.0," in text and "original_length=8192," in text and "!" not in text


def test_a_misspelt_key_is_told_and_changes_the_base(printed):
    text = "\n".join(printed("add.a_misspelt_key"))
    for words in (
        "! rope_tetha is not read by the code of llama",
        "! beta_fats is not read by the code of llama",
        "! The original length is missing",
        "    # frequencies = rope_frequencies(128, base=10000.0)",
    ):
        assert words in text
    assert "! The base is a default" in text
