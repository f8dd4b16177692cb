"""A false shape comment fails, a true one passes, and one that nobody checks stops the import."""

import importlib
import sys

import pytest
import shape_comments
import torch

from tests.rows import each_of


def load(source):
    """The names that a file of this source would define, with its shape comments checked."""
    names = {"torch": torch, "_shapes": shape_comments, "_shapes_seen": {}}
    exec(compile(shape_comments.instrument(source, "file.py"), "file.py", "exec"), names)
    return names


def after(comment, value="torch.zeros(2, 3, 4)", given=""):
    """Run one assignment of a (2, 3, 4) tensor that carries this comment."""
    load(f"def f({given}):\n    x = {value}  # {comment}\n    return x\n")["f"]()


@each_of(
    "comment",
    [
        "(2, 3, 4)",
        "(batch, queries, dim)",
        "(batch, queries, dim)  whatever follows is prose",
        "(..., 3, 4)",
        "(...)",
        "(..., 2, 3, 4)",
        "(2, 3, 1 + 3)",
        "(2, n, n + 1)",
        "(..., n, 2*n - n + 1)",
        "(batch, 3, 2*batch)",
        "(n, 3, n * 4 / 2)",
        "(n, 3, n + 5 // 2)",
    ],
)
def test_a_true_comment_passes(comment):
    after(comment)


@each_of(
    "comment",
    [
        "(2, 3)",
        "(2, 3, 4, 1)",
        "(2, 3, 5)",
        "(n, n, 4)",
        "(..., 5)",
        "(..., 1, 2, 3, 4)",
        "(..., n, n)",
        "(2, n, n)",
        "(2, n, n + 2)",
        "(n, 3, n * 3 / 2)",
        "()",
        "(2,)",
    ],
)
def test_a_false_comment_fails(comment):
    with pytest.raises(AssertionError, match=r"file\.py:2: the comment says .*\(2, 3, 4\)"):
        after(comment)


def test_a_scalar_has_the_empty_shape():
    after("()", "torch.tensor(1.0)")
    with pytest.raises(AssertionError, match=r"says \(1\), the value is \(\)"):
        after("(1)", "torch.tensor(1.0)")


def test_a_name_is_the_number_that_the_function_has_for_it():
    after("(2, 3, dim)", given="dim=4")
    after("(2, 3, 2*half)", given="half=2")
    with pytest.raises(AssertionError, match="dim is 5"):
        after("(2, 3, dim)", given="dim=5")
    with pytest.raises(AssertionError, match=r"dim/2 is 3\.5"):
        after("(2, dim/2, 4)", given="dim=7")


def test_a_name_that_holds_no_number_is_fixed_by_its_first_use():
    source = (
        "def f(keys, flag=True):\n"
        "    a = torch.zeros(keys.shape[0], 2)  # (keys, flag)\n"
        "    b = torch.zeros({}, 2)  # (keys, flag)\n"
    )
    load(source.format(5))["f"](torch.zeros(5))
    with pytest.raises(AssertionError, match=r"file\.py:3.*keys is 5"):
        load(source.format(6))["f"](torch.zeros(5))


def test_a_size_is_fixed_anew_in_each_call():
    double = load("def f(n):\n    x = torch.zeros(n)  # (rows)\n    return x\n")["f"]
    double(2)
    double(3)


def test_arithmetic_on_an_unknown_name_fails():
    with pytest.raises(AssertionError, match="dim is not known there"):
        after("(2, 3, dim/2)")


def test_an_attribute_of_self_is_a_number_too():
    source = (
        "class Layer:\n"
        "    heads = 2\n"
        "    def f(self, x):\n"
        "        y = x.unflatten(0, (self.heads, -1))  # (heads, {})\n"
        "        self.y = y  # ({}, width)\n"
    )
    load(source.format("4/heads", 2))["Layer"]().f(torch.zeros(4))
    for axes in (("3/heads", 2), ("4/heads", 3)):
        with pytest.raises(AssertionError, match="the comment says"):
            load(source.format(*axes))["Layer"]().f(torch.zeros(4))


def test_the_value_returned_is_checked():
    source = "def f(x):\n    return (\n        x + 1\n    )  # (..., {})\n"
    assert torch.equal(load(source.format(3))["f"](torch.zeros(2, 3)), torch.ones(2, 3))
    with pytest.raises(AssertionError, match=r"file\.py:4"):
        load(source.format(2))["f"](torch.zeros(2, 3))


def test_one_shape_holds_for_every_element_of_a_tuple():
    source = "def f(x):\n    q, k = x.unbind(0)  # ({})\n    return q, k  # ({})\n"
    load(source.format("n", "3"))["f"](torch.zeros(2, 3))
    for shapes in (("2", "3"), ("3", "2")):
        with pytest.raises(AssertionError, match="the comment says"):
            load(source.format(*shapes))["f"](torch.zeros(2, 3))


def test_several_shapes_hold_for_the_elements_in_turn():
    source = "def f():\n    return torch.zeros(2), torch.zeros(3)  # {}\n"
    load(source.format("(2), (3)"))["f"]()
    for shapes in ("(3), (2)", "(2), (3), (3)", "(2), (2)"):
        with pytest.raises(AssertionError, match=r"file\.py:2"):
            load(source.format(shapes))["f"]()


def test_other_assignments_are_checked_as_well():
    for line in ("x += 1", "x: object = x + 1", "x = y = x + 1", "x[:, 0:2] = 1"):
        source = f"def f():\n    x = torch.zeros(3, 2)\n    {line}  # (3, {{}})\n"
        load(source.format(2))["f"]()
        with pytest.raises(AssertionError, match=r"file\.py:3"):
            load(source.format(1))["f"]()


def test_module_level_assignments_are_checked():
    load("x = torch.zeros(3)  # (3)\n")
    with pytest.raises(AssertionError, match=r"file\.py:1"):
        load("x = torch.zeros(3)  # (2)\n")


def test_a_parameter_is_checked_when_the_function_returns():
    source = (
        "def f(\n"
        "    q,  # (..., queries, dim)\n"
        "    bias=None,  # (queries, keys)\n"
        "):\n"
        "    if q.ndim < 2:\n"
        "        raise ValueError('too flat')\n"
        "    q = q[..., 0]\n"
        "{}"
    )
    for end in ("    return q  # (..., queries)\n", "    return\n", "    q = q + 1\n"):
        f = load(source.format(end))["f"]
        f(torch.zeros(5, 4, 3))
        f(torch.zeros(4, 3), torch.zeros(4, 9))
        with pytest.raises(ValueError, match="too flat"):
            f(torch.zeros(3))
        with pytest.raises(AssertionError, match=r"file\.py:3: the comment says \(queries, keys\)"):
            f(torch.zeros(4, 3), torch.zeros(3, 9))


def test_what_has_no_shape_fails():
    with pytest.raises(AssertionError, match="the value is a int"):
        after("(2)", "3")


@each_of(
    "source",
    [
        "def f(x, y):  # (batch, dim)\n    return x\n",
        "def f(x):\n    g(  # (batch, dim)\n        x)\n",
        "def f(x):\n    for y in x:  # (batch, dim)\n        pass\n",
        "def f(x):\n    x.sin()  # (batch, dim)\n",
        "class A:\n    weight: object  # (batch, dim)\n",
        "def f(x):\n    y = [\n        x,  # (batch, dim)\n    ]\n",
    ],
)
def test_a_comment_that_nothing_would_check_stops_the_import(source):
    with pytest.raises(SyntaxError, match=r"file\.py:\d: a shape stands where nothing checks it"):
        load(source)


@each_of(
    "comment",
    [
        "(batch heads)",
        "(dim, ...)",
        "(f(dim))",
        "(dim.T)",
        "(batch",
        "(see page 3)",
        "(-1)",
        "(2.0)",
    ],
)
def test_a_comment_that_cannot_be_read_stops_the_import(comment):
    with pytest.raises(SyntaxError, match=r"file\.py:2: cannot read the shape"):
        after(comment)


def test_prose_is_left_alone():
    load("# (on a line of its own)\nx = torch.zeros(3)  # three zeros (they are floats)\n")


def test_docstrings_line_numbers_and_default_values_survive():
    source = 'def f(\n    x,  # (n)\n    y=1,\n):\n    """Read me."""\n    return x / (y - 1)  # (n)\n'
    f = load(source)["f"]
    assert f.__doc__ == "Read me."
    assert f.__defaults__ == (1,)
    with pytest.raises(TypeError) as caught:
        f(torch.zeros(2), "one")
    assert caught.traceback[-1].lineno + 1 == 6


def test_nested_functions_have_axes_of_their_own():
    load(
        "def f():\n"
        "    def g(\n        y,  # (n)\n    ):\n        return y[:2]  # (m)\n"
        "    x = torch.zeros(7)  # (n)\n"
        "    return g(torch.zeros(3))\n"
    )["f"]()


@pytest.mark.slow
def test_compiled_code_has_no_assertions_and_no_graph_break():
    f = load("def f(x):\n    y = x + 1  # (n, n)\n    return y\n")["f"]
    with pytest.raises(AssertionError):
        f(torch.zeros(2, 3))
    compiled = torch.compile(f, fullgraph=True, backend="eager")
    assert torch.equal(compiled(torch.zeros(2, 3)), torch.ones(2, 3))


def test_only_the_installed_package_is_checked(tmp_path, monkeypatch):
    for package in ("checked_shapes", "unchecked_shapes"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
        (tmp_path / package / "lie.py").write_text("import torch\nx = torch.zeros(3)  # (2)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    shape_comments.install("checked_shapes")
    importlib.import_module("unchecked_shapes.lie")
    for _ in range(2):  # no bytecode of an unchecked or a first import may be used again
        with pytest.raises(AssertionError, match=r"lie\.py:2: the comment says \(2\)"):
            importlib.import_module("checked_shapes.lie")
    assert not list((tmp_path / "checked_shapes").rglob("*.pyc"))
    with pytest.raises(RuntimeError, match="was imported before"):
        shape_comments.install("unchecked_shapes")


def test_the_snippets_are_imported_through_the_checker():
    module = importlib.import_module("snippets.attention")
    assert isinstance(module.__spec__.loader, shape_comments.Loader)
