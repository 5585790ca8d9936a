"""The controller told to end while the API server does not answer, and right after it is back; then a plan goes on.

``ENDS`` says how often, for runs by hand.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.clusters.kubernetes import ControlPlane
from tests.clusters.kubernetes.rest import Json
from tests.conftest import TOLD
from tests.contract.test_controller_live import PAUSES, Site, asking, site_on
from tests.pod_controllers import Controller, install

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2_700)]

ROUNDS = range(int(os.environ.get("ENDS", "1")))
REPLICAS = 3
LONGEST_S = 300.0
LONGEST_FREEZE_S = 12.0
LONGEST_BACK_S = 3.0
PLAN = "under-way"
LEFT = ("left unfinished", "lease not given back")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A plan under way, on a control plane of our own, as its API server is stopped."""
    with ControlPlane.start() as cluster:
        install(cluster)
        with site_on(cluster, tmp_path_factory.mktemp("ends")) as made:
            made.approve(PLAN, made.plan(PLAN, asking()))
            yield made


def holders(site: Site) -> list[str]:
    """Return who holds the leader's and the group's lease."""
    leases: list[Json] = []
    for namespace in (site.home, site.namespace):
        leases += site.cluster.rest.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")["items"]
    return [holder for one in leases if (holder := one["spec"].get("holderIdentity"))]


def start(site: Site, name: str) -> list[Controller]:
    """Return replicas that are all ready, one of which leads and has the plan's lease."""
    replicas = [site.start(f"{name}-{number}") for number in range(REPLICAS)]

    def is_up() -> bool:
        pids = [str(one.process.pid) for one in replicas]
        held = [sum(f"-{pid}-" in holder for holder in holders(site)) for pid in pids]
        return 2 in held and all(one.ready() == 200 for one in replicas)

    site.cluster.wait_until("a leader with a plan", is_up)
    return replicas


def told_to_end(replicas: Sequence[Controller], delays_s: Sequence[float]) -> list[float | None]:
    """Send each its SIGTERM after its delay; return how long each took to end, ``None`` for who did not."""
    began = time.monotonic()
    sent: dict[int, float] = {}
    ended: dict[int, float] = {}
    while len(ended) < len(replicas) and time.monotonic() < began + max(delays_s) + LONGEST_S:
        now = time.monotonic()
        for number, (one, delay_s) in enumerate(zip(replicas, delays_s, strict=True)):
            if number not in sent and now >= began + delay_s:
                one.process.ask_to_stop()
                sent[number] = now
            elif number in sent and number not in ended and not one.process.running:
                ended[number] = now
        time.sleep(0.05)
    return [ended[number] - sent[number] if number in ended else None for number in range(len(replicas))]


@pytest.mark.parametrize("is_back", [False, True], ids=["frozen", "just-back"])
@pytest.mark.parametrize("number", ROUNDS)
def test_it_ends_and_says_so(
    site: Site, number: int, is_back: bool, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(f"{number} {is_back}")
    replicas, server = start(site, f"end-{number}-{is_back}"), site.cluster.api_server
    time.sleep(chance.uniform(0.0, 3.0))
    server.signal(signal.SIGSTOP)
    try:
        if is_back:
            time.sleep(chance.uniform(2.0, LONGEST_FREEZE_S))
            server.signal(signal.SIGCONT)
        longest_s = LONGEST_BACK_S if is_back else LONGEST_FREEZE_S
        took = told_to_end(replicas, [chance.uniform(0.0, longest_s) for _ in replicas])
    finally:
        server.signal(signal.SIGCONT)
        for one in replicas:
            one.process.kill()
    shown = ", ".join("never" if s is None else f"{s:.1f} s" for s in took)
    record_property(TOLD, f"told to end, API server {'just back' if is_back else 'frozen'}: ended after {shown}")
    for one in replicas:
        assert one.process.returncode == 0, one.process.log_tail()
        assert one.log[-1]["message"] == "controller ends"
    left = [
        line for one in replicas for line in one.log if line["message"] in ("left unfinished", "lease not given back")
    ]
    site.cluster.wait_until("an answer", site.cluster.is_ready)
    assert left or not holders(site), "a lease is given back, or the log says that it was not"


def test_then_the_plan_goes_on_where_it_stood(site: Site) -> None:
    site.await_step(PLAN, PAUSES)
    site.cluster.kubectl("annotate", "crp", PLAN, "-n", site.namespace, "consumerplanner.dev/answer=3")
    last = site.start("last")
    try:
        status = site.await_phase(PLAN, "Succeeded")
    finally:
        assert last.process.stop(LONGEST_S) == 0, last.process.log_tail()
    assert site.deployment()["spec"]["replicas"] == 4
    assert status["ended"] == "new"
