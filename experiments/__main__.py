"""Train what is missing or was made by other code, and keep each result as soon as it is there.

    make experiments
    python -m experiments language tasks --jobs 2 --device cpu

A run that was cut off is made again the next time; those that had ended are kept. --dask
spreads the runs over the workers of a Dask scheduler, which need this folder and these versions;
dask and distributed, which nothing else here needs, are installed by hand.
"""

import argparse
from pathlib import Path

import joblib
import torch
from tqdm import tqdm

from experiments.runs import RESULTS, ROOT, runs

# The experiments, and the sizes of runs that take seconds.
EXPERIMENTS = {
    "language": {"updates": 20, "count": 1},
    "shuffled": {"updates": 20, "count": 1},
    "teaching": {"updates": 20, "count": 1},
    "extensions": {"updates": 20, "count": 1, "tuning": {"updates": 20, "length": 256}},
    "tasks": {"updates": 20, "rows": 2},
    "translator": {"updates": 20, "asked": 4},
    "generator": {"updates": 20, "count": 1, "rows": 2},
    "cost": {
        "plan": {"own": [16], "forward": [16], "training": [16], "decoding": [16], "kernel": [16]},
        "rounds": 3,
    },
}
DASK = "a Dask scheduler whose workers take the runs; first: pip install dask distributed"
TRIED = ROOT / ".cache" / "experiments"


def main(arguments=None):
    options = parse(arguments)
    wanted = [run for name in options.experiments for run in runs(name)]
    sizes = {name: EXPERIMENTS[name] if options.smoke else {} for name in options.experiments}
    stale = [run for run in wanted if not run.is_current(options.folder, sizes[run.experiment])]
    print(f"{len(wanted) - len(stale)} of {len(wanted)} results are current, {len(stale)} to make")
    device = best_device() if options.device == "auto" else options.device
    tasks = (joblib.delayed(carry_out)(run, device, sizes[run.experiment]) for run in stale)
    engine = {"backend": "dask", "scheduler_host": options.dask} if options.dask else {"n_jobs": options.jobs}
    with joblib.parallel_config(**engine):
        ended = joblib.Parallel(return_as="generator_unordered")(tasks)
        progress = tqdm(ended, total=len(stale), unit="run")
        for run, made in progress:
            run.keep(options.folder, made)
            progress.write(f"made {run.name}")


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__.partition("\n")[0])
    parser.add_argument("experiments", nargs="*", metavar="experiment", help=", ".join(EXPERIMENTS))
    parser.add_argument("--jobs", type=int, default=joblib.cpu_count(), help="runs at a time")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, mps")
    parser.add_argument("--dask", metavar="HOST:PORT", help=DASK)
    parser.add_argument("--smoke", action="store_true", help="tiny runs, kept in .cache/experiments")
    parser.add_argument("--folder", type=Path, help="where results are kept")
    options = parser.parse_args(arguments)
    options.folder = options.folder or (TRIED if options.smoke else RESULTS)
    if unknown := set(options.experiments) - set(EXPERIMENTS):
        parser.error(f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(EXPERIMENTS)}")
    options.experiments = options.experiments or EXPERIMENTS
    return options


def carry_out(run, device, sizes):
    return run, run.carry_out(device, sizes)


def best_device():
    for name in ("cuda", "mps"):
        if getattr(torch, name).is_available():
            return name
    return "cpu"


if __name__ == "__main__":
    main()
