"""Ten files do their work where they were copied to, in an interpreter that does not know the project."""

import os
import shutil
import subprocess
import sys

from executable_prose.project import ROOT
from tests import copied


def test_copies_work_alone(tmp_path):
    assert len(copied.USES) == 10
    for name in copied.USES:
        (tmp_path / name).mkdir()
        shutil.copy(ROOT / "snippets" / f"{name}.py", tmp_path / name)
    command = [sys.executable, "-I", "-B", copied.__file__, str(tmp_path)]
    alone = os.environ | {"OMP_NUM_THREADS": "1"}  # other tests have the other processors
    done = subprocess.run(
        command, cwd=tmp_path, env=alone, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
