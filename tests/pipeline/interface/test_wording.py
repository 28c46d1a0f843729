"""Names of many clusters, told in short."""

from aclbroker.pipeline.interface.wording import clusters_in_short, in_short


def test_of_many_names_the_first_are_told_and_how_many_more_there_are():
    assert in_short(["a", "b"]) == "a, b"
    assert (
        in_short([f"c{number:04}" for number in range(1_006)], 2) == "c0000, c0001 and 1,004 more"
    )
    assert clusters_in_short(["eu"]) == "cluster eu"
    assert clusters_in_short(["eu", "us"], 1) == "clusters eu and 1 more"
