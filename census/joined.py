"""Facts of a model joined: each a value, its witness, and whether a second one agrees."""

OF_ALL = ("rotation", "windows", "sinks", "temperature")
OF_ROTATION = ("layout", "share", "base", "scaling", "bare")
SEEN_TWICE = ("added", "biased", "in_score")
ALONE = ("context", "window")


def joined(row):
    """{fact: {"value", "witness", "agrees"}}; agrees is None where one witness alone speaks.

    What is measured stands before what is declared. That something is added, biased or in the score is said
    only where it is measured and the source can do it; measured without source it is "disputed".
    """
    measured, declared, reached = (row.get(name) or {} for name in ("measured", "declared", "reachable"))
    facts = {name: _first(name, measured, declared) for name in OF_ALL}
    if facts["rotation"]["value"] != "no":
        facts |= {name: _first(name, measured, declared) for name in OF_ROTATION}
    facts |= {name: _twice(measured.get(name), reached.get(name)) for name in SEEN_TWICE}
    facts |= {name: _fact(declared[name], "declared") for name in ALONE if name in declared}
    return facts


def _first(name, measured, declared):
    seen, said = measured.get(name), declared.get(name)
    if name == "windows" and said and not seen:  # it may be longer than the text that was read
        return _fact(said, "declared", None if seen is None else False)
    if seen in (None, "unknown"):
        return _fact(said, "declared") if said is not None else _fact("unknown", "none")
    return _fact(seen, "measured", None if said is None else _digits(seen) == _digits(said))


def _digits(value):
    """Numbers to the three digits to which a base is measured."""
    numbers = isinstance(value, list) and not any(isinstance(one, str) for one in value)
    return [f"{one:.3g}" for one in value] if numbers else value


def _twice(seen, reached):
    if seen in (None, "unknown"):
        return _fact("unknown", "none")
    if seen == "no":
        return _fact("no", "measured", None if reached else True)
    return _fact(seen, "measured and source", True) if reached else _fact("disputed", "measured alone", False)


def _fact(value, witness, agrees=None):
    return {"value": value, "witness": witness, "agrees": agrees}
