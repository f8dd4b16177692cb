"""The server makes first what is read, follows edits, outlives errors, and ends with all its processes."""

import os
import signal
import socket
import time
import urllib.error
import urllib.request

import pytest

from executable_prose.site import serve
from prose_testing.projects import FILES, Project, running_in, until

posix = pytest.mark.skipif(os.name != "posix", reason="signals and process groups are POSIX's")

# Ends when it is told to, and says that it has begun.
SLOW = """
    import tempfile
    import time
    from pathlib import Path


    def wait():
        Path(tempfile.gettempdir(), "waiting").write_text("yes")
        while not Path(".cache/go").exists():
            time.sleep(0.05)
        print("waited")
    """
# Reads a file of the project's own folder, and asks for one that is not there.
DATA = """
    from pathlib import Path


    def told():
        print(Path("numbers.txt").read_text(), Path("data/more.txt").exists())
    """
# Sees the menu before pages are made of it.
MENU = """
    import logging


    def on_nav(nav, config, files):
        logging.getLogger("mkdocs").info(f"a menu of {len(nav.pages)} pages")
        return nav
    """
OTHER = "# Slow\n\nSee [no heading](index.md#nowhere).\n\n```exhibit slow.wait\n```\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    files = FILES | {"exhibits/slow.py": SLOW, "docs/slow.md": OTHER}
    files |= {"exhibits/data.py": DATA, "docs/data.md": "# Data\n\n```exhibit data.told\n```\n"}
    files |= {"numbers.txt": "one two", "menu.py": MENU}
    made = Project(tmp_path_factory.mktemp("served").resolve(), files=files)
    made.edit("mkdocs.yml", "plugins: []", "plugins: []\nhooks: [menu.py]")
    return made


@pytest.fixture(scope="module")
def log(project):
    """A function that says what the server has said so far."""
    return (project.root / "log").read_text


@pytest.fixture(scope="module")
def fetch(project, log):
    """A function that asks for a page of the server, which runs until all tests have ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with (project.root / "log").open("w") as output:
        server = project.start("executable_prose", "serve", "--dev-addr", address, output=output)

    def fetch(path=""):
        try:
            with urllib.request.urlopen(f"http://{address}/{path}", timeout=60) as answer:
                return answer.read().decode()
        except OSError:
            assert server.poll() is None, log()
            return ""

    fetch.address = f"http://{address}/"
    yield fetch
    os.killpg(server.pid, signal.SIGINT)
    code = server.wait(30)
    until(lambda: not running_in(project.root), 20)
    assert code == 0
    assert "Traceback" not in log(), log()


@posix
def test_a_page_waits_for_no_exhibit_of_another_page(project, fetch, log):
    until(lambda: ">2.00<" in fetch())
    assert "2 exhibits ran, 0 cached" in log()
    until(lambda: project.left_by_an_exhibit("waiting"))
    assert "claims" in fetch("claims/")
    project.edit("docs/claims.md", "# Claims", "# Sentences")
    until(lambda: "Sentences" in fetch("claims/"))
    assert "slow.wait" not in log()
    assert "pages are still to be made" in log() and "All pages are made" not in log()
    (project.root / ".cache/go").touch()
    assert "waited" in fetch("slow/")
    until(lambda: "does not contain an anchor '#nowhere'" in log())
    until(lambda: "All pages are made" in log())
    assert "a menu of " in log(), "a hook of MkDocs"
    until(lambda: fetch("404.html") or fetch("sitemap.xml"))


@posix
def test_an_edit_is_followed_and_an_error_is_told_where_the_page_would_be(project, fetch, log):
    project.edit("snippets/scale.py", "2.0", "3.0")
    until(lambda: ">3.00<" in fetch())
    assert "1 exhibits ran, 1 cached" in log()

    project.edit("snippets/scale.py", "return SCALE * x", "return SCALE * y")
    message = "exhibit 'lines.rising' failed: NameError: name 'y' is not defined (at snippets/scale.py:8)"
    until(lambda: message in fetch())
    assert "docs/index.md:12: " in fetch() and "livereload" in fetch()
    until(lambda: message in log())
    project.edit("snippets/scale.py", "return SCALE * y", "return SCALE * x + 1")
    until(lambda: ">4.00<" in fetch())


@posix
def test_data_of_an_exhibit_is_followed_wherever_it_lies(project, fetch, log):
    until(lambda: "one two False" in fetch("data/"))
    project.edit("numbers.txt", "two", "three")
    until(lambda: "one three False" in fetch("data/"))
    project.write({"data/more.txt": ""})
    until(lambda: "one three True" in fetch("data/"))
    made = log().count("Detected file changes")
    project.write({"nobody.txt": "", "numbers.txt.bak": ""})
    time.sleep(serve.WATCH * 3)
    assert log().count("Detected file changes") == made


@posix
def test_a_page_that_is_gone_is_gone_and_what_runs_in_the_background_ends_with_the_server(project, fetch):
    """The latter as the fixture sees in the end."""
    (project.root / ".cache/go").unlink()
    (project.root / "docs/slow.md").unlink()
    until(lambda: not fetch("slow/"))
    project.edit("exhibits/slow.py", '"waited"', '"waited again"')
    until(lambda: project.left_by_an_exhibit("waiting"))


@posix
@pytest.mark.parametrize("name", ["docs", "snippets", "mkdocs.yml"])
def test_what_was_away_for_a_while_is_followed_again(project, fetch, log, name):
    until(lambda: ">4.00<" in fetch())
    before, away = log().count("Detected file changes"), project.root / ".cache/away"
    (project.root / name).rename(away)
    until(lambda: log().count("Detected file changes") > before)
    time.sleep(serve.WATCH * 2)
    away.rename(project.root / name)
    until(lambda: ">4.00<" in fetch())
    project.edit("docs/claims.md", "# Sentences", f"# After {name}")
    until(lambda: f"After {name}" in fetch("claims/"))
    project.edit("docs/claims.md", f"# After {name}", "# Sentences")


@posix
@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST", "PATCH"])
def test_only_reading_is_answered(fetch, method):
    assert request(fetch, "", method) == 405
    assert request(fetch, "claims/", "HEAD") == request(fetch, "claims/", "GET") == 200


@posix
@pytest.mark.parametrize("path", ["%00", "claims/%00", "claims%00/index.html"])
def test_an_address_that_no_file_can_have_is_refused(fetch, log, path):
    assert request(fetch, path, "GET") == 400
    assert "500" not in log()


def request(fetch, path, method):
    """The code that the server answers with."""
    asked = urllib.request.Request(fetch.address + path, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_an_answer_that_a_change_has_overtaken_is_not_given(monkeypatch):
    asked = []

    class Site:
        ask = asked.append

    def answer(server, environ, start_response):
        start_response(f"answer {len(asked)}", [])
        if len(asked) == 1:
            server.site = Site()
        return [environ["PATH_INFO"]]

    monkeypatch.setattr(serve.LiveReloadServer, "serve_request", answer)
    server = object.__new__(serve.Server)
    server.site, server.mount_path, heads = Site(), "/guide/", []
    body = server.serve_request(
        {"PATH_INFO": "/guide/order/", "REQUEST_METHOD": "GET"}, lambda *head: heads.append(head)
    )
    assert (asked, heads, body) == (["order/", "order/"], [("answer 2", [])], ["/guide/order/"])
