"""The plans of one namespace in memory, under the requests that ``RolloutApi`` makes. Nothing else is in there."""

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime

from tests.clusters.kubernetes.rest import Json


class FakeApi:
    """An API server that knows plans and grants every right. ``writes`` are the annotations of each patch, in order.

    ``before_status`` is called before each write of a status.
    """

    server = "https://fake"

    def __init__(self, before_status: Callable[[], None] = lambda: None) -> None:
        self.objects: dict[str, Json] = {}
        self.writes: list[Json] = []
        self.before_status = before_status

    def plan(self, namespace: str, name: str) -> Json | None:
        assert namespace == "shop"
        return deepcopy(self.objects.get(name))

    def create_plan(self, _: str, body: Json, *, is_dry: bool = False) -> Json:
        at = datetime.now(UTC).isoformat()
        meta = {**body["metadata"], "uid": "uid-1", "creationTimestamp": at, "resourceVersion": "1"}
        made = deepcopy({**body, "metadata": meta})
        if not is_dry:
            self.objects[made["metadata"]["name"]] = made
        return made

    def patch_plan(self, _: str, name: str, body: Json) -> Json | None:
        found = self.objects.get(name)
        if found is None:
            return None
        meta = dict(body["metadata"])
        if notes := meta.pop("annotations", None):
            self.writes.append(notes)
            found["metadata"]["annotations"].update(notes)
        found["metadata"].update(meta)
        return deepcopy(found)

    def replace_plan_status(self, _: str, name: str, body: Json) -> Json | None:
        self.before_status()
        self.objects[name]["status"] = deepcopy(body["status"])
        return deepcopy(self.objects[name])

    def own_name(self) -> str:
        return "alice"

    def may(self, _: Json) -> bool:
        return True

    def server_time(self) -> datetime:
        return datetime.now(UTC)

    def create_event(self, _: str, body: Json) -> Json:
        return {**body, "metadata": {"name": "event"}}

    def patch_event(self, *_: object) -> Json:
        return {}

    def lease(self, *_: object) -> None:
        pass
