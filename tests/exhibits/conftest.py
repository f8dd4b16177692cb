"""Exhibits run here as on the page: in the house style, and quietly."""

import matplotlib.pyplot
import pytest

from weave import figures
from weave.results import Results, exhibit_names


@pytest.fixture(autouse=True)
def as_on_the_page(capsys):
    figures.prepare()
    yield
    matplotlib.pyplot.close("all")
    matplotlib.rcdefaults()
    for name in figures.MAPS:
        matplotlib.colormaps.unregister(name)
    capsys.readouterr()


@pytest.fixture(scope="session")
def gives(request):
    """A function that says what an exhibit gives: with --cold just now, else as the site is built."""
    results = Results()
    if not request.config.getoption("--cold"):
        return results.get
    outcomes = {outcome.name: outcome for outcome in results.run(exhibit_names())}

    def cold(name):
        assert not outcomes[name].failure, outcomes[name].failure
        return outcomes[name].result

    return cold


@pytest.fixture(scope="session")
def printed(gives):
    """A function that gives the lines that an exhibit prints on its page."""
    return lambda name: gives(name)["output"].splitlines()


@pytest.fixture(scope="session")
def returned(gives):
    """A function that gives the numbers that an exhibit returns, which pages weave into sentences."""
    return lambda name: gives(name)["values"]
