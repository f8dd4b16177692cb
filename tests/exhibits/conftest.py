"""Exhibits run here as on the page: in the house style, and quietly."""

import functools

import matplotlib.pyplot
import pytest

from executable_prose.figures import svg
from experiments import runs


@pytest.fixture(autouse=True)
def as_on_the_page(capsys):
    svg.prepare()
    yield
    matplotlib.pyplot.close("all")
    matplotlib.rcdefaults()
    for name in svg.MAPS:
        matplotlib.colormaps.unregister(name)
    capsys.readouterr()


@pytest.fixture(autouse=True, scope="module")
def results_are_read_once():
    """Stored results are megabytes, and some exhibits ask for them hundreds of times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "stored", functools.cache(runs.stored))
        yield
