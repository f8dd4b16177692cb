"""What check_positions.py says of models of transformers, built small and random.

python tools/alarms.py [model_type ...]    writes measurements/alarms.json; without names, of all that
                                           take ids or pictures

Each model runs in a process of its own, with limits of time and memory; one that cannot be built or run
says why. Every alarm needs a row in measurements/alarms.toml, which says what it is; a test holds each to
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

from census.fenced import fenced
from executable_prose.command import run
from exhibits._code import code_of
from snippets.check_positions import check_transformers
from tools import arguments

CHECKER = "snippets/check_positions.py"
RESULT = Path(__file__).resolve().parents[1] / "measurements" / "alarms.json"
SECONDS, MEMORY = 90, 12 * 2**30


def types():
    """Every model type with logits over a vocabulary, or that looks at pictures, once."""
    names = [modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES]
    names.append(modeling_auto.MODEL_FOR_IMAGE_MAPPING_NAMES)
    return sorted({kind for mapping in names for kind in mapping})


def checked(kind):
    """The verdict of each check on one type."""
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        transformers.CONFIG_MAPPING[kind]().save_pretrained(folder)
        findings = check_transformers(folder)
    verdicts = {one.check: one.verdict for one in findings}
    return verdicts | {one.check: "fails" for one in findings if one.verdict == "fails"}


def ask(kind):
    """The findings, or why there are none."""
    return fenced(checked, kind, SECONDS, MEMORY)


def main(names):
    known = json.loads(RESULT.read_text("utf-8"))["models"] if names and RESULT.exists() else {}
    code = code_of(CHECKER)
    for kind in tqdm(names or types(), unit="model"):
        known[kind] = {**code, "told": ask(kind)}
        write(known)


def write(models):
    """One line a model, with the digest of the checker's code that was asked."""
    lines = [f"  {json.dumps(kind)}: {json.dumps(told)}" for kind, told in sorted(models.items())]
    head = f' "transformers": {json.dumps(transformers.__version__)},\n'
    RESULT.write_text("{\n" + head + ' "models": {\n' + ",\n".join(lines) + "\n }\n}\n", encoding="utf-8")


if __name__ == "__main__":
    run(lambda: main(arguments.names(__doc__, "model_type", types())))
