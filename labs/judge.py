"""Say what is wrong with a function, not merely that something is.

A lab knows the right function and what often goes wrong. `judge` runs them
and yours on the same cases and says which of them yours behaves like. What
goes wrong stands in a file beside this one, as edits of the solution.
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
    """The solution of a step, and its mistakes as `judge` takes them.

    lab    the files to read: lab.py for its solutions, lab.toml for mistakes
    step   the function; lab.toml lists its mistakes under its name
    names  what the solutions use, globals() of the lab
    pairs  whether two mistakes may be made together
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
    says = {}  # of the solution with a mistake, or with two
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
    """The cells of a lab that solve its steps."""
    head = ' tags=["solution"]\n'
    cells = re.split(r"^# %%", text, flags=re.M)
    return [
        cell.removeprefix(head) for cell in cells if cell.startswith(head)
    ]


# Both take longer than most checks, and a learner checks again and again.
_listed = functools.cache(tomllib.loads)


@functools.cache
def _compiled(solution):
    return compile(solution, "<solution>", "exec")


def _several(value):
    return [value] if isinstance(value, str) else value


def judge(yours, right, cases, mistakes, *, call=None, tolerance=1e-4):
    """Print that `yours` is right, or what is wrong; whether it is right.

    cases      words -> arguments, such as {"one head": (x, 1)}
    mistakes   (function that makes one, what to say) for each typical one
    call       how a function is tried, if not by function(*arguments)
    tolerance  relative to the largest number expected
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
            stops = f"For {words}, {name} stops: {_explain(error, yours)} "
            return _no(stops + named([*got, error]))
        if _unfinished(got[-1]):
            return _no(
                f"{name} returns nothing yet. Compute the result and hand it "
                "back with `return`."
            )
        if _changed(given, mine) and not _changed(given, theirs):
            return _no(
                f"For {words}, {name} changes the tensor that it was given. "
                "Make a new one: the caller still needs the old."
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
    """What to say to the mistake that gives the same, or ''; to one that has
    another dtype only if none has the same, and the numbers are wrong."""
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
    """What is wrong in the first case, what is right, and what is alike."""
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
    """Print it in lines that fit a phone."""
    print(textwrap.fill(" ".join(text.split()), 60, break_long_words=False))


def _list(words):
    return "; ".join(words)


def _explain(error, function):
    """What was raised, and in which line of the learner's code."""
    code = getattr(function, "__code__", None)
    lines = [
        frame.line
        for frame in traceback.extract_tb(error.__traceback__)
        if code
        and frame.filename == code.co_filename
        and frame.line
        and frame.name == code.co_name
    ]
    place = f" It happens in the line `{lines[-1]}`." if lines else ""
    what = " ".join(str(error).split()) or "no more is said"
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
    """How a variant gives the same in each case, or stops alike, or ''."""
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
    """Whether all results are the same, whatever their dtype."""
    pairs = zip(these, those)
    return not any(_differ(a, b, tolerance, exact=False) for a, b in pairs)


def _pattern(got, expected, tolerance):
    """What all the differences have in common, as a sentence, or ''."""
    ours, theirs = _numbers(got), _numbers(expected)
    if len(ours) != len(theirs) or _alike(ours, theirs, tolerance):
        return ""
    tried = _patterns(list(zip(ours, theirs)), tolerance)
    return next(says for found, says in tried if found)


def _patterns(pairs, tolerance):
    """Whether a pattern fits, and what is said if no other did before."""

    def near(a, b):
        return a.shape == b.shape and not _values_differ(a, b, tolerance)

    def fits(change):
        return all(near(*change(a, b)) for a, b in pairs)

    yield (
        any(a.isnan().any() > b.isnan().any() for a, b in pairs),
        "nan comes from zero by zero, from infinity less infinity, and "
        "from a softmax over nothing but minus infinity.",
    )
    flat = any(x.ndim < 2 for pair in pairs for x in pair)
    yield (
        not flat and fits(lambda a, b: (a.mT, b)),
        "It would be right with rows and columns in each other's place.",
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
        "All finite numbers are right. What is wrong is where infinity "
        "stands, or its sign.",
    )
    yield (
        fits(lambda a, b: (_in_order(a), _in_order(b))),
        "The numbers are the right ones, but they stand in other places.",
    )
    times, more = _times(a, b), (a - b).mean().item()
    yield (
        near(a, times * b),
        f"All numbers are {times:.5g} times what they should be.",
    )
    yield near(a, b + more), f"All numbers differ by the same, {more:+.5g}."
    yield (
        near(a * b, torch.ones_like(b)),
        "All numbers are one over what they should be.",
    )
    yield (
        near(a.abs(), b.abs()),
        "All sizes are right. Some signs are wrong.",
    )
    own = ", ".join(f"{_times(*pair):.4g}" for pair in pairs)
    yield (
        fits(lambda a, b: (a, _times(a, b) * b)),
        "All numbers of a case are the same multiple of what they "
        f"should be, but each case has its own: {own}.",
    )
    first = next(pair for pair in pairs if not near(*pair))
    yield True, _parted(*first, tolerance)


def _numbers(results):
    """The numbers of all results, in tensors of float64."""
    plain = [
        torch.tensor(each) if isinstance(each, (int, float)) else each
        for each in results
    ]
    return [each.double() for each in _tensors(plain)]


def _times(a, b):
    """The multiple of b that is nearest to a."""
    return ((a * b).sum() / b.square().sum()).item()


def _parted(a, b, tolerance):
    """Which part of one axis has all that is wrong, as a sentence, or ''."""
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
    return f"All that is wrong there has index {some}{more} on axis {axis}."


def _in_order(x):
    return x.flatten().sort().values


def _differ(got, expected, tolerance, exact=True):
    """How a result differs from another, as the end of a sentence, or ''."""
    if isinstance(expected, (tuple, list, dict)):
        return _parts_differ(got, expected, tolerance, exact)
    if isinstance(expected, str):
        same = isinstance(got, str) and got == expected
        return "" if same else f"returns {got!r}; expected is {expected!r}."
    if not isinstance(expected, torch.Tensor):
        return _number_differs(got, expected, tolerance)
    if not isinstance(got, torch.Tensor):
        return _other_kind(got, "tensor")
    if got.shape != expected.shape:
        have, want = tuple(got.shape), tuple(expected.shape)
        return f"returns the shape {have}; expected is {want}."
    why = _values_differ(got.double(), expected.double(), tolerance)
    if exact and got.dtype != expected.dtype:
        have = got.dtype if why else f"the right numbers, but as {got.dtype}"
        return f"returns {have}; expected is {expected.dtype}."
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
    return f"returns a result of type {have}; expected is a {kind}."


def _bad(a, b, tolerance):
    """Where a is not b, up to the tolerance."""
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
        return f"returns {have}; expected is {want}."
    return (
        f"returns {have} at index {place}; expected is {want}. "
        f"{int(bad.sum())} of {bad.numel()} numbers differ."
    )


def _apart(a, b):
    """Two numbers in few digits, or in more where few show no difference."""
    few = f"{a:.5g}", f"{b:.5g}"
    return few if len(set(few)) > 1 else (f"{a:.9g}", f"{b:.9g}")


def _parts_differ(got, expected, tolerance, exact):
    kind = type(expected).__name__
    if not isinstance(got, type(expected)) or len(got) != len(expected):
        have = f"result of type {type(got).__name__}"
        if isinstance(got, (tuple, list, dict)):
            have += f" and length {len(got)}"
        return f"returns a {have}; expected is a {kind} of {len(expected)}."
    keys = expected if kind == "dict" else range(len(expected))
    for key in keys:
        if kind == "dict" and key not in got:
            return f"returns nothing under {key!r}."
        why = _differ(got[key], expected[key], tolerance, exact)
        if why:
            return why.replace("returns ", f"returns, as part {key!r}, ", 1)
    return ""
