"""The command `positions`: what it prints, and its exit code."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import huggingface_hub
import pytest
from huggingface_hub.errors import HfHubHTTPError

from check_positions import checker, cli
from check_positions.census import census
from check_positions.config import MEASURED, describe_config
from check_positions.explanation import PAGES
from executable_prose.project import DOCS, ROOT
from guide.copies import CENSUS, packaged_census

LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
         "max_position_embeddings": 4096}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}
SMOL = {"model_type": "smollm3", "num_hidden_layers": 4}
UNFINISHED = {"model_type": "llama", "rope_scaling": {"rope_type": "linear"}}
NEMOTRON = {"model_type": "nemotron_h", "num_hidden_layers": 4}


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """Run the command in an empty folder, in which each of these files is written first."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def runs(*arguments, **files):
        for name, given in files.items():
            text = given if isinstance(given, str) else json.dumps(given)
            (tmp_path / f"{name}.json").write_text(text)
        code = cli.main(arguments)
        told = capsys.readouterr()
        return code, told.out + told.err

    return runs


@pytest.mark.parametrize(
    ("config", "code", "words"),
    [
        (LLAMA, 0,
         ["llama: RoPE in every layer", "All 2 layers", "all 16 channels", "half layout, with base 10,000.",
          "full rotation in 6.28 tokens, the slowest in 19,869.", "Within 4,096 positions, 6 of 8 pairs",
          "In the guide: guide/rope/"]),
        (LLAMA | {"rope_scaling": YARN}, 0,
         ["YaRN divides low frequencies by 4", "original length is 1,024 tokens", "multiplied by 1.139",
          "guide/long-context/"]),
        (SMOL, 0, ["RoPE in 3 of 4 layers", "3 of 4 layers (full_attention): 0 to 2", "No rotation (NoPE)",
                   "guide/no-position/"]),
        ({"model_type": "qwen3_next", "num_hidden_layers": 4}, 0,
         ["a recurrence carries the order of the tokens"]),
        ({"model_type": "gemma2", "num_hidden_layers": 2}, 0, ["at most 4,096 keys, itself included"]),
        ({"model_type": "llama4_text", "num_hidden_layers": 4}, 0, ["in its own chunk of 8,192 tokens"]),
        ({"model_type": "bloom"}, 0, ["bloom: ALiBi", "linear in the distance", "guide/bias/"]),
        ({"model_type": "bert"}, 0, ["bert: learned position embeddings", "A row of a table"]),
        ({"model_type": "t5"}, 0, ["T5 relative position bias", "share one bias"]),
        (NEMOTRON, 0, ["nemotron_h: no RoPE", "are not rotated"]),
        (UNFINISHED, 1, ["cannot be determined", "! linear requires factor"]),
        ({"model_type": "mpt", "attn_config": {"alibi": False}}, 1,
         ["a guess from the keys, because", "does not read all"]),
        ({"model_type": "new", "head_dim": 8, "rope_theta": 10.0}, 2,
         ["in an unknown layout", "was not measured"]),
    ],
)  # fmt: skip
def test_explain_says_what_each_kind_of_layer_does(run, config, code, words):
    got, told = run("explain", "a.json", a=config)
    assert [each for each in words if each not in told] == [], told
    assert got == code


def test_each_page_that_it_names_exists():
    assert [page for page in PAGES.values() if not (DOCS / f"{page.rstrip('/')}.md").is_file()] == []


@pytest.mark.parametrize("kind", json.loads(MEASURED)["models"])
def test_every_measured_class_is_described(kind):
    told = describe_config(json.dumps({"model_type": kind}))
    for layers in told.kinds:
        if layers.turned and not told.faults:
            frequencies, _ = checker.configured_frequencies(layers.settings, layers.head)
            assert 2 * len(frequencies) == layers.turned
    assert told.known and (told.faults or told.kinds or told.encoding != "rope")


def test_infinity_as_python_writes_it_is_read(run):
    code, told = run("config", "a.json", a=json.dumps(NEMOTRON | {"time_step_limit": [0.0, float("inf")]}))
    assert code == 0 and "nemotron_h: no RoPE" in told


@pytest.mark.parametrize(
    ("first", "second", "code", "words"),
    [
        (LLAMA, LLAMA, 0, ["Both configurations give the same rotation, windows and lengths."]),
        (LLAMA, LLAMA | {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}, 0,
         ["the same rotation"]),
        (LLAMA, LLAMA | {"rope_theta": 1e6}, 1,
         ["frequencies (layers 0 to 1): base 10,000 against base 1,000,000",
          "7 of 8 pairs of channels rotate at another", "by a factor of up to 56.23",
          "From a distance of 1 on, an angle (of pair 1) differs by 0.1"]),
        (LLAMA, LLAMA | {"rope_scaling": YARN}, 1,
         ["yarn with factor 4", "factor of cosines and sines", "1.296 times as large"]),
        (LLAMA, LLAMA | {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, 1,
         ["frequencies of long texts", "not texts beyond the original length"]),
        (LLAMA, LLAMA | {"max_position_embeddings": 8192}, 1, ["named positions: 4,096 against 8,192"]),
        (LLAMA, LLAMA | {"num_attention_heads": 8}, 1, ["16 of 16 channels against 8 of 8 channels"]),
        (LLAMA, LLAMA | {"num_hidden_layers": 3}, 1, ["number of layers: 2 against 3"]),
        (LLAMA, {"model_type": "gptj", "n_embd": 64, "n_head": 4, "n_layer": 2, "rotary_dim": 16}, 1,
         ["layout: half against interleaved", "Permute the weights of queries"]),
        (LLAMA, {"model_type": "bloom"}, 1, ["encoding: rope against alibi"]),
        ({"model_type": "gemma2", "num_hidden_layers": 2},
         {"model_type": "gemma2", "num_hidden_layers": 2, "sliding_window": 512}, 1,
         ["window (layers 0): 4,096 keys against 512 keys"]),
        (LLAMA, UNFINISHED, 2, ["each configuration must be complete; llama: linear requires factor"]),
        (LLAMA, {"model_type": "new", "head_dim": 16, "num_hidden_layers": 2, "rope_theta": 1e4}, 1,
         ['! "new" is a guess from the keys', "layout: half against unknown", "measures the layout of"]),
    ],
)  # fmt: skip
def test_compare_says_what_differs_and_what_it_does_to_numbers(run, first, second, code, words):
    got, told = run("compare", "a.json", "b.json", a=first, b=second)
    assert [each for each in words if each not in told] == [], told
    assert got == code


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a small model of transformers and its weights."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("a model")
    config = transformers.LlamaConfig(**LLAMA | {"vocab_size": 300, "intermediate_size": 64})
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize(("base", "code", "verdict"), [(1e4, 0, "passes"), (1e6, 1, "fails")])
def test_compare_measures_a_model_with_weights(run, model, base, code, verdict):
    got, told = run("compare", "a.json", str(model), a=LLAMA | {"rope_theta": base})
    assert f"{verdict}: layers_as_configured" in told
    assert got == code


def test_check_finds_nothing_in_a_right_model(run, model):
    code, told = run("check", str(model), "--json")
    findings = json.loads(told)
    assert code == 0 and {"passes"} <= {each["verdict"] for each in findings}
    assert "layers_as_configured" in {each["check"] for each in findings}


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("qwen2", 0, ["qwen2 (Qwen2, Qwen2.5", "rotates whole heads"]),
        ("llama 3.1", 0, ["llama (", "the default of the class"]),
        ("Falcon-H1", 0, ["falcon_h1"]),
        ("lama", 0, ["llama", "llama4_text"]),
        ("qwen9", 2, ["got 'qwen9'; the nearest names are Q"]),
        ("", 2, ["NAME must be a model of the census"]),
    ],
)
def test_census_finds_models_by_their_names(run, name, code, words):
    got, told = run("census", name)
    assert [each for each in words if each not in told] == [], told
    assert got == code


def test_the_package_carries_the_census_of_the_guide():
    assert (ROOT / CENSUS).read_text("utf-8") == packaged_census(), "`make dates` writes it"
    assert len(census()["models"]) > 500


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nonesuch.json", "nonesuch.json does not exist; expected a config.json, a folder with one"),
        ("owner/model", "owner/model does not exist here, and its config.json cannot be downloaded: "),
        (".", "must be a folder with a config.json; it has big.json, model.safetensors, weights.json"),
        ("big.json", "at most 1000000 characters"),
        ("model.safetensors", "must be text in UTF-8; is it a config.json?"),
        ("weights.json", "must have at most 4000000 bytes, got 5000000: is it a config.json?"),
        ("/dev/null", "/dev/null must be a regular file"),
    ],
)
@pytest.mark.parametrize("command", [["config"], ["explain"], ["compare", "."]])
def test_what_cannot_be_read_is_one_sentence(run, tmp_path, command, source, words):
    (tmp_path / "big.json").write_text(json.dumps({"a": 2_000_000 * "x"}))
    (tmp_path / "weights.json").write_bytes(bytes(5_000_000))
    (tmp_path / "model.safetensors").write_bytes(b"\xff\xfe\x00\x80")
    if command == ["compare", "."]:
        command = ["compare", source]
    code, told = run(*command, source)
    assert code == 2 and words in told and told.count("\n") == 1 and told.startswith("positions: ")


@pytest.mark.parametrize(
    ("error", "cached", "code", "words"),
    [
        (OSError("no network"), True, 0, "rope_frequencies"),
        (OSError("no network"), False, 2, "cannot be downloaded: no network"),
        (HfHubHTTPError("not found", response=MagicMock()), True, 2, "cannot be downloaded: not found"),
    ],
)
def test_a_cached_configuration_is_read_only_without_a_network(run, monkeypatch, error, cached, code, words):
    Path("cached.json").write_text(json.dumps(LLAMA))
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", MagicMock(side_effect=error))
    found = "cached.json" if cached else None
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda source, file: found)
    got, told = run("config", "owner/model")
    assert got == code and words in told


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model_type": "llama", "rope_scaling": "yarn"}, "a config.json or a folder with one"),
        ({"model_type": "nonesuch"}, "nonesuch"),
        ({"model_type": "mine", "auto_map": {"AutoConfig": "code.Config"}}, "its own repository (auto_map)"),
    ],
)
def test_what_cannot_be_checked_is_one_message_and_runs_no_code(run, tmp_path, config, words):
    (tmp_path / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w'); Config = None")
    code, told = run("check", ".", config=config)
    assert code == 2 and words in told and told.startswith("positions: ")
    assert "Traceback" not in told and not (tmp_path / "ran").exists()


def _process(*arguments):
    command = [sys.executable, "-c", "import sys; from check_positions.cli import main; sys.exit(main())"]
    paths = os.pathsep.join(sys.path)
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False,
                          env=os.environ | {"PYTHONPATH": paths})  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (["--seconds", "0.3"], "stopped after 0.3 seconds"),
        (["--memory", "0.05"], "more than 0.05; allow more with"),
    ],
)
def test_a_limit_ends_it(model, limit, words):
    done = _process("check", str(model), *limit)
    assert done.returncode == 2 and words in done.stderr and done.stdout == ""


def test_the_help_has_examples_and_the_exit_codes():
    done = _process("--help")
    commands = re.findall(r"^  positions (\w+)", done.stdout, re.M)
    assert done.returncode == 0 and commands == ["check", "config", "explain", "compare", "census"]
    assert "0 nothing is wrong   1 something was found   2 it could not be checked" in done.stdout


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_is_for_terminals_that_want_it(monkeypatch, no_color, coloured):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", no_color)
    assert ("\033[31mfails" in cli._coloured("fails: a check")) == coloured
