"""The pod label that holds the members' names: found where it is beyond doubt, else none."""

from dataclasses import replace

import pytest

from planner.model.pods import Pod
from planner.workload import MemberClues, member_label

MEMBERS = (MemberClues("id-a", (), ("alpha",)), MemberClues("id-b", (), ("beta", "b")))


def pods(*values: str, key: str = "client") -> tuple[Pod, ...]:
    """Return a running pod for each value of the label, all with the template's labels too."""
    return tuple(
        Pod("shop", f"app-{number}", f"u{number}", "Running", labels=(("app", "alpha"), (key, value)))
        for number, value in enumerate(values)
    )


def test_the_label_is_the_one_whose_values_are_the_members_names() -> None:
    assert member_label(pods("beta", "alpha"), MEMBERS) == "client"


@pytest.mark.parametrize("values", [("alpha", "alpha"), ("alpha", "gamma"), ("alpha",), ("alpha", "beta", "gamma"), ()])
def test_values_that_do_not_name_each_member_once_tell_nothing(values: tuple[str, ...]) -> None:
    assert member_label(pods(*values), MEMBERS) is None


def test_one_pod_alone_tells_nothing_as_its_label_may_be_the_templates() -> None:
    assert member_label(pods("alpha"), MEMBERS[:1]) is None


def test_of_two_labels_that_would_do_neither_is_chosen() -> None:
    both = tuple(
        replace(pod, labels=(*pod.labels, ("name", pod.label("client") or ""))) for pod in pods("alpha", "beta")
    )
    assert member_label(both, MEMBERS) is None


def test_pods_that_end_do_not_count() -> None:
    ending = replace(pods("gamma")[0], is_ending=True)
    assert member_label((*pods("alpha", "beta"), ending), MEMBERS) == "client"
