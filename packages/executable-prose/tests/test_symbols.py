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


SCALED = 'def scaled(x):\n    """x, scaled."""\n    return SCALE * x\n'
NO_ENDS = {  # str.splitlines ends a line at each, Python's parser at none
    "line tabulation": "\v",
    "form feed": "\f",
    "file separator": "\x1c",
    "group separator": "\x1d",
    "record separator": "\x1e",
    "next line": "\x85",
    "line separator": "\u2028",
    "paragraph separator": "\u2029",
}


@pytest.mark.parametrize("sign", NO_ENDS.values(), ids=NO_ENDS)
@pytest.mark.parametrize(
    "above", ["# a{}b\n", "NOTE = 'a{}b'\n", '"""a{}b"""\n'], ids=["comment", "string", "docstring"]
)
def test_no_sign_above_a_function_moves_its_listing(find, here, sign, above):
    here.write({"snippets/a.py": f"SCALE = 2.0\n{above.format(sign)}\n\n{SCALED}"})
    source = find("snippets/a.py", "scaled")
    assert source.first == 5
    assert "\n".join(source.lines) + "\n" == SCALED


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"], ids=["Unix", "Windows", "old"])
def test_files_of_every_system_are_listed_alike(find, here, ends):
    text = f"SCALE = 2.0\n\f\n{SCALED}".replace("\n", ends)
    (here.root / "snippets/a.py").write_bytes(text.encode())
    source = find("snippets/a.py", "scaled")
    assert source.first == 3
    assert "\n".join(source.lines) + "\n" == SCALED


BOUND_AGAIN = {
    "function": "def scaled(x):\n    return x\n",
    "tuple": "scaled, other = abs, 1\n",
    "import": "from math import floor as scaled\n",
    "module": "import math as scaled\n",
    "condition": "if True:\n    scaled = abs\n",
    "loop": "for scaled in (abs, max):\n    pass\n",
    "with": "with open('a') as scaled:\n    pass\n",
    "walrus": "print(scaled := abs)\n",
    "match": "match abs:\n    case scaled:\n        pass\n",
    "except": "try:\n    pass\nexcept ValueError as scaled:\n    pass\n",
    "del": "del scaled\n",
    "augmented": "scaled += 1\n",
    "everything": "from math import *\n",
    "global": "def f():\n    global scaled\n    scaled = 1\n",
    "walrus in a comprehension": "ALL = [(scaled := n) for n in (1, 2)]\n",
    "walrus in a default": "def f(x=(scaled := 1)):\n    pass\n",
    "walrus in a decorator": "@(scaled := abs)\ndef f():\n    pass\n",
    "walrus in a base": "class A((scaled := list)):\n    pass\n",
    "rest of a mapping": "match {}:\n    case {**scaled}:\n        pass\n",
}


@pytest.mark.parametrize("again", BOUND_AGAIN.values(), ids=BOUND_AGAIN)
def test_a_name_that_gets_two_values_is_not_listed(find, here, again):
    here.write({"snippets/a.py": SCALED + again})
    with pytest.raises(
        symbols.SymbolError, match=r"^'scaled' gets a value more than once, in lines 1, \d+ of"
    ):
        find("snippets/a.py", "scaled")


def test_a_name_of_another_scope_is_another_name(find, here):
    others = (
        "def f():\n    scaled = 1\n\n\nclass A:\n    scaled = 2\n\n\nALL = [scaled for scaled in (1, 2)]\n"
    )
    here.write({"snippets/a.py": SCALED + others})
    assert "\n".join(find("snippets/a.py", "scaled").lines) + "\n" == SCALED


@pytest.mark.parametrize(
    "text",
    [
        "a = 1; scaled = 2\n",
        "scaled = 2; a = 1\n",
        "class A:\n    def scaled(x):\n# left\n        return x\n",
        'class A:\n    scaled = """\nleft\n"""\n',
        'class A:\n    def scaled(x):\n        return """\n        one\n        """\n',
    ],
)
def test_what_cannot_be_cut_out_whole_is_not_listed(find, here, text):
    here.write({"snippets/a.py": text})
    with pytest.raises(symbols.SymbolError, match="cannot be listed by itself"):
        find("snippets/a.py", "A.scaled" if "class" in text else "scaled")


@pytest.mark.parametrize(
    ("text", "symbol", "listed"),
    [
        ("SCALE: float\nSCALE = 2.0\n", "SCALE", "SCALE = 2.0"),
        ("@overload\ndef f(x: int): ...\n\n\ndef f(x):\n    pass\n", "f", "def f(x):\n    pass"),
        (
            "class A:\n    @property\n    def b(self):\n        pass\n\n"
            "    @b.setter\n    def b(self, b):\n        pass\n",
            "A.b",
            "@property\ndef b(self):\n    pass",
        ),
        ("from math import *\n\nSCALE = 2.0\n", "SCALE", "SCALE = 2.0"),
        ("class A:\n    name: str\n", "A.name", "name: str"),
    ],
)
def test_what_has_one_value_at_a_time_is_listed(find, here, text, symbol, listed):
    here.write({"snippets/a.py": text})
    assert "\n".join(find("snippets/a.py", symbol).lines) == listed


def test_a_file_in_another_encoding_is_not_listed(find, here):
    here.write({"snippets/a.py": "# -*- coding: latin-1 -*-\nSCALE = 2.0\n"})
    with pytest.raises(symbols.SymbolError, match=r"declares the encoding iso-8859-1: save it as UTF-8"):
        find("snippets/a.py", "SCALE")
