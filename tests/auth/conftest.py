"""A JVM for the tests that ask Java."""

from collections.abc import Iterator

import pytest

from tests.auth.java_names import JavaNames, running_java


@pytest.fixture(scope="package")
def java() -> Iterator[JavaNames]:
    with running_java() as running:
        yield running
