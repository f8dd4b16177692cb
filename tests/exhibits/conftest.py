"""Exhibits run here as on the page: in the house style, and quietly."""

import matplotlib.pyplot
import pytest

from executable_prose.figures import svg


@pytest.fixture(autouse=True)
def as_on_the_page(capsys):
    svg.prepare()
    yield
    matplotlib.pyplot.close("all")
    matplotlib.rcdefaults()
    for name in svg.MAPS:
        matplotlib.colormaps.unregister(name)
    capsys.readouterr()
