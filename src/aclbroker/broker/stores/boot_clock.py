"""A clock that goes on while the machine is suspended."""

import time


def boot_s() -> float:
    """Return the seconds since the machine was started, with those in which it was suspended.

    Only Linux has that clock. Elsewhere time in suspension may be missing.
    """
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
