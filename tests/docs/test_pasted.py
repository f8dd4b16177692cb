"""Code that a page shows for pasting runs as it stands there, beside copies of the snippets."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from executable_prose import goldens, symbols
from executable_prose.project import DOCS, ROOT
from executable_prose.registry import ADDED
from executable_prose.rendering import directives  # noqa: F401 - registers the engine's
from guide import additions  # noqa: F401 - and the guide's
from snippets.axial_rope import axial_frequencies, mixed_frequencies
from snippets.decoding import KeyValueCache, attend, attention_mask, document_positions
from snippets.rope import rope_frequencies
from snippets.sinusoidal_2d import axial_sinusoids, axis_frequencies
from tests.exhibits.common import GOLDENS
from tests.peers import peer
from tests.rows import each_of

SHOWN = re.compile(r"^```(?:python\n(.*?)^```|exhibit (\w+)\.(\w+) show=code)$", re.M | re.S)
PAGES = [page for page in sorted((DOCS / "reference").glob("*.md")) if SHOWN.search(page.read_text("utf-8"))]


# Each page in a process of its own, which need not import torch again; prints how each ended.
EACH_APART = """
import os, runpy, sys
import torch
for page in sys.argv[1:]:
    if not os.fork():
        os.dup2(os.open(f"{page}.out", os.O_WRONLY | os.O_CREAT), 1)
        os.dup2(os.open(f"{page}.err", os.O_WRONLY | os.O_CREAT), 2)
        sys.path[0] = "."
        runpy.run_path(f"{page}.txt", run_name="__main__")
        sys.stdout.flush()
        os._exit(0)  # at once: to take all of torch apart takes as long as the page
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


def test_what_is_pasted_from_a_reference_page_runs_and_prints_what_the_page_shows(subtests, tmp_path):
    for file in (ROOT / "snippets").glob("[!_]*.py"):
        shutil.copy(file, tmp_path)
    prints = dict.fromkeys(PAGES, "")
    for page in PAGES:
        pasted = ""
        for code, module, function in SHOWN.findall(page.read_text("utf-8")):
            pasted += code
            if function:
                source = symbols.find(f"exhibits/{module}.py", function)
                pasted += "\n".join([*source.lines, f"{function}()", ""])
                prints[page] += goldens.read(GOLDENS, module)[f"{module}.{function}"]
        (tmp_path / f"{page.stem}.txt").write_text(pasted, encoding="utf-8")
    command = [sys.executable, "-c", EACH_APART, *(page.stem for page in PAGES)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}  # as exhibits have it
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    ends = done.stdout.split()
    for page, end in zip(PAGES, ends, strict=True):
        with subtests.test(page=page.stem):
            pasted = (tmp_path / f"{page.stem}.txt").read_text("utf-8")
            assert "snippets" not in pasted, "a reader has the files, not the package"
            assert end == "0", (tmp_path / f"{page.stem}.err").read_text("utf-8")
            assert (tmp_path / f"{page.stem}.out").read_text("utf-8") == prints[page]


@pytest.fixture(scope="module")
def within():
    """The function that the page of decoding.py shows."""
    text, made = (DOCS / "reference" / "decoding.md").read_text("utf-8"), {"KeyValueCache": KeyValueCache}
    (code,) = re.findall(r"^```python\n(def .*?)^```$", text, re.M | re.S)
    exec(code, made)
    return made["within"]


@pytest.mark.claim(
    "keys-beyond-a-window-may-go",
    "A causal layer with an attention window decodes the same outputs when its cache keeps, after each "
    "step, only the newest keys, one fewer than the window, as when it keeps all keys, also with padding "
    "on the left and with texts packed into one sequence. With one key fewer than that, it does not.",
)
@each_of("sizes", [[1] * 9, [4, 1, 1, 1, 2], [9]])
@each_of("window", [1, 2, 3, 8, 9, 20])
def test_a_layer_with_a_window_decodes_the_same_without_older_keys(within, window, sizes):
    documents = torch.tensor([[1] * 9, [0] * 3 + [1] * 6, [1] * 4 + [2] * 5])
    at, (q, k, v) = document_positions(documents), torch.randn(3, 3, 2, 9, 4).double()
    whole = attend(q, k, v, attention_mask(at, at, documents, documents, window=window))

    def decoded(kept):
        made, cache = [], None
        parts = [each.split(sizes, -2) for each in (q, k, v)], [e.split(sizes, -1) for e in (at, documents)]
        for one, *new in zip(*parts[0], *parts[1], strict=True):
            cache = cache.extend(*new) if cache else KeyValueCache(*new)
            here, of = new[2:]
            seen = attention_mask(here, cache.positions, of, cache.documents, window=window)
            made.append(attend(one, cache.k, cache.v, seen))
            cache = within(cache, kept)
            assert cache.positions.shape[-1] <= max(kept - 1, 0)
        return torch.cat(made, -2)

    assert_close(decoded(window), whole, rtol=0, atol=1e-12)
    if 1 < window <= 10 - sizes[-1]:  # else no query sees so far back into the cache
        assert (decoded(window - 1) - whole).abs().max() > 1e-3


# The answer at the top of a chapter: all in one interpreter, since to import torch takes seconds.
ANSWERS = {
    page.stem: code
    for page in sorted((DOCS / "guide").glob("*.md"))
    for code in re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
}
RUN_ALL = """
import json, sys
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
for chapter, code in json.load(sys.stdin).items():
    torch.manual_seed(0)
    made = {}
    with torch.no_grad(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # the fused kernel or none
        exec(compile(code, chapter, "exec"), made)
    assert made["output"].double().isfinite().all(), chapter
    assert "q" not in made or made["output"].shape == made["q"].shape, "it attends"
"""


def test_the_answers_of_chapters_run_beside_the_snippets(tmp_path):
    for file in (ROOT / "snippets").glob("[!_]*.py"):
        shutil.copy(file, tmp_path)
    command, given = [sys.executable, "-c", RUN_ALL], json.dumps(ANSWERS)
    done = subprocess.run(command, cwd=tmp_path, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_other_listing_is_typed_into_a_page():
    run = [page for page in PAGES for code, *_ in SHOWN.findall(page.read_text("utf-8")) if code]
    run += [DOCS / "guide" / f"{chapter}.md" for chapter in ANSWERS]
    typed = []
    for page in DOCS.rglob("*.md"):
        begun = re.findall(r"^ *(?:```|~~~)(\w*)", page.read_text("utf-8"), re.M)[::2]
        typed += [page for kind in begun if kind not in {"mermaid", "console", *ADDED.directives}]
    assert sorted(typed) == sorted(run)


# All code for pasting, wherever it stands.
PASTED = {
    f"{page.parent.name}/{page.stem}-{number}": code
    for page in sorted(DOCS.rglob("*.md"))
    for number, (code, *_) in enumerate(SHOWN.findall(page.read_text("utf-8")))
    if code
}
WITHOUT_BASE = {  # what they are given else
    rope_frequencies: (8,),
    axial_frequencies: (8, "each"),
    mixed_frequencies: (8, 1),
    axis_frequencies: (8, 2),
    partial(axial_sinusoids, order=(0, 1), layout="sin_cos"): (torch.zeros(3, 2), 8),
}
ASK = {getattr(function, "func", function).__name__ for function in WITHOUT_BASE}
NO_ENCODING = ("check_positions", "decoding", "sinks", "in-a-transformer")  # checks, caches, a whole model


def asking(code):
    """The calls in it that need the base."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return [call for call in calls if getattr(call.func, "id", "") in ASK]


def test_code_for_pasting_asks_for_the_base_and_says_that_a_wrong_one_gives_no_error(subtests):
    for where in [where for where, code in PASTED.items() if asking(code)]:
        with subtests.test(where=where):
            for call in asking(PASTED[where]):
                assert "base" in [given.arg for given in call.keywords], ast.unparse(call)
            assert "# Base and layout are the checkpoint's: a wrong one gives no error" in PASTED[where]


def test_the_files_ask_for_the_base(subtests):
    for function, given in WITHOUT_BASE.items():
        with subtests.test(function=function), pytest.raises(TypeError, match="'base'"):
            function(*given)


def test_code_for_pasting_an_encoding_ends_in_attention(subtests):
    for where, code in PASTED.items():
        if where.split("/")[1].startswith(NO_ENCODING):
            continue
        with subtests.test(where=where):
            last = ast.unparse(ast.parse(code).body[-1])
            if where == "reference/sinusoidal-0":  # imports the function that the page shows below
                assert last.startswith("from ")
            else:
                assert last.startswith("output = scaled_dot_product_attention(")


def test_the_answer_for_yarn_is_gpt_oss_of_transformers_by_the_keys_that_it_names():
    transformers, code, made = peer("transformers"), ANSWERS["long-context"], {}
    named = re.findall(r'(\w+)=([\w.]+)\)?,  # "(\w+)"', code)
    assert [argument for argument, *_ in named] == ["base", "factor", "original_length", "truncate"]
    given = {key: ast.literal_eval(value) for _, value, key in named}
    config = transformers.GptOssConfig()
    assert given.items() <= config.rope_parameters.items()
    frequencies, factor = peer("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS["yarn"](config, "cpu")
    exec(re.sub(r"^from rope", "from snippets.rope", code, flags=re.M), made)
    assert_close(made["slower"].float(), frequencies)
    assert made["attention_factor"] == factor
    length = given["original_max_position_embeddings"]
    assert config.max_position_embeddings == length * given["factor"]
    assert length < len(made["cos"]) <= config.max_position_embeddings, (
        "else nothing is stretched, or too little"
    )


def test_an_answer_fits_its_box_and_links_to_all_files_that_it_takes(subtests):
    for chapter in ANSWERS:
        with subtests.test(chapter=chapter):
            text, code = (DOCS / "guide" / f"{chapter}.md").read_text("utf-8"), ANSWERS[chapter]
            before = text.partition("```python")[0]
            taken = {node.module for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)}
            for file in taken - {"torch.nn.functional"}:
                assert f"[`{file}.py`](../reference/{file}.md)" in before
            assert max(map(len, code.splitlines())) <= 80
