"""The fixture and the marker of the pytest plugin, in suites as users write them."""

import ast
import json
import re
from pathlib import Path

import pytest
import torch
from transformers.models.llama import modeling_llama

import check_positions
from check_positions import Finding, checker
from check_positions.plugin import format_failures

pytest_plugins = ["pytester"]

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 200,
}
CONFTEST = """
    import pytest, transformers
    from check_positions.checker import scale_up_weights

    class OwnConfig(transformers.LlamaConfig):
        model_type = "own"

    def build(kind):
        model = transformers.LlamaForCausalLM(kind.from_pretrained("config.json"))
        scale_up_weights(model)
        return model

    @pytest.fixture
    def model():
        return build(transformers.LlamaConfig)

    @pytest.fixture
    def own_model():
        return build(OwnConfig)
"""


@pytest.fixture
def suite(pytester):
    """Return a function that runs a test file next to a right config.json."""
    pytester.makefile(".json", config=json.dumps(LLAMA))
    pytester.makeconftest(CONFTEST)

    def run(text):
        pytester.makepyfile(test_suite=text)
        return pytester.runpytest_inprocess("-p", "check_positions.plugin", "--strict-markers")

    return run


@pytest.fixture
def swapped_pairs(monkeypatch):
    """Swap pairs as in the interleaved layout in every LLaMA, whose table is in the half layout."""

    def swapped(x):
        return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)

    monkeypatch.setattr(modeling_llama, "rotate_half", swapped)


FAILURE = """\
config.json: 1 of 11 checks failed: layers_as_configured

layers_as_configured: Does the rotation of each layer match its configuration?
  - expected: yes
  + found:    no, in layers 0, 1: queries depend on position, but by no
              rotation or added vector
    first at: layer 0
    cause:    most often the table in one layout and the swap in the other
"""


def test_what_is_right_passes(suite):
    told = suite("""
        import pathlib, torch
        from check_positions import check_rotation

        def test_path(assert_positions):
            assert_positions("config.json")

        def test_folder(assert_positions):
            assert_positions(pathlib.Path(__file__).parent)

        def test_model_is_as_it_was(assert_positions, model):
            before = [w.clone() for w in model.train().parameters()]
            assert_positions(model)
            assert model.training and all(map(torch.equal, before, model.parameters()))

        def test_model_of_an_unknown_class(assert_positions, own_model):
            assert_positions(own_model, causal=True)

        def test_findings(assert_positions):
            assert_positions(one for one in check_rotation(lambda x, positions: x + 0, dim=8))
    """)
    told.assert_outcomes(passed=5)


def test_random_numbers_of_a_test_are_those_without_a_check(suite):
    told = suite("""
        import torch

        def test_numbers(assert_positions):
            first = torch.manual_seed(7) and torch.rand(3)
            torch.manual_seed(7)
            assert_positions("config.json")
            assert torch.equal(torch.rand(3), first)
    """)
    told.assert_outcomes(passed=1)


MARKED = """
    import pathlib, pytest

    @pytest.mark.positions("config.json")
    def test_marked():
        pathlib.Path("ran").touch()

    @pytest.mark.positions("config.json", pathlib.Path("config.json"))
    class TestMarked:
        def test_of_a_class(self):
            pathlib.Path("ran").touch()

    def test_unmarked():
        pass
"""


def test_a_marked_file_is_checked_once(suite, monkeypatch):
    sources, check = [], checker.check_transformers
    monkeypatch.setattr(checker, "check_transformers", lambda source: sources.append(source) or check(source))
    suite(MARKED).assert_outcomes(passed=3)
    assert [source.name for source in sources] == ["config.json"]


def test_a_marked_test_fails_before_it_runs(suite, swapped_pairs, pytester):
    told = suite(MARKED)
    told.assert_outcomes(passed=1, failed=2)
    assert not (pytester.path / "ran").exists()
    shown = told.stdout.str()
    failure = re.escape(FAILURE)
    assert re.search(f"_ test_marked _+\n{failure}_", shown), "no traceback"
    assert re.search(f"_ TestMarked.test_of_a_class _+\n{failure}\n{failure}=", shown), "all of its files"


@pytest.mark.parametrize(
    ("fixtures", "source"),
    [("", '"config.json"'), ("", "check_transformers('config.json')"), (", model", "model")],
)
def test_the_fixture_shows_the_line_of_the_test_and_the_findings(fixtures, source, suite, swapped_pairs):
    told = suite(f"""
        from check_positions import check_transformers

        def test_positions(assert_positions{fixtures}):
            assert_positions({source})
    """)
    told.assert_outcomes(failed=1)
    shown = told.stdout.str()
    assert f">       assert_positions({source})\nE       AssertionError: " in shown
    assert [f"E       {line}".rstrip() for line in FAILURE.splitlines()[2:]] == [
        line.rstrip() for line in shown.partition("AssertionError")[2].splitlines()[2:8]
    ]
    assert "check_positions/" not in shown, "no frames of the package"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            'assert_positions("no.json")',
            "ValueError: no.json could not be checked: *no.json must be a config.json *",
        ),
        ("assert_positions(3)", "TypeError: source must be findings, the path *, got int 3"),
        ("assert_positions([3])", "TypeError: source must be findings, the path *, got list [[]3[]]"),
        ("assert_positions([])", "AssertionError: positional code: no check could decide"),
        ("assert_positions(own_model)", "ValueError: no model is known for a OwnConfig"),
        ("pass", "the marker positions must have paths only, got args (), kwargs {'path': 'config.json'}"),
    ],
)
def test_an_error_names_what_was_expected(body, words, suite):
    marker = '@pytest.mark.positions(path="config.json")' * (body == "pass")
    told = suite(f"import pytest\n\n{marker}\ndef test_it(assert_positions, own_model):\n    {body}\n")
    told.assert_outcomes(failed=1)
    told.stdout.fnmatch_lines([f"*{words}"])


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (ModuleNotFoundError("No module named 'transformers'"), "pip install check-positions[transformers]"),
        (KeyError("rope_type"), "config.json could not be checked: KeyError: 'rope_type'"),
    ],
)
def test_an_error_of_transformers_is_a_line_of_the_marked_test(raised, words, suite, monkeypatch):
    def check(source):
        raise raised

    monkeypatch.setattr(checker, "check_transformers", check)
    told = suite(MARKED)
    told.assert_outcomes(passed=1, failed=2)
    assert words in told.stdout.str()
    assert ".py:" not in told.stdout.str().partition("FAILURES")[2].partition("test_of_a_class")[0]


def test_an_error_of_the_model_is_shown_where_it_was_raised(suite):
    told = suite("""
        def test_positions(assert_positions, model):
            model.model.rotary_emb.forward = None
            assert_positions(model)
    """)
    told.assert_outcomes(failed=1)
    told.stdout.fnmatch_lines(
        [
            "E*TypeError: 'NoneType' object is not callable",
            ">*assert_positions(model)",
            "E*ValueError: model must take ids *; it raised TypeError: *",
        ]
    )
    assert "check_positions/" not in told.stdout.str()


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["passes", "no power"], ""),
        (["no power"], "my code: no check could decide\n  inconclusive: finite: Finite? found 0"),
        (["passes", "fails", "fails"], "my code: 2 of 3 checks failed: finite\n\nfinite: Finite?\n"),
    ],
)
def test_a_failure_begins_with_its_checks(verdicts, expected):
    findings = [Finding("finite", v, "Finite?", "yes", f"found {n}", 0.5) for n, v in enumerate(verdicts)]
    told = format_failures("my code", reversed(findings) if expected == "" else findings)
    assert told.startswith(expected) and bool(told) == bool(expected)
    assert told.count("  - expected: yes, within 5.0e-01\n  + found:    found ") == verdicts.count("fails")


def test_the_installed_plugin_imports_no_torch_before_a_check(installed, tmp_path):
    (tmp_path / "test_nothing.py").write_text("def test_nothing(assert_positions):\n    pass\n")
    (tmp_path / "conftest.py").write_text(
        "import sys\n\ndef pytest_sessionfinish():\n    print({'torch', 'transformers'} & set(sys.modules))\n"
    )
    done = installed.run("python", "-m", "pytest", "-s", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ".set()\n" in done.stdout
    done = installed.run("python", "-m", "pytest", "--markers", cwd=tmp_path)
    assert "@pytest.mark.positions(path, ...): check these files before the test runs" in done.stdout


def test_all_public_names_are_imported_when_they_are_used():
    tree = ast.parse(Path(check_positions.__file__).read_text(encoding="utf-8"))
    typed = [
        alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    names = set(check_positions.__all__)
    assert names == set(typed) - {"import_module", "TYPE_CHECKING", "Any"}
    assert names <= set(dir(check_positions))
    modules = {getattr(check_positions, name).__module__ for name in names}
    known = ("checker", "config", "comparison", "explanation")
    assert modules == {f"check_positions.{each}" for each in known}
    with pytest.raises(AttributeError, match="has no attribute 'nonesuch'"):
        check_positions.nonesuch  # noqa: B018
