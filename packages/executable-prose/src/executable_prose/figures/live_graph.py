"""Export what moves a live figure: the graph of its function, and where its numbers go.

The graph is that of the tested code itself, in Core ATen, traced with the values that the controls begin
with. A branch that another value would take differently is frozen in it, so each graph is run at the ends
of every control and in between, and must give what the function gives.
"""

import functools
import itertools
import math
import operator
import random
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from unittest import mock

import torch
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.text import Text
from torch import Tensor
from torch._decomp import core_aten_decompositions
from torch.func import functionalize
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from executable_prose import project
from executable_prose.figures.live import Choice, Live, Order, Slider
from executable_prose.figures.live_html import FIELD, fill
from executable_prose.figures.svg import LIVE, MAPS, FigureError, to_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from executable_prose.outcome import Result

EVALUATOR = "graph.js"
DTYPES = {torch.float64: "f8", torch.float32: "f4", torch.int64: "i8", torch.int32: "i4", torch.bool: "b1"}
KINDS = {Line2D: "line", PathCollection: "points", BarContainer: "bars", AxesImage: "image", Text: "text"}
STOPS = 8  # at random, besides the ends
GRAPHS = 16  # at most, one for each combination of choices


def drawn(figure: "Figure", live: Live, name: str) -> "Result":
    """The figure as SVG, in which all that moves can be found, and all that the page needs to move it."""
    _check_controls(live)
    made = live.start()
    _check_words(live, made)
    numbers = {key: value.item() for key, value in made.items() if key not in live.moves}
    values = live.words({key: each.start for key, each in live.controls.items()}) | numbers
    for key, artist in live.moves.items():
        for number, part in enumerate(artist if isinstance(artist, BarContainer) else [artist]):
            part.set_gid(f"{LIVE}{key}-{number}")
    for key, text in live.texts.items():  # an empty one would leave nothing that can be filled later
        live.moves[key].set_text(fill(text, values) or "\N{NO-BREAK SPACE}")  # type: ignore[attr-defined]
    svg = to_svg(figure, name)  # before the rest: now its axes have their places
    return {
        "figure": svg,
        "live": {
            "controls": {key: vars(each) for key, each in live.controls.items()},
            "values": values,
            "moves": {key: _move(key, artist, made.get(key), figure) for key, artist in live.moves.items()},
            "graphs": {"|".join(chosen.values()): _graph(live, chosen) for chosen in combinations(live)},
            "says": live.says,
            "call": live.call,
            "title": live.title,
            "texts": live.texts,
        },
    }


def inputs(live: Live) -> dict[str, Slider | Order]:
    """The controls whose numbers a graph takes; each choice has a graph of its own."""
    return {name: each for name, each in live.controls.items() if not isinstance(each, Choice)}


def combinations(live: Live) -> list[dict[str, str]]:
    """Every way to choose, each as {control: option}."""
    choices = {name: each.options for name, each in live.controls.items() if isinstance(each, Choice)}
    return [dict(zip(choices, chosen, strict=True)) for chosen in itertools.product(*choices.values())]


def _check_controls(live):
    for name, each in inputs(live).items():
        if isinstance(each, Order):
            if len(set(each.cards)) < max(2, len(each.cards)):
                raise FigureError(f"control {name!r} needs two cards or more, no two with the same words")
            continue
        if not each.low <= each.start <= each.high or not each.low < each.high or each.step <= 0:
            raise FigureError(f"control {name!r} must go from low to high by steps, with its start between")
        steps = (each.start - each.low) / each.step
        if not each.log and abs(steps - round(steps)) > 1e-6:
            raise FigureError(f"control {name!r} starts at {each.start}, between two of its steps")
        if each.log and any(float(f"{value:.3g}") != value for value in (each.low, each.start, each.high)):
            raise FigureError(f"control {name!r} spans powers of ten, and stops at numbers of three digits")
        if each.drag and each.drag not in live.moves:
            raise FigureError(f"control {name!r} is dragged by {each.drag!r}, which does not move")
    for name in set(live.controls) - set(inputs(live)):
        choice = live.controls[name]
        if choice.start not in choice.options:
            raise FigureError(f"control {name!r} starts with {choice.start!r}, which is none of its options")
    if (count := len(combinations(live))) > GRAPHS:
        raise FigureError(f"there are {count} combinations of choices; expected at most {GRAPHS}")


def _check_words(live, made):
    numbers = {name for name, value in made.items() if name not in live.moves}
    known = numbers | set(live.controls)
    own = [(each.shows, {"value"}) for each in live.controls.values() if isinstance(each, Slider)]
    for text, names in [(text, known) for text in (live.says, live.call, *live.texts.values())] + own:
        if "{" in FIELD.sub(lambda match, names=names: "" if match["name"] in names else match[0], text):
            raise FigureError(
                f"cannot fill {text!r}: expected fields as in Live, of {', '.join(sorted(names))}"
            )
    for match in FIELD.finditer(live.call):
        if match["name"] in inputs(live) and match["digits"]:
            raise FigureError(
                f"the code rounds {match[0]!r}: write {{{match['name']}}}, the number that was used"
            )
    if missing := set(live.moves) - set(made) - set(live.texts):
        raise FigureError(f"nothing is returned for {', '.join(sorted(missing))}, which should move")
    if strange := {name for name in live.texts if not isinstance(live.moves.get(name), Text)}:
        raise FigureError(f"texts names {', '.join(sorted(strange))}, which is no text in moves")


def _graph(live, chosen):
    """The function's graph for one combination of choices."""
    moved = inputs(live)

    def function(*values):
        return live.function(**dict(zip(moved, values, strict=True)), **chosen)

    module, graph = traced(function, [each.start for each in moved.values()])
    for values in stops(moved, STOPS):
        at = ", ".join(f"{key}={value}" for key, value in zip(moved, values, strict=True))
        with torch.no_grad():
            expected, given = function(*_tensors(values)), module(*_tensors(values))
        for name, tensor in expected.items():
            if not _close(tensor, given[name]):
                raise FigureError(
                    f"{name!r} at {' '.join([at, *chosen.values()])} is not what the exported graph gives: "
                    "the function takes another way there than at the start, or makes a number of a control"
                )
    return graph


def traced(function: Callable[..., dict[str, Tensor]], start: list) -> tuple[GraphModule, dict]:
    """The graph of a function of numbers: as a module of torch, and as graph.js runs it."""
    functional = functionalize(function, remove="mutations")
    graphed = make_fx(functional, _decompositions(), _error_on_data_dependent_ops=False)
    with (
        torch.no_grad(),
        # Where a snippet has a way of its own for compilers, this is one.
        mock.patch("torch.compiler.is_compiling", return_value=True),
        # torch notes the lines that made a tensor; they decide nothing, take long, and would count as read.
        mock.patch("traceback.extract_stack", list),
    ):
        module = graphed(*_tensors(start))
    for node in reversed(module.graph.nodes):
        if node.op in ("call_function", "get_attr") and not node.users:
            module.graph.erase_node(node)
    module.recompile()
    return module, _written(module)


@functools.cache
def _decompositions():
    return dict(
        core_aten_decompositions().items()
    )  # by itself it lists all of torch's operations at each use


def _tensors(values):
    return [torch.tensor(value, dtype=torch.float64) for value in values]


def stops(moved: dict[str, Slider | Order], count: int, seed: int = 0) -> Iterator[list]:
    """Values for all inputs at once: both ends of each range, and random values that a reader can reach."""
    chance = random.Random(seed)
    start = {name: each.start for name, each in moved.items()}
    for name, each in moved.items():
        for end in [each.start[::-1]] if isinstance(each, Order) else (each.low, each.high):
            yield list((start | {name: end}).values())
    for _ in range(count):
        yield [_stop(each, chance) for each in moved.values()]


def _stop(control, chance):
    if isinstance(control, Order):
        return chance.sample(control.start, len(control.start))
    slider, share = control, chance.random()
    if slider.log:  # as the page has it, with three digits
        return float(f"{slider.low * (slider.high / slider.low) ** share:.3g}")
    steps = math.floor((slider.high - slider.low) / slider.step)
    return float(f"{slider.low + slider.step * round(share * steps):.12g}")


def _close(expected, given):
    """Equal but for what a decomposition rounds otherwise."""
    room = 1e-5 if expected.dtype == torch.float32 else 1e-9
    return torch.allclose(given.double(), expected.double(), rtol=room, atol=room)


def _written(module):
    """The module's graph as graph.js reads it."""
    known, numbers, inputs, nodes, outputs = operations(), {}, 0, [], {}

    def plain(value):
        if isinstance(value, Node):
            return f"@{numbers[value]}"
        if isinstance(value, (list, tuple)):
            return [plain(each) for each in value]
        if isinstance(value, int) and abs(value) > 2**53:
            return None  # to the end
        return value

    def single(value):
        """A number beside a float32 tensor counts in float32."""
        if isinstance(value, float):
            return torch.tensor(value, dtype=torch.float32).item()
        if not (isinstance(value, Node) and _made(value).ndim == 0 and _made(value).is_floating_point()):
            return value
        nodes.append(["_to_copy", [f"@{numbers[value]}"], "f4"])
        return f"@{inputs + len(nodes) - 1}"

    for node in module.graph.nodes:
        if node.op == "output":
            outputs = {name: numbers[value] for name, value in node.args[0].items()}
        elif node.op == "placeholder":
            numbers[node] = inputs
            inputs += 1
        elif node.op == "get_attr":
            tensor = getattr(module, node.target)
            nodes.append(["constant", [_exact(tensor), list(tensor.shape)], DTYPES[tensor.dtype]])
        else:
            name, arguments = _operation(node)
            if name not in known:
                raise FigureError(f"OPERATIONS of {EVALUATOR} has no {name!r}; say the same with what it has")
            if _in_float32(arguments):
                arguments = [single(argument) for argument in arguments]
            dtype = getattr(_made(node), "dtype", None)
            nodes.append([name, [plain(argument) for argument in arguments], DTYPES.get(dtype)])
        numbers.setdefault(node, inputs + len(nodes) - 1)
    return {"inputs": inputs, "nodes": nodes, "outputs": outputs}


def _made(node):
    return node.meta.get("val")


def _in_float32(arguments):
    """Whether torch computes with these in float32: tensors of no axis do not decide it beside others."""
    tensors = [_made(each) for each in arguments if isinstance(each, Node)]
    wide = [each for each in tensors if isinstance(each, torch.Tensor) and each.ndim]
    return bool(wide) and len(wide) < len(arguments) and torch.result_type(wide[0], wide[-1]) == torch.float32


def _operation(node):
    """An operation's name, and its arguments in the order of its schema, but those of dtype and memory."""
    if node.target is operator.getitem:
        return "getitem", list(node.args)
    schema = node.target._schema
    given = dict(zip((each.name for each in schema.arguments), node.args, strict=False)) | node.kwargs
    left_out = ("dtype", "layout", "device", "pin_memory", "memory_format")
    arguments = [
        given.get(each.name, each.default_value if each.has_default_value() else None)
        for each in schema.arguments
        if each.name not in left_out
    ]
    return schema.name.removeprefix("aten::"), arguments


def _exact(tensor):
    """The numbers of a tensor, float32 in the few digits that give them back."""
    if tensor.dtype == torch.float32:
        return [float(str(each)) for each in tensor.flatten().numpy()]
    return tensor.flatten().tolist()


def operations() -> set[str]:
    """The names of those that the page's script has."""
    text = (project.ENGINE / "assets" / EVALUATOR).read_text(encoding="utf-8")
    return set(re.findall(r"^  (\w+)(?=[:,])", text[text.index("const OPERATIONS") :], re.M))


def _move(name, artist, made, figure):
    """Where an artist's numbers go: its kind, and from the units of its axes to those of the SVG."""
    kind = next((kind for of, kind in KINDS.items() if isinstance(artist, of)), None)
    if kind is None:
        raise FigureError(
            f"{name!r} is a {type(artist).__name__}; what moves is a {', '.join(KINDS.values())}"
        )
    if made is None:  # a text whose words change and whose place does not
        return {"kind": kind}
    shape = tuple(made.shape)
    wanted = {"text": (2,), "bars": kind == "bars" and (len(artist),), "image": shape[:2]}
    if shape != wanted.get(kind, (*shape[:1], 2)):
        expected = {"text": "(2,)", "bars": "(bars,)", "image": "(rows, columns)"}.get(kind, "(points, 2)")
        raise FigureError(f"what is returned for {name!r}, {kind}, has the shape {shape}, not {expected}")
    if kind == "image":
        if artist.get_cmap().name not in MAPS:
            raise FigureError(f"{name!r} must have one of the colour maps {' and '.join(MAPS)}")
        limits = [float(limit) for limit in artist.get_clim()]
        upwards = artist.origin == "lower"
        return {"kind": kind, "map": artist.get_cmap().name, "limits": limits, "upwards": upwards}
    axes = (artist.patches[0] if kind == "bars" else artist).axes
    move = {"kind": kind, "x": _axis(axes, figure, 0), "y": _axis(axes, figure, 1)}
    if kind == "bars":
        move["spans"] = [[bar.get_x(), bar.get_x() + bar.get_width()] for bar in artist]
    return move


def _axis(axes, figure, which):
    """[start, slope, whether of the logarithm, low, high]: an SVG's coordinate is start + slope * number."""
    scale = (axes.get_xscale, axes.get_yscale)[which]()
    if scale not in ("linear", "log"):
        raise FigureError(f"an axis has the scale {scale!r}; expected 'linear' or 'log'")
    ends = (axes.get_xlim, axes.get_ylim)[which]()
    corners = axes.transData.transform(list(zip(axes.get_xlim(), axes.get_ylim(), strict=True)))
    points = corners[:, which] * 72 / figure.dpi
    if which == 1:
        points = figure.get_figheight() * 72 - points
    a, b = (math.log10(end) if scale == "log" else end for end in ends)
    slope = (points[1] - points[0]) / (b - a)
    return [round(float(points[0] - slope * a), 4), round(float(slope), 6), scale == "log", *sorted(ends)]
