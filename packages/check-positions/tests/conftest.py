"""The checker's tests have the fixtures of those of snippets, and an installation of the package."""

import os
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import same_random_numbers  # noqa: F401 - it also checks shape comments
from tests.snippets.conftest import (  # noqa: F401
    pytest_collection_modifyitems,
    pytest_sessionfinish,
    same_as,
    stored,
)

PACKAGE = Path(__file__).resolve().parents[1]


class Installed(NamedTuple):
    """What is published, and a fresh environment in which only the wheel is installed."""

    sdist: Path
    wheel: Path
    commands: Path
    customized: Path  # a sitecustomize.py that adds the packages of this environment

    def run(self, command, *arguments, dependencies=True, **options):
        """Run a command of the environment, with or without the packages on which the checker depends."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        env |= {"PYTHONPATH": str(self.customized)} if dependencies else {}
        env |= {"PATH": os.pathsep.join([str(self.commands), env["PATH"]])} | options.pop("env", {})
        line = [self.commands / command, *arguments]
        return subprocess.run(line, env=env, capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """The wheel is built from the sdist, as whoever builds from PyPI does."""
    dist, fresh = (tmp_path_factory.mktemp(name) for name in ("dist", "fresh"))

    def build(target, source):
        command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", dist]
        subprocess.run(command, cwd=source, check=True, capture_output=True)

    build("sdist", PACKAGE)
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        packed.extractall(dist, filter="data")
    build("wheel", dist / sdist.name.removesuffix(".tar.gz"))
    (wheel,) = dist.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", fresh], check=True)
    install = ["install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", wheel]
    subprocess.run([sys.executable, "-m", "pip", "--python", fresh, *install], check=True)
    customized = tmp_path_factory.mktemp("customized")
    packages = sysconfig.get_paths()["purelib"]
    (customized / "sitecustomize.py").write_text(f"import site\n\nsite.addsitedir({packages!r})\n")
    return Installed(sdist, wheel, fresh / "bin", customized)
