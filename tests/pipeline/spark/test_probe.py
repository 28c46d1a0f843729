"""What workers lack is told before any work."""

import os
import sys
from pathlib import Path

from aclbroker.pipeline.spark.probe import Lack, lack, told


def test_a_worker_tells_which_modules_and_files_it_does_not_have(tmp_path: Path):
    missing = str(tmp_path / "log")
    found = lack(("os", "no_such_module"), (str(tmp_path), missing))
    assert found.modules == ("no_such_module",)
    assert found.paths == (missing,)
    assert sys.executable in found.python
    assert lack(("os",), (os.curdir,))[2:] == ((), ())


def test_what_workers_lack_is_told_once_for_each_host():
    one = Lack("a", "Python 3.11 (/p)", ("numpy", "pyarrow"), ())
    other = Lack("b", "Python 3.11 (/p)", (), ("/log", "/other"))
    assert told([one, one, other]) == (
        "Python 3.11 (/p) on a has no numpy and no pyarrow; "
        "b has no /log, /other: put it where all workers see it, or use an URL that they reach"
    )
    assert told([]) == ""
    many = [Lack(f"h{number}", "P", ("numpy",), ()) for number in range(9)]
    assert told(many).endswith("; P on h3 has no numpy; and 5 more")
