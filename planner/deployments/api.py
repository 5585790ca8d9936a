"""``RolloutApi``: the requests of an executor, through the official client. The one module here that touches it.

Writes are patches, and each carries the ``resourceVersion`` or uid that it holds for: the server then answers 409 to
whoever was slower, which is ``ConflictError``. Nothing is retried inside.
"""

import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import urllib3
from kubernetes import client as official

from planner.documents.crd import plan_resource, policy_resource
from planner.documents.format import API_GROUP, API_VERSION
from planner.errors import OutOfReachError
from planner.execution.ports import ConflictError
from planner.sources.kubernetes import AnswerError, KubernetesApi

Json = dict[str, Any]

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
_VERSION: Final = API_VERSION.rpartition("/")[2]
_PLANS: Final = (API_GROUP, _VERSION, plan_resource().plural)
_POLICIES: Final = (API_GROUP, _VERSION, policy_resource().plural)


class NotInstalledError(OutOfReachError):
    """The server knows no plans: somebody with the right must install the definitions first."""

    can_retry = False


class RolloutApi(KubernetesApi):
    """Reads and writes of one executor. Besides what reads raise, every write raises ``ConflictError`` for a 409."""

    def __init__(self, configuration: official.Configuration, deadline_s: float = 10.0) -> None:
        super().__init__(configuration, deadline_s)
        self._coordination = official.CoordinationV1Api(self._client)
        self._authorization = official.AuthorizationV1Api(self._client)
        self._versions = official.VersionApi(self._client)

    def plan(self, namespace: str, name: str) -> Json | None:
        """Return a plan object, ``None`` when there is none. Raises ``NotInstalledError`` without the definitions."""
        found = self._get(
            f"get plan {namespace}/{name}", self._custom.get_namespaced_custom_object, _PLANS, namespace, name
        )
        if found is None:
            self._check_installed()
        return found

    def plans(self, namespace: str) -> list[Json]:
        """Return all plan objects of a namespace."""
        group, version, plural = _PLANS

        def listing(namespace: str, **options: Any) -> Any:
            return self._custom.list_namespaced_custom_object(group, version, namespace, plural, **options)

        return self._list("plans", namespace, listing, None)

    def policy(self, namespace: str, name: str) -> Json | None:
        """Return a policy object, ``None`` when there is none."""
        request = f"get policy {namespace}/{name}"
        return self._get(request, self._custom.get_namespaced_custom_object, _POLICIES, namespace, name)

    def create_plan(self, namespace: str, body: Json, *, is_dry: bool = False) -> Json:
        """Create a plan object; ``is_dry`` goes through all checks of the server, and nothing is kept."""
        group, version, plural = _PLANS
        request = f"create plan {namespace}/{body['metadata']['name']}"
        options: Json = {"dry_run": "All"} if is_dry else {}
        found = self._send(
            request,
            self._custom.create_namespaced_custom_object,
            group,
            version,
            namespace,
            plural,
            body=body,
            **options,
        )
        if found is None:
            self._check_installed()
            raise AnswerError(f"{self.server}: {request}: there is no namespace {namespace}: correct it")
        return found

    def patch_plan(self, namespace: str, name: str, body: Json) -> Json | None:
        """Merge ``body`` into a plan object; ``None`` when there is none."""
        group, version, plural = _PLANS
        method, request = self._custom.patch_namespaced_custom_object, f"patch plan {namespace}/{name}"
        return self._send(request, method, group, version, namespace, plural, name, body=body, _content_type=MERGE)

    def replace_plan_status(self, namespace: str, name: str, body: Json) -> Json | None:
        """Replace a plan object's status; ``None`` when there is none."""
        group, version, plural = _PLANS
        method = self._custom.replace_namespaced_custom_object_status
        return self._send(
            f"write the status of plan {namespace}/{name}", method, group, version, namespace, plural, name, body=body
        )

    def find_deployment(self, namespace: str, name: str) -> Json | None:
        """Return a Deployment, ``None`` when there is none."""
        return self._send(f"get Deployment {namespace}/{name}", self._apps.read_namespaced_deployment, name, namespace)

    def patch_deployment(self, namespace: str, name: str, body: Json | list[Json], kind: str = MERGE) -> Json:
        """Patch a Deployment; one that is gone is a ``ConflictError``, as somebody was faster."""
        request = f"patch Deployment {namespace}/{name}"
        return self._found(
            request,
            self._send(request, self._apps.patch_namespaced_deployment, name, namespace, body=body, _content_type=kind),
        )

    def create_deployment(self, namespace: str, body: Json) -> Json:
        """Create a Deployment; one that is there already is a ``ConflictError``."""
        request = f"create Deployment {namespace}/{body['metadata']['name']}"
        return self._found(request, self._send(request, self._apps.create_namespaced_deployment, namespace, body=body))

    def delete_deployment(self, namespace: str, name: str, uid: str, resource_version: str) -> None:
        """Delete exactly this Deployment; one that is gone already is fine."""
        body = {
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid, "resourceVersion": resource_version},
        }
        request = f"delete Deployment {namespace}/{name}"
        self._send(request, self._apps.delete_namespaced_deployment, name, namespace, body=body)

    def patch_pod(self, namespace: str, name: str, body: Json) -> Json | None:
        """Merge ``body`` into a pod; ``None`` when there is none."""
        method = self._core.patch_namespaced_pod
        return self._send(f"patch pod {namespace}/{name}", method, name, namespace, body=body, _content_type=MERGE)

    def lease(self, namespace: str, name: str) -> Json | None:
        """Return a lease, ``None`` when there is none."""
        return self._send(f"get lease {namespace}/{name}", self._coordination.read_namespaced_lease, name, namespace)

    def create_lease(self, namespace: str, body: Json) -> Json:
        """Create a lease."""
        request = f"create lease {namespace}/{body['metadata']['name']}"
        return self._found(
            request, self._send(request, self._coordination.create_namespaced_lease, namespace, body=body)
        )

    def replace_lease(self, namespace: str, name: str, body: Json) -> Json:
        """Replace a lease."""
        request = f"replace lease {namespace}/{name}"
        method = self._coordination.replace_namespaced_lease
        return self._found(request, self._send(request, method, name, namespace, body=body))

    def create_event(self, namespace: str, body: Json) -> None:
        """Create an event."""
        self._send("create an event", self._core.create_namespaced_event, namespace, body=body)

    def may(self, attributes: Json) -> bool:
        """Return whether we may do that (``SelfSubjectAccessReview``)."""
        body = {"spec": {"resourceAttributes": attributes}}
        method = self._authorization.create_self_subject_access_review
        found = self._send("ask for our rights", method, body=body)
        return bool(found and found["status"]["allowed"])

    def server_time(self) -> datetime:
        """Return the server's time, within half a second and the time that the answer took."""
        request = "get the server's time"
        return self._within(request, lambda: self._timed(request))

    def _timed(self, request: str) -> datetime:
        asked = time.monotonic()
        try:
            answer: Any = self._versions.get_code(_preload_content=False, _request_timeout=self.deadline_s)
            said = answer.headers.get("Date")
        except (urllib3.exceptions.HTTPError, official.ApiException) as error:
            raise OutOfReachError(f"{self.server} cannot be reached: {request}: is it up?") from error
        if said is None:
            raise AnswerError(f"{self.server}: {request}: the answer has no date: is this an API server?")
        told = parsedate_to_datetime(said).timestamp() + 0.5  # the header leaves the fraction of the second out
        return datetime.fromtimestamp(told + (time.monotonic() - asked) / 2, UTC)

    def _check_installed(self) -> None:
        group, version, _ = _PLANS
        method = self._custom.get_api_resources
        if self._send("list the kinds of " + API_GROUP, method, group, version) is None:
            raise NotInstalledError(
                f"{self.server} knows no {plan_resource().kind}: let a cluster administrator install the definitions "
                "with kubectl apply -f k8s/crds"
            )

    def _get(self, request: str, method: Any, kind: tuple[str, str, str], namespace: str, name: str) -> Json | None:
        group, version, plural = kind
        return self._send(request, method, group, version, namespace, plural, name)

    def _send(self, request: str, method: Any, *arguments: str, **options: Any) -> Json | None:
        return self._within(request, lambda: self._ask(request, method, *arguments, **options))

    def _found(self, request: str, found: Json | None) -> Json:
        if found is None:
            raise ConflictError(f"{self.server}: {request}: it is gone")
        return found

    def _refusal(self, request: str, status: int, text: str) -> OutOfReachError:
        refusal = super()._refusal(request, status, text)
        # A patch for another uid is answered so, not by 409 (seen on 1.36.4).
        is_another = status == 422 and '"field":"metadata.uid"' in text
        return ConflictError(str(refusal)) if status == 409 or is_another else refusal
