"""What `--8<-- "file@symbol"` finds."""

import pytest

from executable_prose import symbols

FILE = '''
    """A module."""
    import functools

    BASE: float = 10_000.0
    NAMES = ("a",
             "b")


    @functools.cache
    def first(x):
        """One."""
        return x


    class Layer:
        """A layer."""

        size = 3

        @property
        def width(self):
            # why
            return self.size
    '''


@pytest.fixture
def find(here):
    here.write({"snippets/a.py": FILE, "snippets/broken.py": "x = 1\ndef f(:\n"})
    return symbols.find


def test_a_function_comes_with_its_decorators_and_its_line(find):
    source = find("snippets/a.py", "first")
    assert source.first == 9
    assert source.lines == ["@functools.cache", "def first(x):", '    """One."""', "    return x"]


@pytest.mark.parametrize(
    ("symbol", "first", "lines"),
    [("BASE", 4, ["BASE: float = 10_000.0"]), ("NAMES", 5, ['NAMES = ("a",', '         "b")'])],
)
def test_a_constant_comes_whole(find, symbol, first, lines):
    assert find("snippets/a.py", symbol) == ("snippets/a.py", first, lines, "")


def test_a_method_comes_without_its_indentation(find):
    source = find("snippets/a.py", "Layer.width")
    assert source.first == 20
    assert source.lines == ["@property", "def width(self):", "    # why", "    return self.size"]


def test_a_class_attribute_is_a_symbol(find):
    assert find("snippets/a.py", "Layer.size").lines == ["size = 3"]


def test_without_a_symbol_the_whole_file_comes(find, here):
    text = (here.root / "snippets/a.py").read_text(encoding="utf-8")
    assert find("snippets/a.py") == ("snippets/a.py", 1, text.splitlines(), "")


@pytest.mark.parametrize(
    ("file", "symbol", "message"),
    [
        ("snippets/none.py", None, "no file snippets/none.py"),
        ("snippets/a.py", "second", "no symbol 'second' in snippets/a.py; it has BASE, NAMES, first, Layer"),
        (
            "snippets/a.py",
            "Layer.height",
            "no symbol 'Layer.height' in snippets/a.py; it has size, width",
        ),
        ("snippets/a.py", "first.inner", "no symbol 'first.inner' in snippets/a.py; it has none"),
        ("snippets/broken.py", "f", "invalid syntax (at snippets/broken.py:2)"),
    ],
)
def test_what_is_not_there_is_refused_in_words(find, file, symbol, message):
    with pytest.raises(symbols.SymbolError) as refusal:
        find(file, symbol)
    assert str(refusal.value) == message
