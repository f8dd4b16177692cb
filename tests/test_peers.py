"""Comparisons with others: skipped only where these are not installed, and stored."""

import runpy

import pytest

from executable_prose.project import ROOT
from tests.peers import peer


def test_a_module_of_an_installed_package_is_imported():
    assert peer("xml.dom.minidom").__name__ == "xml.dom.minidom"


def test_a_package_that_is_not_installed_skips_by_name():
    with pytest.raises(pytest.skip.Exception, match="no_such_package is not installed"):
        peer("no_such_package.module")


def test_a_module_that_has_moved_is_an_error():
    with pytest.raises(ModuleNotFoundError, match=r"xml\.no_such_module"):
        peer("xml.no_such_module")


def test_no_test_skips_in_another_way():
    word = "import" + "orskip"
    found = [path.name for path in (ROOT / "tests").rglob("*.py") if word in path.read_text(encoding="utf-8")]
    assert not found


def test_stored_differences_keep_what_was_not_compared_and_forget_what_is_gone():
    rewritten = runpy.run_path(str(ROOT / "tests" / "snippets" / "conftest.py"))["rewritten"]
    written = {"rope": {"a.b": 1e-9}, "alibi": {"a.c": 0.0, "a.gone": 0.5}, "no_such_snippet": {"a.d": 0.0}}
    now = rewritten(written, {"alibi": {"a.c": 1.26e-9}})
    assert now == {"rope": {"a.b": 1e-9}, "alibi": {"a.c": 1.3e-9}}
