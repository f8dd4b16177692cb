"""What the source that a model's class can reach does with positions: evidence, no proof that it runs."""

import ast
import functools
import importlib
import inspect
import pkgutil
import re
import sys
from types import SimpleNamespace

from transformers import MODEL_MAPPING

from snippets.check_positions import model_class

SIGNS = {
    "attention": r"\b(?!\w*NoAttention)[A-Z]\w*(Attention|Attn)\w*(?=\()",
    "rotation": r"rotate_half|apply_rotary|rotary_emb|view_as_complex",
    "reordered": r"apply_rotary_pos_emb_interleave",  # into halves, of weights whose pairs are neighbours
    "added": r"embed_positions|\b(?!apply_|max_)\w*pos(ition)?_?(al)?_emb\w*|\bwpe\b|sinusoid|pos_encoding",
    "biased": r"alibi|attention_biases|relative_(attention|position)_bias|rel_pos_bias|position_bias",
    "windows": r"sliding|local_att|attend_from_chunk|attention_window|window_size|chunked_attention",
    "sinks": r"\bsinks?\b|s_aux",
    "temperature": r"attn_temperature|scaling_beta|log_scaling|ssmax|attn_scale\b|softmax_scaling",
    "in_score": r"rel_logits|rel(ative)?_shift|distance_embedding|disentangled|rel_pos|rel_attn|pos_bias_u"
    r"|bbox_pos_scores",
}


def class_of(config):
    """The model that reads such a configuration: both halves of one that has two, else the one with logits,
    else the shortest name.

    ValueError: the library has none.
    """
    try:
        if getattr(config, "is_encoder_decoder", False) and type(config) in MODEL_MAPPING:
            return MODEL_MAPPING[type(config)]
        return model_class(config)[0]
    except ValueError:
        own = [cls for cls in _models(type(config).__module__) if cls.config_class is type(config)]
        if not own:
            raise
        return min(own, key=lambda cls: ("For" in cls.__name__, len(cls.__name__)))


def _models(module):
    """The models that the modeling files beside a configuration's define; bases of weights are none."""
    package = importlib.import_module(module.rpartition(".")[0])
    files = [
        file.name for file in pkgutil.iter_modules(package.__path__) if file.name.startswith("modeling_")
    ]
    for file in files:
        held = vars(importlib.import_module(f"{package.__name__}.{file}"))
        for cls in held.values():
            modelled = inspect.isclass(cls) and hasattr(cls, "config_class") and hasattr(cls, "forward")
            if modelled and cls.__module__.endswith(file) and not cls.__name__.endswith("PreTrainedModel"):
                yield cls


def reachable(cls):
    """The signs that the source of a class, and of all in its module that it names, has: {fact: words}."""
    found = _source(cls.__module__, cls.__name__)
    words = {fact: sorted({hit.group(0) for hit in re.finditer(sign, found)}) for fact, sign in SIGNS.items()}
    return {fact: seen[:3] for fact, seen in words.items() if seen}


def switches(cls, config):
    """On what it depends that the module of the rotation is made: {condition: does it hold here}.

    None where only a call decides. Where a rotation is made without a condition there is none.
    """
    made = _made(ast.parse(_source(cls.__module__, cls.__name__)), ())
    if not all(made):
        return {}
    return {_in_short(tests): _holds(tests, config) for tests in made}


def _in_short(tests):
    """Without what they exclude, where they also say what they want."""
    return " and ".join([test for test in tests if not test.startswith("not (")] or tests)


def _made(node, tests):
    """For each line that creates a rotary module, the conditions of the branches that lead to it."""
    if isinstance(node, (ast.If, ast.IfExp)):
        test = ast.unparse(node.test)
        yes, no = (each if isinstance(each, list) else [each] for each in (node.body, node.orelse))
        ways = [(each, (*tests, test)) for each in yes] + [(each, (*tests, f"not ({test})")) for each in no]
    else:
        ways = [(each, tests) for each in ast.iter_child_nodes(node)]
    called = getattr(getattr(node, "func", None), "id", "") if isinstance(node, ast.Call) else ""
    found = [tests] if re.search("Rotary.*Embedding", called) else []
    return found + [each for child, with_it in ways for each in _made(child, with_it)]


def _holds(tests, config):
    """Are all of them true, where self stands for the configuration, too? None: a call decides."""
    own = SimpleNamespace(**{**vars(config), "config": config})
    try:
        return all(eval(test, {"config": config, "self": own}) for test in tests)
    except (NameError, AttributeError):
        return None


def lines_of(cls):
    """Where the class stands, (file below the package, first line)."""
    file = inspect.getsourcefile(cls).replace("\\", "/")
    return file[file.rindex("/transformers/") + 1 :], inspect.getsourcelines(cls)[1]


def _source(module, name):
    """The code of a class and of what it names at the top of its module, base classes of weights aside."""
    tops = _tops(module)
    seen, todo = set(), [name]
    while todo:
        one = todo.pop()
        if one in seen or one not in tops or one.endswith("PreTrainedModel"):
            continue
        seen.add(one)
        todo += tops[one][0]
    return "\n".join(tops[one][1] for one in sorted(seen))


@functools.cache
def _tops(module):
    """{name: (names in it, its code without docstrings)} of a module's classes and functions."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    tops = {}
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            body = [each for each in node.body if not isinstance(getattr(each, "value", None), ast.Constant)]
            tops[node.name] = (names, "\n".join(ast.unparse(each) for each in body))
    return tops
