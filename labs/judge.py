"""Say what is wrong with a function, not merely that something is.

A lab knows the right function and what often goes wrong. `judge` runs them
and yours on the same cases and says which of them yours behaves like.
"""

import copy
import textwrap
import traceback

import torch


def judge(yours, right, cases, mistakes, *, call=None, tolerance=1e-4):
    """Print that `yours` is right, or what is wrong; whether it is right.

    cases      words -> arguments, such as {"one head": (x, 1)}
    mistakes   (function that makes one, what to say) for each typical one
    call       how a function is tried, if not by function(*arguments)
    tolerance  relative to the largest number expected
    """
    call = call or (lambda function, *given: function(*given))
    name = f"`{getattr(yours, '__name__', 'your function')}`"
    got, expected = [], []
    for words, given in cases.items():
        mine, theirs = copy.deepcopy(given), copy.deepcopy(given)
        expected.append(call(right, *theirs))
        try:
            got.append(call(yours, *mine))
        except Exception as error:  # whatever the learner's code raises
            return _no(f"For {words}, {name} stops: {_explain(error, yours)}")
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
    tried = [(_try(call, variant, cases), says) for variant, says in mistakes]
    for exact in (True, False):  # the second time, whatever the dtype
        for made, says in tried:
            apart = made and not _alike(expected, made, tolerance, exact)
            if apart and _alike(got, made, tolerance, exact):
                return _no(says)
    first = next(n for n, why in enumerate(wrong) if why)
    good = [words for words, why in zip(cases, wrong) if not why]
    also = f" Right so far: {_list(good)}." if good else ""
    return _no(f"For {list(cases)[first]}, {name} {wrong[first]}{also}")


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


def _try(call, variant, cases):
    """What a variant makes of the cases; None if it cannot take them."""
    try:
        return [
            call(variant, *copy.deepcopy(each)) for each in cases.values()
        ]
    except Exception:
        return None


def _alike(these, those, tolerance, exact):
    pairs = zip(these, those)
    return not any(_differ(a, b, tolerance, exact) for a, b in pairs)


def _differ(got, expected, tolerance, exact=True):
    """How a result differs from another, as the end of a sentence, or ''."""
    if isinstance(expected, (tuple, list, dict)):
        return _parts_differ(got, expected, tolerance, exact)
    if isinstance(expected, str):
        same = isinstance(got, str) and got == expected
        return "" if same else f"returns {got!r}; expected is {expected!r}."
    plain = not isinstance(expected, torch.Tensor)
    wide = torch.float64 if plain else None
    try:
        a = torch.as_tensor(got, dtype=wide)
    except (TypeError, ValueError, RuntimeError):
        a = None
    if (
        a is None
        or (plain and a.numel() != 1)
        or (not plain and not isinstance(got, torch.Tensor))
    ):
        kind = "number" if plain else "tensor"
        have = type(got).__name__
        return f"returns a result of type {have}; expected is a {kind}."
    b = torch.as_tensor(expected, dtype=wide)
    if plain:
        a = a.reshape(b.shape)
    elif a.shape != b.shape:
        have, want = tuple(a.shape), tuple(b.shape)
        return f"returns the shape {have}; expected is {want}."
    elif exact and a.dtype != b.dtype:
        wrong = _values_differ(a.double(), b.double(), tolerance)
        have = a.dtype if wrong else f"the right numbers, but as {a.dtype}"
        return f"returns {have}; expected is {b.dtype}."
    return _values_differ(a.double(), b.double(), tolerance)


def _values_differ(a, b, tolerance):
    size = b[b.isfinite()].abs().max().item() if b.isfinite().any() else 1.0
    close = (a - b).abs() <= tolerance * (size or 1.0)
    bad = ~(close | (a == b) | (a.isnan() & b.isnan()))
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
