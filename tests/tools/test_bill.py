"""The bill of materials names what is locked, in the form of CycloneDX."""

import json
import re

import pytest

from tests.workflows.test_locks import pinned
from tools import bill

LOCK = """
    appnope==1.0.0 ; sys_platform == 'darwin' \\
        --hash=sha256:A \\
        --hash=sha256:B
    Name_of.It==2.0+a
    """.replace("A", 64 * "a").replace("B", 64 * "b")


def test_all_that_is_locked_stands_in_it_and_torch():
    components = bill.bill()["components"]
    expected = pinned("locks/site.txt") | {"torch": pinned("requirements.txt")["torch"]}
    assert {each["name"]: each["version"] for each in components} == expected
    assert [each["name"] for each in components if not each["hashes"]] == ["torch"]


def test_it_is_well_formed():
    """What the schema of CycloneDX 1.6 asks of these fields."""
    made = json.loads(json.dumps(bill.bill()))
    assert (made["bomFormat"], made["specVersion"], made["version"]) == ("CycloneDX", "1.6", 1)
    references = [each["bom-ref"] for each in made["components"]]
    assert len(set(references)) == len(references) > 50
    for each in made["components"]:
        assert each["type"] == "library"
        assert re.fullmatch(r"pkg:pypi/[a-z0-9-]+@[\w.%-]+", each["purl"])
        for found in each["hashes"]:
            assert found["alg"] == "SHA-256" and re.fullmatch("[0-9a-f]{64}", found["content"])


def test_a_package_is_told_with_its_files_and_where_it_is_needed(here):
    here.write({"requirements.txt": "a==1\ntorch==2.1\n", "locks/site.txt": LOCK})
    torch, first, second = bill.bill()["components"]
    assert torch["purl"] == "pkg:pypi/torch@2.1"
    assert [each["content"][0] for each in first["hashes"]] == ["a", "b"]
    assert first["properties"] == [{"name": "marker", "value": "sys_platform == 'darwin'"}]
    assert (second["purl"], second["version"]) == ("pkg:pypi/name-of-it@2.0%2Ba", "2.0+a")
    assert second["hashes"] == second["properties"] == []


def test_a_lock_that_is_not_there_leaves_no_bill(here):
    here.write({"requirements.txt": "torch==2.1\n"})
    with pytest.raises(FileNotFoundError, match=r"site\.txt"):
        bill.bill()
