"""`python -m aclbroker.pipeline JOB ...`, or this file given to spark-submit."""

import argparse
import sys
from pathlib import Path

if not __package__:
    # Started by its path, Python looks for modules beside this file, and not for the package.
    sys.path[0] = str(Path(__file__).absolute().parents[2])

from aclbroker.pipeline.command.arguments import add_jobs, audit_options
from aclbroker.pipeline.command.run import run


def main() -> None:
    """Run the job that the process's arguments name; ends the process with its status."""
    parser = argparse.ArgumentParser(
        prog="pipeline", description="Analyse authorization logs.", allow_abbrev=False
    )
    add_jobs(parser)
    words = sys.argv[1:]
    sys.exit(run(audit_options(parser.parse_args(words), ["pipeline", *words])))


if __name__ == "__main__":
    main()
