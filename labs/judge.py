"""Check a learner's function and report what is wrong with it.

A lab comes with the correct function and a list of typical mistakes. `judge`
runs these and the learner's function on the same cases and reports which of
them the learner's function behaves like. The mistakes are in a TOML file next
to this one, as edits of the solution.
"""

import copy
import functools
import itertools
import re
import textwrap
import tomllib
import traceback
import warnings
from pathlib import Path

import torch


def right_and_wrong(lab, step, names, pairs=True):
    """Return the solution of a step, and its mistakes as `judge` takes them.

    Args:
        lab: Name of the lab: lab.py has the solutions, lab.toml the mistakes.
        step: Name of the function, under which lab.toml lists its mistakes.
        names: What the solutions use: globals() of the lab.
        pairs: Whether to include pairs of mistakes.

    Returns:
        The function of the solution, and a list of (function, feedback).
    """
    here = Path(__file__).parent
    solutions = _solutions((here / f"{lab}.py").read_text(encoding="utf-8"))
    listed = _listed((here / f"{lab}.toml").read_text(encoding="utf-8"))
    (solution,) = [each for each in solutions if f"def {step}(" in each]
    others = [_compiled(each) for each in solutions]

    @functools.cache
    def made(text):
        space = dict(names)
        for each in (*others, text):
            exec(each, space)
        return space[step]

    edits = [
        (each["was"], _several(way["now"]), way["says"])
        for each in listed[step]
        for way in each["ways"]
    ]
    says = {}  # feedback for the solution with one mistake or two
    for was, writings, words in edits:
        for now in writings:
            says.setdefault(solution.replace(was, now), words)
    for (text, first), (was, (now, *_), then) in itertools.product(
        [*says.items()], edits
    ):
        if pairs and text.count(was) == 1:
            words = f"Two things. First: {first} Then: {then}"
            says.setdefault(text.replace(was, now), words)

    def variant(text):
        return lambda *given: made(text)(*given)

    return made(solution), [
        (variant(text), say) for text, say in says.items()
    ]


def _solutions(text):
    """Return the cells of a lab that contain its solutions."""
    head = ' tags=["solution"]\n'
    cells = re.split(r"^# %%", text, flags=re.M)
    return [
        cell.removeprefix(head) for cell in cells if cell.startswith(head)
    ]


# Both take longer than most checks, and a learner runs a check many times.
_listed = functools.cache(tomllib.loads)


@functools.cache
def _compiled(solution):
    return compile(solution, "<solution>", "exec")


def _several(value):
    return [value] if isinstance(value, str) else value


def judge(yours, right, cases, mistakes, *, call=None, tolerance=1e-4):
    """Compare `yours` with `right`, and print feedback.

    Args:
        yours: The learner's function.
        right: The reference function.
        cases: Description -> arguments, such as {"one head": (x, 1)}.
        mistakes: (function with the mistake, feedback) for each typical one.
        call: How to call a function, if not as function(*arguments).
        tolerance: Relative to the largest expected number.

    Returns:
        Whether `yours` is right.
    """
    call = call or (lambda function, *given: function(*given))
    name = f"`{getattr(yours, '__name__', 'your function')}`"

    def named(got):
        return _named(
            got, expected, cases.values(), mistakes, call, tolerance
        )

    got, expected = [], []
    for words, given in cases.items():
        mine, theirs = copy.deepcopy(given), copy.deepcopy(given)
        expected.append(call(right, *theirs))
        try:
            got.append(call(yours, *mine))
        except Exception as error:  # whatever the learner's code raises
            stops = f"For {words}, {name} raises {_explain(error, yours)} "
            return _no(stops + named([*got, error]))
        if _unfinished(got[-1]):
            return _no(
                f"{name} returns nothing yet. Compute the result and "
                "`return` it."
            )
        if _changed(given, mine) and not _changed(given, theirs):
            return _no(
                f"For {words}, {name} modifies its input tensor. Create a "
                "new tensor instead: the caller still needs the original."
            )
    wrong = [_differ(a, b, tolerance) for a, b in zip(got, expected)]
    if not any(wrong):
        return _yes(
            f"Right. {name} agrees with the reference: {_list(cases)}."
        )
    says = named(got)
    return _no(
        says or _described(name, cases, got, expected, wrong, tolerance)
    )


def _named(got, expected, cases, mistakes, call, tolerance):
    """Return the feedback for the mistake with the same results, or ''.

    A mistake whose results differ in dtype counts only if no mistake has the
    same results and the numbers are wrong.
    """
    alike = {}
    for variant, says in mistakes:
        how = _gives(call, variant, cases, got, tolerance)
        if how == "exactly":
            return says
        alike.setdefault(how, says)
    if _alike(got, expected, tolerance):
        return ""
    return alike.get("but for the dtype", "")


def _described(name, cases, got, expected, wrong, tolerance):
    """Describe the first wrong case, the right ones, and what they share."""
    words, why = next(pair for pair in zip(cases, wrong) if pair[1])
    good = [words for words, why in zip(cases, wrong) if not why]
    also = f" Right so far: {_list(good)}." if good else ""
    bad = [pair for pair in zip(got, expected, wrong) if pair[2]]
    mine, theirs, _ = zip(*bad)
    how = _pattern(mine, theirs, tolerance)
    return f"For {words}, {name} {why}{also} {how}"


def _yes(text):
    _say(text)
    return True


def _no(text):
    _say("Not yet. " + text)
    return False


def _say(text):
    """Print text in lines that fit the screen of a phone."""
    print(textwrap.fill(" ".join(text.split()), 60, break_long_words=False))


def _list(words):
    return "; ".join(words)


def _explain(error, function):
    """Describe an error and the line of the learner's code that raised it."""
    code = getattr(function, "__code__", None)
    lines = [
        frame.line
        for frame in traceback.extract_tb(error.__traceback__)
        if code
        and frame.filename == code.co_filename
        and frame.line
        and frame.name == code.co_name
    ]
    place = f" It occurs in the line `{lines[-1]}`." if lines else ""
    what = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {what.rstrip('.')}.{place}"


def _unfinished(value):
    if isinstance(value, (tuple, list)):
        return any(_unfinished(part) for part in value)
    return value is None or value is ...


def _changed(before, after):
    pairs = zip(_tensors(before), _tensors(after))
    return any(
        not torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in pairs
    )


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _tensors(part)


def _gives(call, variant, cases, got, tolerance):
    """Return how a variant gives the same results or errors, or ''."""
    how = "exactly"
    for mine, given in zip(got, cases):
        try:
            with warnings.catch_warnings(action="ignore"):
                made = call(variant, *copy.deepcopy(given))
        except Exception as error:
            if type(error) is not type(mine) or str(error) != str(mine):
                return ""
            continue
        if _differ(mine, made, tolerance, exact=False):
            return ""
        if _differ(mine, made, tolerance):
            how = "but for the dtype"
    return how


def _alike(these, those, tolerance):
    """Return whether all results are equal, whatever their dtype."""
    pairs = zip(these, those)
    return not any(_differ(a, b, tolerance, exact=False) for a, b in pairs)


def _pattern(got, expected, tolerance):
    """Return a sentence on what all differences have in common, or ''."""
    ours, theirs = _numbers(got), _numbers(expected)
    if len(ours) != len(theirs) or _alike(ours, theirs, tolerance):
        return ""
    tried = _patterns(list(zip(ours, theirs)), tolerance)
    return next(says for found, says in tried if found)


def _patterns(pairs, tolerance):
    """Yield whether each pattern fits, and its sentence; the first counts."""

    def near(a, b):
        return a.shape == b.shape and not _values_differ(a, b, tolerance)

    def fits(change):
        return all(near(*change(a, b)) for a, b in pairs)

    yield (
        any(a.isnan().any() > b.isnan().any() for a, b in pairs),
        "nan results from zero divided by zero, from infinity minus "
        "infinity, or from a softmax over nothing but minus infinity.",
    )
    flat = any(x.ndim < 2 for pair in pairs for x in pair)
    yield (
        not flat and fits(lambda a, b: (a.mT, b)),
        "It would be right if rows and columns were swapped.",
    )
    yield any(a.shape != b.shape for a, b in pairs), ""
    a, b = (
        torch.cat([each.flatten() for each in side]) for side in zip(*pairs)
    )
    both = a.isfinite() & b.isfinite()
    yield both.sum() < 2, ""
    elsewhere = not torch.equal(a[~both], b[~both])
    a, b = a[both], b[both]
    yield elsewhere and not near(a, b), ""
    yield (
        elsewhere,
        "All finite numbers are right. Infinities are at the wrong "
        "indices or have the wrong sign.",
    )
    yield (
        fits(lambda a, b: (_in_order(a), _in_order(b))),
        "The numbers are the right ones, but at the wrong indices.",
    )
    times, more = _times(a, b), (a - b).mean().item()
    yield (
        near(a, times * b),
        f"All numbers are {times:.5g} times what they should be.",
    )
    yield near(a, b + more), f"All numbers are off by {more:+.5g}."
    yield (
        near(a * b, torch.ones_like(b)),
        "All numbers are the reciprocals of what they should be.",
    )
    yield (
        near(a.abs(), b.abs()),
        "All absolute values are right. Some signs are wrong.",
    )
    own = ", ".join(f"{_times(*pair):.4g}" for pair in pairs)
    yield (
        fits(lambda a, b: (a, _times(a, b) * b)),
        "All numbers of a case are the same multiple of what they "
        f"should be, but the multiple differs between cases: {own}.",
    )
    first = next(pair for pair in pairs if not near(*pair))
    yield True, _parted(*first, tolerance)


def _numbers(results):
    """Return the numbers of all results, in tensors of float64."""
    plain = [
        torch.tensor(each) if isinstance(each, (int, float)) else each
        for each in results
    ]
    return [each.double() for each in _tensors(plain)]


def _times(a, b):
    """Return the factor by which b comes closest to a."""
    return ((a * b).sum() / b.square().sum()).item()


def _parted(a, b, tolerance):
    """Return a sentence on the part of one axis that is wrong, or ''."""
    bad = _bad(a, b, tolerance)
    found = []
    for axis in range(bad.ndim if bad.ndim > 1 else 0):
        parts = bad.movedim(axis, 0).flatten(1)
        wrong = parts.any(1)
        if not wrong.all():
            share = parts[wrong].double().mean().item()
            found.append((share, axis - bad.ndim, wrong.nonzero().flatten()))
    share, axis, index = max(
        found, key=lambda each: each[0], default=(0.0, 0, bad)
    )
    if share < 0.5:
        return ""
    some = ", ".join(map(str, index[:5].tolist()))
    more = ", ..." if len(index) > 5 else ""
    return f"All wrong numbers there have index {some}{more} on axis {axis}."


def _in_order(x):
    return x.flatten().sort().values


def _differ(got, expected, tolerance, exact=True):
    """Return how two results differ, as the end of a sentence, or ''."""
    if isinstance(expected, (tuple, list, dict)):
        return _parts_differ(got, expected, tolerance, exact)
    if isinstance(expected, str):
        same = isinstance(got, str) and got == expected
        return "" if same else f"returns {got!r}; expected {expected!r}."
    if not isinstance(expected, torch.Tensor):
        return _number_differs(got, expected, tolerance)
    if not isinstance(got, torch.Tensor):
        return _other_kind(got, "tensor")
    if got.shape != expected.shape:
        have, want = tuple(got.shape), tuple(expected.shape)
        return f"returns the shape {have}; expected {want}."
    why = _values_differ(got.double(), expected.double(), tolerance)
    if exact and got.dtype != expected.dtype:
        have = got.dtype if why else f"the right numbers, but as {got.dtype}"
        return f"returns {have}; expected {expected.dtype}."
    return why


def _number_differs(got, expected, tolerance):
    try:
        number = torch.as_tensor(got, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        return _other_kind(got, "number")
    if number.numel() != 1:
        return _other_kind(got, "number")
    wanted = torch.as_tensor(expected, dtype=torch.float64)
    return _values_differ(number.reshape(wanted.shape), wanted, tolerance)


def _other_kind(got, kind):
    have = type(got).__name__
    return f"returns a result of type {have}; expected a {kind}."


def _bad(a, b, tolerance):
    """Return where a and b differ by more than the tolerance."""
    size = b[b.isfinite()].abs().max().item() if b.isfinite().any() else 1.0
    close = (a - b).abs() <= tolerance * (size or 1.0)
    return ~(close | (a == b) | (a.isnan() & b.isnan()))


def _values_differ(a, b, tolerance):
    bad = _bad(a, b, tolerance)
    if not bad.any():
        return ""
    place = bad.nonzero()[0].tolist()
    have, want = _apart(a[tuple(place)].item(), b[tuple(place)].item())
    if not place:
        return f"returns {have}; expected {want}."
    return (
        f"returns {have} at index {place}; expected {want}. "
        f"{int(bad.sum())} of {bad.numel()} numbers differ."
    )


def _apart(a, b):
    """Format two numbers with as many digits as show their difference."""
    few = f"{a:.5g}", f"{b:.5g}"
    return few if len(set(few)) > 1 else (f"{a:.9g}", f"{b:.9g}")


def _parts_differ(got, expected, tolerance, exact):
    kind = type(expected).__name__
    if not isinstance(got, type(expected)) or len(got) != len(expected):
        have = f"result of type {type(got).__name__}"
        if isinstance(got, (tuple, list, dict)):
            have += f" and length {len(got)}"
        return f"returns a {have}; expected a {kind} of {len(expected)}."
    keys = expected if kind == "dict" else range(len(expected))
    for key in keys:
        if kind == "dict" and key not in got:
            return f"returns nothing under the key {key!r}."
        why = _differ(got[key], expected[key], tolerance, exact)
        if why:
            return why.replace("returns ", f"returns, in part {key!r}, ", 1)
    return ""
