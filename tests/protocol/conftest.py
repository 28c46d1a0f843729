"""How many examples Hypothesis draws: few and always the same, or many with HYPOTHESIS_PROFILE."""

import os
from typing import Any

from hypothesis import HealthCheck, settings

# No database: nothing is written into the tree, and a nightly failure prints how to repeat it.
COMMON: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}

settings.register_profile("commit", max_examples=5, derandomize=True, **COMMON)
settings.register_profile("nightly", max_examples=1000, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "commit"))
