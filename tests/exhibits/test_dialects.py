"""What the page on dialects says of stacks: the installed one is run anew, the others are what was kept."""

import importlib.util
import json
import re
from pathlib import Path

import pytest
import torch

from experiments import dialect_outcomes as outcomes
from experiments import dialects as tool
from tests.exhibits.common import speeds
from tests.peers import peer
from tests.rows import each_of

DATA, RESULTS = outcomes.DATA, outcomes.results()
NAMES = [stack["name"] for stack in DATA["stack"]]
CASES = {case["name"]: case for case in DATA["case"]}


def of(stack, case):
    return RESULTS[stack.replace(" ", "-")][case]


def came(stack, case):
    return outcomes.outcome(of(stack, case))


def version_5(**config):
    """What the installed transformers makes of settings, angles and stretch."""
    return tool.outcome(tool.by_transformers, {"config": json.dumps(tool.BASE | config)})


@pytest.fixture(scope="module")
def library():
    """The folder of the installed transformers."""
    spec = importlib.util.find_spec("transformers")
    assert spec is not None, "transformers is not installed, and a row of this table is about its code"
    return Path(spec.origin).parent


@pytest.mark.peer
@each_of("case", tool.cases_of("transformers-5"), ids=lambda case: case["name"])
def test_the_installed_version_does_what_was_kept(case):
    peer("transformers").utils.logging.set_verbosity_warning()  # a test of the census may have silenced it
    kept, now = of("transformers 5", case["name"]), tool.outcome(tool.by_transformers, case)
    assert now.get("refuses") == kept.get("refuses")
    assert now["warns"] == kept["warns"]
    if "angles" in kept:
        assert now["angles"] == pytest.approx(kept["angles"], rel=1e-3)
        assert now["stretch"] == pytest.approx(kept["stretch"], abs=1e-3)


def test_version_5_is_the_one_that_is_installed():
    (stack,) = [stack for stack in DATA["stack"] if stack["name"] == "transformers 5"]
    assert stack["version"] == peer("transformers").__version__


def test_every_case_was_given_to_every_stack_and_has_a_name():
    for stack in outcomes.STACKS:
        assert list(RESULTS[stack.replace(" ", "-")]) == sorted(CASES)
        assert "other" not in {came(stack, case) for case in CASES}
    for case in DATA["own"]:
        assert came(case["stack"], case["name"]) == case.get("becomes", case["means"])
        assert case["means"] in outcomes.meanings() and case.get("becomes") != case["means"]
    assert RESULTS.keys() == {name.replace(" ", "-") for name in NAMES if name != "Ollama"}
    (said,) = [stack["reads"] for stack in DATA["stack"] if stack["name"] == "Ollama"]
    assert said.endswith("not run")


def test_names_of_meanings_are_apart():
    known = outcomes.meanings()
    for one, (angles, attention) in known.items():
        found = {"angles": angles.tolist(), "stretch": attention}
        assert [name for name in known if outcomes.is_equal(found, name)] == [one]
    assert {case["means"] for case in DATA["case"]} <= known.keys()


def test_a_cell_names_its_stack_its_key_and_its_file():
    parts = {"frequencies", "channels", "layers", "unknown"}
    for setting in DATA["setting"]:
        assert setting["part"] in parts
        named = [each["stack"] for each in setting["cells"]]
        assert named == [name for name in NAMES if name in named], setting["name"]
        for each in setting["cells"]:
            assert each.keys() == {"stack", "key", "absent", "file"}
            assert "|" not in each["key"] + each["absent"]


def test_what_is_said_of_the_installed_version_stands_in_its_files(library):
    for setting in DATA["setting"]:
        (each,) = [each for each in setting["cells"] if each["stack"] == "transformers 5"]
        code = (library / each["file"]).read_text(encoding="utf-8")
        key = re.search(r"`(\w+)`", each["key"])[1]
        assert key in code, setting["name"]


@pytest.mark.claim(
    "dialects-new-dictionary-unread",
    "With Llama 3.1's settings in `rope_parameters` and nowhere else, a Llama in transformers 4.57.6 or "
    "mlx-lm 0.32.2 rotates as plain RoPE with base 10,000, without an error or a warning. In transformers "
    "5.23.0, vLLM 0.33.0, SGLang 0.5.23 and llama.cpp at 0c1e570, it rotates as Llama 3.1.",
)
def test_the_new_dictionary_is_unread_by_two():
    written = "Llama 3.1, new dictionary"
    assert "rope_theta" not in json.loads(CASES[written]["config"])
    for stack in ("transformers 4", "mlx-lm"):
        assert came(stack, written) == "base 10,000"
        assert not of(stack, written)["warns"]
    for stack in ("transformers 5", "vLLM", "SGLang", "llama.cpp"):
        assert came(stack, written) == "Llama 3.1"


@pytest.mark.claim(
    "dialects-old-spelling-is-read",
    "A base, linear interpolation, YaRN with its original length and the scaling of Llama 3.1, written as "
    "in transformers 4, give the same angles and the same attention factor, within two in a thousand, in "
    "transformers 4.57.6 and 5.23.0, vLLM 0.33.0, SGLang 0.5.23, mlx-lm 0.32.2 and llama.cpp at 0c1e570.",
)
@each_of(
    "case",
    [
        "base outside, as transformers 4 writes it",
        "linear, by `rope_type`",
        "linear, by `type`",
        "YaRN, original length inside",
        "Llama 3.1, as released for transformers 4",
    ],
)
def test_all_read_the_old_spelling(case):
    assert {came(stack, case) for stack in outcomes.STACKS} == {CASES[case]["means"]}


@pytest.mark.claim(
    "dialects-original-length-outside",
    "For a Llama with YaRN, transformers 5.23.0, vLLM 0.33.0 and SGLang 0.5.23 read an original length "
    "outside the dictionary. transformers 4.57.6 and llama.cpp at 0c1e570 use `max_position_embeddings` "
    "instead, and mlx-lm 0.32.2 uses 4,096, as if the key were absent.",
)
def test_an_original_length_outside():
    absent, outside = "YaRN, no original length", "YaRN, original length outside"
    for stack in ("transformers 5", "vLLM", "SGLang"):
        assert (came(stack, outside), came(stack, absent)) == ("YaRN", "YaRN from 16,384")
    for stack in ("transformers 4", "llama.cpp"):
        assert came(stack, outside) == came(stack, absent) == "YaRN from 16,384"
    assert came("mlx-lm", outside) == came("mlx-lm", absent) == "YaRN"


@pytest.mark.claim(
    "dialects-llama-cpp-forgets-yarn",
    "A `beta_fast` of 8, a `truncate` of false, an `attention_factor` of 1, and `mscale` and "
    "`mscale_all_dim` of 1 each change how transformers 5.23.0 interprets a Llama with YaRN. llama.cpp at "
    "0c1e570 interprets it as without them, and gives no warning.",
)
@each_of(
    "setting",
    ["`beta_fast` 8", "`truncate` false", "`attention_factor` 1", "`mscale` and `mscale_all_dim` 1"],
)
def test_what_does_not_reach_llama_cpp(setting):
    case = f"YaRN, {setting}"
    assert came("transformers 5", case) == CASES[case]["means"] != "YaRN"
    assert came("llama.cpp", case) == "YaRN"
    assert not of("llama.cpp", case)["warns"]


@pytest.mark.claim(
    "dialects-share-of-the-head",
    "If the file of a Llama has a `partial_rotary_factor` of one half outside the dictionary, vLLM 0.33.0 "
    "and SGLang 0.5.23 rotate half of each head; transformers 5.23.0, mlx-lm 0.32.2 and llama.cpp at "
    "0c1e570 rotate the whole head; transformers 4.57.6 raises an error when it rotates.",
)
def test_half_of_each_head():
    case = "half of each head, outside"
    assert came("vLLM", case) == came("SGLang", case) == "half of each head"
    assert {came(stack, case) for stack in ("transformers 5", "mlx-lm", "llama.cpp")} == {"base 500,000"}
    assert of("transformers 4", case)["refuses"] == "RuntimeError"


@pytest.mark.claim(
    "dialects-dynamic",
    "For a Llama with `dynamic` scaling and a factor of 2, the angles in vLLM 0.33.0 and in llama.cpp at "
    "0c1e570 are those of plain RoPE, without a warning. In transformers 4.57.6 and 5.23.0 and in mlx-lm "
    "0.32.2, given a text of twice the original length, they are those of dynamic NTK for this length; in "
    "SGLang 0.5.23, they are the same, although its text has two tokens.",
)
def test_dynamic_is_plain_in_two():
    case = "dynamic, a text of twice the length"
    for stack in ("vLLM", "llama.cpp"):
        assert came(stack, case) == "base 500,000" and not of(stack, case)["warns"]
    others = "transformers 4", "transformers 5", "SGLang", "mlx-lm"
    assert {came(stack, case) for stack in others} == {"dynamic"}


@pytest.mark.claim(
    "dialects-sglang-and-vllm",
    "Of thirty configurations of a Llama, SGLang 0.5.23 and vLLM 0.33.0 give the same angles and the same "
    "attention factor, or both raise an error, for all but five: two types that differ (vLLM raises an "
    "error), the type `mrope` (SGLang raises an error), a fraction of channels in the new dictionary, "
    "`dynamic`, and YaRN with an `attention_factor` of 1.",
)
def test_where_sglang_and_vllm_differ(gives):
    apart = {
        "two types that differ": ("linear", "refuses"),
        "type `mrope`, with sections": ("refuses", "base 500,000"),
        "half of each head, inside": ("base 500,000", "half of each head"),
        "dynamic, a text of twice the length": ("dynamic", "base 500,000"),
        "YaRN, `attention_factor` 1": ("YaRN", "YaRN without attention factor"),
    }
    each = {case: (came("SGLang", case), came("vLLM", case)) for case in CASES}
    assert {case: both for case, both in each.items() if both[0] != both[1]} == apart
    assert gives("dialects.outcomes")["values"]["served"] == len(apart)
    assert len(CASES) == 30


@pytest.mark.claim(
    "dialects-megatron-factor",
    "With `--use-rope-scaling`, a GPT model that Megatron-LM builds at core_v0.19.0 rotates by the "
    "frequencies of Llama 3.1, whose factor is 8, also with `--rope-scaling-factor 32`.",
)
def test_megatron_drops_the_factor():
    assert "--rope-scaling-factor" not in flags_of("Llama 3.1")
    assert flags_of("Llama 3.2") == flags_of("Llama 3.1") | {"--rope-scaling-factor": 32}
    assert of("Megatron-LM", "Llama 3.2") == of("Megatron-LM", "Llama 3.1")
    assert came("Megatron-LM", "Llama 3.2") == "Llama 3.1"
    assert not of("Megatron-LM", "Llama 3.2")["warns"]


@pytest.mark.claim(
    "dialects-megatron-layout",
    "In a GPT model of Megatron-LM at core_v0.19.0 with heads of 32 channels, channels 16 apart rotate "
    "together; with `--rotary-percent 0.5`, channels 8 apart; and with `--rotary-interleaved`, adjacent "
    "ones. With YaRN, `--rotary-interleaved` is an error.",
)
def test_megatrons_layouts():
    named = {"base": "channels 16 apart", "half of each head": "channels 8 apart", "interleaved": "adjacent"}
    for case, layout in named.items():
        assert of("Megatron-LM", case)["layout"] == layout
        assert ("--rotary-interleaved" in flags_of(case)) == (layout == "adjacent")
    assert of("Megatron-LM", "YaRN, interleaved")["refuses"] == "AssertionError"


@pytest.mark.claim(
    "dialects-megatron-yarn-whole",
    "In a GPT model of Megatron-LM at core_v0.19.0 with YaRN, `--rotary-percent 0.5` changes nothing.",
)
def test_megatrons_yarn_rotates_the_whole_head():
    half = "YaRN of half of each head"
    assert flags_of(half) == flags_of("YaRN") | {"--rotary-percent": 0.5}
    assert of("Megatron-LM", half) == of("Megatron-LM", "YaRN")


def flags_of(name):
    """Those of a case of Megatron-LM."""
    (case,) = [case for case in DATA["own"] if (case["stack"], case["name"]) == ("Megatron-LM", name)]
    return json.loads(case["config"])


def test_flags_are_shown_as_they_are_written(printed):
    shown = [cells(line) for line in printed("dialects.megatron")[2:]]
    cases = [case for case in DATA["own"] if case["stack"] == "Megatron-LM"]
    assert len(shown) == len(cases)
    for case, (command, result, layout) in zip(cases, shown, strict=True):
        given = flags_of(case["name"])
        words = command.replace("`", "").replace(", no --rotary-base", "").split()
        assert words.pop(0) == given.pop("--position-embedding-type")
        common = {"--rotary-base": 500_000, "--rotary-scaling-factor": 4}
        assert ("--rotary-scaling-factor" in given) == command.startswith("`yarn`")
        assert ("--rotary-base" in given) != ("no `--rotary-base`" in command)
        assert all(given.pop(flag, value) == value for flag, value in common.items())
        assert words == [str(word) for pair in given.items() for word in pair if word is not True]
        assert (result == "error") == (layout == "")
        assert result.startswith("**") == (case.get("becomes", "refuses") != "refuses")


@pytest.mark.peer
def test_what_the_installed_version_rotates_where_no_key_says():
    transformers = peer("transformers")

    def share(name):
        return getattr(transformers, f"{name}Config")().rope_parameters["partial_rotary_factor"]

    assert {share(name) for name in ("Glm", "Glm4", "Phi")} == {0.5}
    assert {share(name) for name in ("GPTNeoX", "StableLm")} == {0.25}
    assert transformers.GPTJConfig().rotary_dim == 64
    said = [each["absent"] for each in cells_of("Part of each head that rotates", "transformers")]
    assert len(said) == 2
    for absent in said:
        assert "GLM and Phi: a half; GPT-NeoX and StableLM: a quarter; GPT-J: 64 channels" in absent


@pytest.mark.peer
def test_the_installed_version_chooses_longropes_factors_in_each_call():
    transformers, phi3 = peer("transformers"), peer("transformers.models.phi3.modeling_phi3")
    scaling = {"rope_type": "longrope", "rope_theta": 10_000.0, "original_max_position_embeddings": 64}
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "max_position_embeddings": 256}

    def rotary(**factors):
        lengths = {"original_max_position_embeddings": 64}
        return phi3.Phi3RotaryEmbedding(
            transformers.Phi3Config(rope_parameters=scaling | factors, **lengths, **sizes)
        )

    made = rotary(short_factor=[1.0] * 8, long_factor=[4.0] * 8)
    for tokens, factor in ((64, 1), (65, 4), (64, 1)):
        made(made.inv_freq, torch.arange(tokens)[None])
        assert made.inv_freq.tolist() == pytest.approx([w / factor for w in speeds(16)])
    with pytest.raises((KeyError, TypeError)):
        rotary(short_factor=[1.0] * 8)


def cells_of(name, stack):
    """The cells of a setting whose stack's name begins so."""
    (setting,) = [setting for setting in DATA["setting"] if setting["name"] == name]
    return [each for each in setting["cells"] if each["stack"].startswith(stack)]


def test_a_misspelt_base_is_passed_over_by_all():
    assert {came(stack, "base misspelt") for stack in outcomes.STACKS} == {"base 10,000"}
    assert not any(of(stack, "base misspelt")["warns"] for stack in outcomes.STACKS if stack != "llama.cpp")


def test_spellings_of_llama_3_1_are_those_that_were_run():
    for each in DATA["spelling"]:
        assert came(each["stack"], each["case"]) == "Llama 3.1"
        if each["stack"].startswith("transformers"):
            assert json.loads(f"{{{each['text']}}}") == json.loads(CASES[each["case"]]["config"])
    (flags,) = [each["text"].split() for each in DATA["spelling"] if each["stack"] == "Megatron-LM"]
    given = [str(word) for pair in flags_of("Llama 3.1").items() for word in pair if word is not True]
    assert flags == given
    (own,) = [each for each in DATA["spelling"] if each["stack"] == "llama-models"]
    (case,) = [case for case in DATA["own"] if (case["stack"], case["name"]) == ("llama-models", "Llama 3.1")]
    assert json.loads(f"{{{own['text']}}}") == json.loads(case["config"])


@pytest.mark.peer
def test_in_version_5_what_stands_outside_wins_over_inside_for_the_original_length_and_loses_for_the_base():
    peer("transformers")
    yarn = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 500_000.0}
    inside = yarn | {"original_max_position_embeddings": 16384}
    both = version_5(rope_parameters=inside, original_max_position_embeddings=4096, rope_theta=10_000.0)
    assert outcomes.outcome(both) == "YaRN"


@pytest.mark.peer
def test_in_version_5_each_kind_of_layer_may_have_a_dictionary_and_gemma_3_reads_the_old_keys():
    config = peer("transformers").Gemma3TextConfig
    old = config(
        rope_theta=1e6, rope_local_base_freq=2e4, rope_scaling={"rope_type": "linear", "factor": 8.0}
    )
    assert old.rope_parameters["full_attention"]["rope_theta"] == 1e6
    assert old.rope_parameters["full_attention"]["factor"] == 8.0
    assert old.rope_parameters["sliding_attention"]["rope_theta"] == 2e4
    assert "factor" not in old.rope_parameters["sliding_attention"]
    assert config().rope_parameters["sliding_attention"]["rope_theta"] == 1e4
    kinds = config(num_hidden_layers=12).layer_types
    assert [i for i, kind in enumerate(kinds) if kind == "full_attention"] == [5, 11]


@pytest.mark.peer
def test_in_version_5_one_stands_for_a_layer_that_turns():
    config = peer("transformers").SmolLM3Config(num_hidden_layers=8)
    assert config.no_rope_layers == [1, 1, 1, 0, 1, 1, 1, 0]


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_tables_of_names_have_every_cell_once(printed):
    assert [cells(line)[0] for line in printed("dialects.stacks")[2:]] == NAMES
    shown = []
    for name in ("dialects.frequencies", "dialects.channels", "dialects.layers"):
        shown += [cells(line) for line in printed(name)[2:]]
    settings = [setting for setting in DATA["setting"] if setting["part"] != "unknown"]
    kept = [each for setting in settings for each in setting["cells"]]
    assert {len(row) for row in shown} == {3}
    assert [row for row in shown if not row[0].startswith("**")] == [
        [each["stack"], each["key"], each["absent"]] for each in kept
    ]
    assert [row[0] for row in shown if row[0].startswith("**")] == [
        f"**{each['name']}**" for each in settings
    ]
    assert [cells(line)[0] for line in printed("dialects.unknown")[2:]] == NAMES


def test_plain_cells_are_plain_rope_by_its_formula(printed, gives):
    head, _, *rows = map(cells, printed("dialects.outcomes"))
    bold = 0
    for case, (_, *row) in zip(CASES, rows, strict=True):
        for stack, cell in zip(head[1:], row, strict=True):
            found = of(stack, case)
            assert cell.startswith("error") == ("refuses" in found)
            assert cell.endswith("warns") == (found["warns"] and "refuses" not in found)
            for base in (10_000, 500_000):
                if cell.strip("*").startswith(f"base {base:,}"):
                    assert found["angles"] == pytest.approx(speeds(32, base), rel=0.002)
            bold += cell.startswith("**")
    values = gives("dialects.outcomes")["values"]
    assert (values["cases"], values["silent"]) == (len(rows), bold)


def test_linear_is_a_quarter_in_the_code_of_gemma(printed):
    shown = [cells(line) for line in printed("dialects.own")[2:]]
    assert [row[0] for row in shown] == [
        case["stack"] for case in DATA["own"] if case["stack"] != "Megatron-LM"
    ]
    assert RESULTS["gemma"]["linear"]["angles"] == pytest.approx(
        [speed / 4 for speed in speeds(32, 500_000)], rel=1e-3
    )


def test_what_is_said_five_times_is_one_setting(printed, gives):
    said = [line for line in printed("dialects.llama_3_1") if line.endswith(": Llama 3.1")]
    assert len(said) == gives("dialects.llama_3_1")["values"]["spellings"] == 5
    kept = [of(each["stack"], each["case"])["angles"] for each in DATA["spelling"]]
    plain = speeds(32, 500_000)
    for angles in kept:
        assert angles[:8] == pytest.approx(plain[:8], rel=1e-3)  # fast pairs are left alone
        assert angles[9:] == pytest.approx([speed / 8 for speed in plain[9:]], rel=1e-3)
