"""Which claims the tests hold, and which pages state them."""

import subprocess
import sys

import pytest

from executable_prose import claims, input_checks
from executable_prose.site import serve
from prose_testing import faults
from prose_testing.projects import FILES

HELD = """
    import pytest


    @pytest.mark.claim("order-is-lost", "Attention "
                       "does not see order.")
    @pytest.mark.parametrize("n", [1, 2])
    def test_order(n):
        pass
    """
IN_A_CLASS = """
    import pytest


    class TestAll:
        @pytest.mark.claim("order-is-lost", "Attention does not see order.")
        @pytest.mark.claim("second", "Another.")
        def test_again(self):
            pass
    """


def refusal(function):
    with pytest.raises(claims.ClaimError) as error:
        function()
    return str(error.value)


def test_a_claim_is_the_sentence_of_every_test_that_holds_it(here):
    here.write({"tests/a/test_one.py": HELD, "tests/test_two.py": IN_A_CLASS, "tests/helper.py": HELD})
    known = claims.registry()
    assert set(known) == {"order-is-lost", "second"}
    assert known["order-is-lost"].statement == "Attention does not see order."
    assert known["order-is-lost"].tests == [
        ("test_order", "tests/a/test_one.py", 7),
        ("TestAll.test_again", "tests/test_two.py", 7),
    ]


def test_tests_may_be_a_folder_or_a_list_of_folders(here):
    here.write({"tests/test_one.py": HELD, "packages/more/tests/test_two.py": IN_A_CLASS})
    for line, files in {
        'tests = "packages/more/tests"': ["packages/more/tests/test_two.py"],
        'tests = ["tests", "packages"]': ["packages/more/tests/test_two.py", "tests/test_one.py"],
        'tests = ["packages", "packages/more"]': ["packages/more/tests/test_two.py"],
    }.items():
        here.write({"pyproject.toml": f"[tool.executable_prose]\n{line}\n"})
        assert [test.file for test in claims.registry()["order-is-lost"].tests] == files
        assert {here.root / file for file in files} <= set(input_checks._found(input_checks._read()))
        watched = [folder for folder in serve._folders() if folder.is_dir()]
        assert all(any(map((here.root / file).is_relative_to, watched)) for file in files)


def test_other_marks_are_no_claims(here):
    here.write({"tests/test_one.py": "@pytest.mark.slow('a', 'b')\n@claim('c', 'd')\ndef test_a(): pass\n"})
    assert claims.registry() == {}


def test_two_sentences_for_one_claim_are_refused(here):
    here.write({"tests/test_one.py": HELD, "tests/test_two.py": HELD.replace("see", "mind")})
    message = "tests/test_two.py:7 states claim 'order-is-lost' in other words than tests/test_one.py:7"
    assert refusal(claims.registry) == message


@pytest.mark.parametrize("arguments", ["", "'one'", "'a', 'b', 'c'", "NAME, 'x'", "'a', f'{1}'"])
def test_a_claim_that_is_not_two_literals_is_refused(here, arguments):
    here.write({"tests/test_one.py": f"\n@pytest.mark.claim({arguments})\ndef test_a(): pass\n"})
    assert refusal(claims.registry) == "tests/test_one.py:2: a claim takes an id and a sentence, as literals"


@pytest.mark.parametrize("name", faults.CLAIMS)
def test_a_test_that_never_runs_holds_no_claim(here, name):
    files, *words = faults.CLAIMS[name]
    here.write(files | {"tests/test_scale.py": FILES["tests/test_scale.py"]})
    if words:
        said = refusal(claims.registry)
        assert [word for word in words if word not in said] == [], said
    else:
        assert len(claims.registry()["scaling-scales"].tests) > 1


def test_a_test_file_that_cannot_be_read_is_named(here):
    here.write({"tests/test_one.py": "x = 1\ndef broken(:\n"})
    assert refusal(claims.registry) == "invalid syntax (at tests/test_one.py:2)"


def test_an_edited_test_file_is_read_again(here):
    here.write({"tests/test_one.py": HELD})
    claims.registry()
    here.write({"tests/test_one.py": HELD.replace("see", "get")})
    assert claims.registry()["order-is-lost"].statement == "Attention does not get order."


def test_a_claim_is_stated_where_pages_cite_it(here):
    here.write(
        {
            "docs/b/two.md": "Twice `#!claim order-is-lost` and `#!claim order-is-lost`, `#!claim\nsecond`.",
            "docs/a.md": "Once `#!claim order-is-lost`.",
            "docs/c.md": "#!claim second, and `claim second`, and `#!claims second` state nothing.",
        }
    )
    assert claims.citations() == {"order-is-lost": ["a.md", "b/two.md"], "second": ["b/two.md"]}
    here.write({"mkdocs.yml": "nav:\n  - b/two.md\n  - One: a.md\n"})
    assert claims.citations() == {"order-is-lost": ["b/two.md", "a.md"], "second": ["b/two.md"]}


def test_a_claim_that_no_page_cites_is_unstated(here):
    here.write({"tests/test_two.py": IN_A_CLASS, "docs/a.md": "Once `#!claim order-is-lost`."})
    assert [claim.id for claim in claims.unstated(claims.registry(), claims.citations())] == ["second"]


RUN = """
import subprocess
import sys

import pytest

pytestmark = pytest.mark.claim("a", "A.")


def test_runs(): pass


def test_fails(): assert 0, "it fails"


def test_skips(): pytest.skip("no reason")


@pytest.mark.xfail(reason="one day")
def test_may_fail(): assert 0


@pytest.mark.xfail(reason="one day")
def test_may_fail_and_does_not(): pass


@pytest.fixture
def absent(): pytest.skip("nothing there")


def test_has_nothing(absent): pass
"""


def test_a_run_fails_in_which_a_test_of_a_claim_was_skipped(tmp_path):
    free = RUN.replace("pytestmark", "mark")
    (tmp_path / "test_one.py").write_text(RUN)
    (tmp_path / "test_two.py").write_text(free)
    options = ["-p", "no:cacheprovider", "-q", "-rA", "-n", "0"]
    said = {}
    for name in ("test_one.py", "test_two.py"):
        command = [sys.executable, "-m", "pytest", *options, name]
        said[name] = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert "4 failed, 1 passed, 1 error" in said["test_one.py"]
    for why in ("no reason", "one day", "nothing there"):
        told = f"pages mark a as tested, and this test was skipped or may fail: {why}"
        assert told in " ".join(said["test_one.py"].split())
    assert "1 failed, 1 passed, 2 skipped, 1 xfailed, 1 xpassed" in said["test_two.py"]
