"""Jobs are declared so that the command line can offer and set their options."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from aclbroker.pipeline.interface.job import Job
from aclbroker.pipeline.jobs import JOBS

TEXTS = {"keep": "User:a", "keep-resource": "topic:a"}


def test_every_option_of_a_job_is_a_field_of_its_options_with_the_default_that_is_told():
    samples: dict[str, Any] = {}
    for job in JOBS.values():
        defaults = job.options_with({})
        for option in job.arguments:
            text = TEXTS.get(option.name, "4")
            value = option.flag if option.read is None else option.read(text)
            outer, _, inner = option.field.partition(".")
            found = getattr(job.options_with({option.field: value}), outer)
            assert (getattr(found, inner) if inner else found) == value
            default = getattr(defaults, outer)
            default = getattr(default, inner) if inner else default
            if "default: " in option.does and default is not None:
                samples[option.name] = default
                assert f"(default: {default:g})" in option.does
    assert "top" in samples


@dataclass(frozen=True)
class Inner:
    size: int = 1
    name: str = "a"


@dataclass(frozen=True)
class Outer:
    inner: Inner = field(default_factory=Inner)
    top: int = 20


def test_fields_that_are_not_given_keep_their_default():
    job = Job("job", "do it", Outer, lambda inputs, options: pytest.fail("it is not run"))
    assert job.options_with({}) == Outer()
    assert job.options_with({"inner.size": 2, "top": 3}) == Outer(Inner(2, "a"), 3)


def test_a_field_that_the_options_do_not_have_is_an_error():
    job = Job("job", "do it", Outer, lambda inputs, options: pytest.fail("it is not run"))
    with pytest.raises(TypeError, match="limit"):
        job.options_with({"limit": 3})
