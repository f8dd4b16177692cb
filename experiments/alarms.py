"""What check_positions.py says of models of transformers, built small and random.

python experiments/alarms.py [model_type ...]
    writes experiments/results/alarms.json; without names, of all that take ids or pictures

Each model runs in a process of its own, with limits of time and memory; one that cannot be built or run
says why. Every alarm needs a row in experiments/alarms.toml, which says what it is; a test holds each to
the other.
"""

import json
import tempfile
import warnings
from pathlib import Path

import torch
import transformers
from tqdm import tqdm
from transformers.models.auto import modeling_auto

from executable_prose.command import run
from executable_prose.execution.provenance import code_of
from experiments import arguments
from experiments.census.fenced import fenced
from snippets.check_positions import check_transformers

CHECKER = "snippets/check_positions.py"
RESULT = Path(__file__).resolve().parents[1] / "experiments" / "results" / "alarms.json"
MORE = ("inkling2", "vjepa2")  # which are in no mapping below
SECONDS, MEMORY = 90, 12 * 2**30


def model_types():
    """Every model type with logits over a vocabulary, or that looks at pictures, once."""
    names = [modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES]
    names.append(modeling_auto.MODEL_FOR_IMAGE_MAPPING_NAMES)
    return sorted({*MORE, *(kind for mapping in names for kind in mapping)})


def verdicts(kind):
    """The verdict of each check on one type."""
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        transformers.CONFIG_MAPPING[kind]().save_pretrained(folder)
        findings = check_transformers(folder)
    verdicts = {one.check: one.verdict for one in findings}
    return verdicts | {one.check: "fails" for one in findings if one.verdict == "fails"}


def check_in_process(kind):
    """The findings, or why there are none."""
    return fenced(verdicts, kind, SECONDS, MEMORY)


def main(names):
    head = {"transformers": transformers.__version__, "code": code_of({CHECKER: None})}
    known = json.loads(RESULT.read_text("utf-8")) if names else {}
    if names and {key: known[key] for key in head} != head:
        raise SystemExit(f"{CHECKER} or transformers has changed since the others were checked: check all")
    models = known.get("models", {})
    for kind in tqdm(names or model_types(), unit="model"):
        models[kind] = check_in_process(kind)
    lines = [f"  {json.dumps(kind)}: {json.dumps(told)}" for kind, told in sorted(models.items())]
    start = json.dumps(head, indent=1).removesuffix("\n}") + ',\n "models": {\n'
    RESULT.write_text(start + ",\n".join(lines) + "\n }\n}\n", encoding="utf-8")


if __name__ == "__main__":
    run(lambda: main(arguments.names(__doc__, "model_type", model_types())))
