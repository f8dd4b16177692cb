"""Train what is missing or was made by other code, and keep each result as soon as it is there.

    make experiments
    python -m experiments language tasks --jobs 2 --device cpu
    python -m experiments cost --device cuda

It says first what it will make, and how long that takes by the runs that are kept. A run that
was cut off is made again the next time; those that had ended are kept. --dask
spreads the runs over the workers of a Dask scheduler, which need this folder and these versions;
dask and distributed, which nothing else here needs, are installed by hand. The last line measures what
encodings cost on a GPU, which is kept apart from what they cost on a processor.
"""

import argparse
from pathlib import Path
from statistics import mean

import joblib
import torch
from tqdm import tqdm

from executable_prose import command
from experiments import cost_on_gpu
from experiments.current import carry_out, is_current
from experiments.runs import RESULTS, kept, plan, runs

DASK = "a Dask scheduler whose workers take the runs; first: pip install dask distributed"
TRIED = RESULTS.parent.parent / ".cache" / "experiments"


def main(arguments=None):
    options = parse(arguments)
    if options.experiments == ["cost"] and options.device.startswith("cuda"):
        cost_on_gpu.main(options.device, options.folder)
        return
    wanted = [run for name in options.experiments for run in runs(name)]
    sizes = {name: plan()[name]["smoke"] if options.smoke else {} for name in options.experiments}
    stale = [run for run in wanted if not is_current(run, options.folder, sizes[run.experiment])]
    print(f"{len(wanted) - len(stale)} of {len(wanted)} results are current, {len(stale)} to make")
    for line in announced(stale, options.folder):
        print(line)
    device = best_device() if options.device == "auto" else options.device
    tasks = (joblib.delayed(make)(run, device, sizes[run.experiment]) for run in stale)
    engine = {"backend": "dask", "scheduler_host": options.dask} if options.dask else {"n_jobs": options.jobs}
    with joblib.parallel_config(**engine):
        ended = joblib.Parallel(return_as="generator_unordered")(tasks)
        progress = tqdm(ended, total=len(stale), unit="run")
        for run, made in progress:
            run.keep(options.folder, made)
            progress.write(f"made {run.name}")


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__.partition("\n")[0])
    parser.add_argument("experiments", nargs="*", metavar="experiment", help=", ".join(plan()))
    parser.add_argument("--jobs", type=int, default=joblib.cpu_count(), help="runs at a time")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, mps")
    parser.add_argument("--dask", metavar="HOST:PORT", help=DASK)
    parser.add_argument("--smoke", action="store_true", help="tiny runs, kept in .cache/experiments")
    parser.add_argument("--folder", type=Path, help="where results are kept")
    options = parser.parse_args(arguments)
    options.folder = options.folder or (TRIED if options.smoke else RESULTS)
    if unknown := set(options.experiments) - set(plan()):
        parser.error(f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(plan())}")
    if options.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {options.jobs}")
    if options.device != "auto":
        try:
            torch.empty(0, device=options.device)
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            parser.error(
                f"--device must be one that is here, got {options.device!r}: {str(error).splitlines()[0]}"
            )
    options.experiments = options.experiments or plan()
    return options


def announced(stale, folder):
    """For each experiment the runs to make, and how long that takes if they take as long as those kept."""
    for name in dict.fromkeys(run.experiment for run in stale):
        some = [run for run in stale if run.experiment == name]
        times = [time for run in runs(name) if (time := seconds(run, folder)) is not None]
        takes = (
            f"about {len(some) * mean(times) / 60:.0f} minutes of one processor" if times else "never made"
        )
        yield f"{name}, {takes}: {', '.join(f'{run.method} {run.seed}' for run in some)}"


def seconds(run, folder):
    """How long a run took that is kept, by whatever code; None if there is none."""
    try:
        return kept(run, folder)["made_with"]["seconds"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def make(run, device, sizes):
    planned = plan()[run.experiment]
    return run, carry_out(run, device, sizes, planned["smoke"] if planned.get("timed") else None)


def best_device():
    for name in ("cuda", "mps"):
        if getattr(torch, name).is_available():
            return name
    return "cpu"


if __name__ == "__main__":
    command.run(main)
