"""``RolloutApi``: the requests of an executor, through the official client. The one module here that touches it.

Writes are patches, and each carries the ``resourceVersion`` or uid that it holds for: the server then answers 409 to
the slower of two writers, which is ``ConflictError``. Nothing is retried inside.
"""

import logging
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import urllib3
from kubernetes import client as official

from planner.documents.crd import plan_resource, policy_resource
from planner.documents.format import API_GROUP, API_VERSION
from planner.errors import OutOfReachError, PlannerError
from planner.execution.ports import ConflictError
from planner.model.deployments import APPS, BUILT_IN, DEPLOYMENT, STATEFUL_SET
from planner.sources.kubernetes import AnswerError, KubernetesApi, NotLetInError
from planner.sources.kubernetes.api import DEADLINE_S, Resource

log = logging.getLogger(__name__)

Json = dict[str, Any]

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
_VERSION: Final = API_VERSION.rpartition("/")[2]
_PLANS: Final = (API_GROUP, _VERSION, plan_resource().plural)
_LEASES: Final = ("coordination.k8s.io", "v1", "leases")
_POLICIES: Final = (API_GROUP, _VERSION, policy_resource().plural)


@dataclass(frozen=True, slots=True)
class Login:
    """A server, and how one gets in there: by a token, or by a certificate."""

    server: str
    ca_file: str | None
    is_verified: bool
    token: str | None = field(repr=False)
    certificate_file: str | None
    key_file: str | None


class NotInstalledError(OutOfReachError):
    """The server knows no plans: somebody with the right must install the definitions first."""

    can_retry = False


class RolloutApi(KubernetesApi):
    """Reads and writes of one executor. Besides what reads raise, every write raises ``ConflictError`` for a 409.

    It lives longer than its token may: one that the server takes no more (401) is read anew from where it came.
    """

    def __init__(self, configuration: official.Configuration, deadline_s: float = DEADLINE_S) -> None:
        super().__init__(configuration, deadline_s)
        self._source: tuple[Path | str | None, str | None] | None = None
        self._coordination = official.CoordinationV1Api(self._client)
        self._authentication = official.AuthenticationV1Api(self._client)
        self._authorization = official.AuthorizationV1Api(self._client)
        self._versions = official.VersionApi(self._client)

    @classmethod
    def connect(
        cls, kubeconfig: Path | str | None = None, context: str | None = None, deadline_s: float = DEADLINE_S
    ) -> Self:
        """Return an API as ``KubernetesApi.connect`` does, which reads its token anew once it is taken no more."""
        made = super().connect(kubeconfig, context, deadline_s)
        made._source = (kubeconfig, context)
        return made

    def plan(self, namespace: str, name: str) -> Json | None:
        """Return a plan object, ``None`` when there is none. Raises ``NotInstalledError`` without the definitions."""
        manifest = self._get(
            f"get plan {namespace}/{name}", self._custom.get_namespaced_custom_object, _PLANS, namespace, name
        )
        if manifest is None:
            self.check_installed()
        return manifest

    def plans(self, namespace: str | None) -> list[Json]:
        """Return all plan objects of a namespace; ``None`` means all of them."""
        group, version, plural = _PLANS
        if namespace is None:
            return self._list("plans", None, partial(self._custom.list_cluster_custom_object, *_PLANS), None)

        def listing(namespace: str, **options: Any) -> Any:
            return self._custom.list_namespaced_custom_object(group, version, namespace, plural, **options)

        return self._list("plans", namespace, listing, None)

    def policy(self, namespace: str, name: str) -> Json | None:
        """Return a policy object, ``None`` when there is none."""
        request = f"get policy {namespace}/{name}"
        return self._get(request, self._custom.get_namespaced_custom_object, _POLICIES, namespace, name)

    def policies(self, namespace: str) -> list[Json]:
        """Return all policy objects of a namespace. Raises ``NotInstalledError`` without the definitions."""
        group, version, plural = _POLICIES

        def listing(namespace: str, **options: Any) -> Any:
            return self._custom.list_namespaced_custom_object(group, version, namespace, plural, **options)

        manifests = self._list("policies", namespace, listing, None)
        if not manifests:
            self.check_installed()
        return manifests

    def patch_policy_status(self, namespace: str, name: str, body: Json) -> Json | None:
        """Merge ``body`` into a policy object's status; ``None`` when there is no such object."""
        group, version, plural = _POLICIES
        method = self._custom.patch_namespaced_custom_object_status
        request = f"write the status of policy {namespace}/{name}"
        return self._send(request, method, group, version, namespace, plural, name, body=body, _content_type=MERGE)

    def create_plan(self, namespace: str, body: Json, *, is_dry: bool = False) -> Json:
        """Create a plan object; ``is_dry`` goes through all checks of the server, and nothing is kept."""
        group, version, plural = _PLANS
        request = f"create plan {namespace}/{body['metadata']['name']}"
        options: Json = {"dry_run": "All"} if is_dry else {}
        created = self._send(
            request,
            self._custom.create_namespaced_custom_object,
            group,
            version,
            namespace,
            plural,
            body=body,
            **options,
        )
        if created is None:
            self.check_installed()
            raise AnswerError(f"{self.server}: {request}: there is no namespace {namespace}: correct it")
        return created

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

    def delete_plan(self, namespace: str, name: str, uid: str, resource_version: str) -> None:
        """Delete exactly this plan object as it was read, else ``ConflictError``; one that is gone already is fine."""
        group, version, plural = _PLANS
        method, request = self._custom.delete_namespaced_custom_object, f"delete plan {namespace}/{name}"
        body = {"preconditions": {"uid": uid, "resourceVersion": resource_version}}
        self._send(request, method, group, version, namespace, plural, name, body=body)

    def patch_deployment(
        self,
        namespace: str,
        name: str,
        body: Json | list[Json],
        content: str = MERGE,
        kind: str = DEPLOYMENT,
        api_version: str = APPS,
    ) -> Json:
        """Patch a Deployment, StatefulSet or other scale target; one that is gone is a ``ConflictError``.

        The object itself and not its sub-resource ``scale``: that has no annotations, and count and claim are to be
        written in one request.
        """
        if (api_version, kind) not in BUILT_IN:
            assert isinstance(body, dict)
            return self.patch_object(self.scaled_resource(kind, api_version), namespace, name, body)
        request = f"patch {kind} {namespace}/{name}"
        apps, is_stateful = self._apps, kind == STATEFUL_SET
        patch = apps.patch_namespaced_stateful_set if is_stateful else apps.patch_namespaced_deployment
        return self._require(request, self._send(request, patch, name, namespace, body=body, _content_type=content))

    def create_deployment(self, namespace: str, body: Json) -> Json:
        """Create a Deployment; one that is there already is a ``ConflictError``."""
        request = f"create Deployment {namespace}/{body['metadata']['name']}"
        return self._require(
            request, self._send(request, self._apps.create_namespaced_deployment, namespace, body=body)
        )

    def delete_deployment(self, namespace: str, name: str, uid: str, resource_version: str) -> None:
        """Delete exactly this Deployment; one that is gone already is fine."""
        body = {
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid, "resourceVersion": resource_version},
        }
        request = f"delete Deployment {namespace}/{name}"
        self._send(request, self._apps.delete_namespaced_deployment, name, namespace, body=body)

    def find_object(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """Return an object of any kind, ``None`` when there is none."""
        request = f"get {resource[2]} {namespace}/{name}"
        return self._get(request, self._custom.get_namespaced_custom_object, resource, namespace, name)

    def patch_object(self, resource: Resource, namespace: str, name: str, body: Json) -> Json:
        """Merge ``body`` into an object of any kind; one that is gone is a ``ConflictError``."""
        group, version, plural = resource
        method, request = self._custom.patch_namespaced_custom_object, f"patch {plural} {namespace}/{name}"
        arguments = (group, version, namespace, plural, name)
        return self._require(request, self._send(request, method, *arguments, body=body, _content_type=MERGE))

    def patch_pod(self, namespace: str, name: str, body: Json) -> Json | None:
        """Merge ``body`` into a pod; ``None`` when there is none."""
        method = self._core.patch_namespaced_pod
        return self._send(f"patch pod {namespace}/{name}", method, name, namespace, body=body, _content_type=MERGE)

    def lease(self, namespace: str, name: str) -> Json | None:
        """Return a lease, ``None`` when there is none."""
        return self._send(f"get lease {namespace}/{name}", self._coordination.read_namespaced_lease, name, namespace)

    def create_lease(self, namespace: str, body: Json) -> Json:
        """Create a lease."""
        # Not by the typed call: of a time on the full second its model drops the fraction, without which none is taken.
        request = f"create lease {namespace}/{body['metadata']['name']}"
        group, version, plural = _LEASES
        method = self._custom.create_namespaced_custom_object
        return self._require(request, self._send(request, method, group, version, namespace, plural, body=body))

    def replace_lease(self, namespace: str, name: str, body: Json) -> Json:
        """Replace a lease."""
        request = f"replace lease {namespace}/{name}"
        group, version, plural = _LEASES
        method = self._custom.replace_namespaced_custom_object
        return self._require(request, self._send(request, method, group, version, namespace, plural, name, body=body))

    def create_event(self, namespace: str, body: Json) -> Json:
        """Create an event."""
        request = "create an event"
        return self._require(request, self._send(request, self._core.create_namespaced_event, namespace, body=body))

    def patch_event(self, namespace: str, name: str, body: Json) -> Json | None:
        """Merge ``body`` into an event; ``None`` where it is gone, as the server keeps events for an hour or so."""
        method = self._core.patch_namespaced_event
        return self._send("patch an event", method, name, namespace, body=body, _content_type=MERGE)

    def may(self, attributes: Json) -> bool:
        """Return whether we may do that (``SelfSubjectAccessReview``)."""
        body = {"spec": {"resourceAttributes": attributes}}
        method = self._authorization.create_self_subject_access_review
        review = self._send("ask for our rights", method, body=body)
        return bool(review and review["status"]["allowed"])

    def own_name(self) -> str:
        """Return the name by which the server knows us (``SelfSubjectReview``, Kubernetes 1.28 and later)."""
        review = self._send("ask for our name", self._authentication.create_self_subject_review, body={})
        if review is None:
            raise AnswerError(f"{self.server} cannot report our name: it takes Kubernetes 1.28 or later")
        return str(review["status"]["userInfo"]["username"])

    def login(self) -> Login:
        """Return how we get in, for another client of the same server; a token that is renewed is read anew.

        Raises ``OutOfReachError`` when that takes too long: a kubeconfig may name a program to ask.
        """
        return self._within("get a token", self._login)

    def _login(self) -> Login:
        configuration = self._configuration
        header = configuration.get_api_key_with_prefix("BearerToken") or configuration.get_api_key_with_prefix(
            "authorization"
        )
        return Login(
            server=str(configuration.host),
            ca_file=configuration.ssl_ca_cert,
            is_verified=bool(configuration.verify_ssl),
            token=header.rpartition(" ")[2] if header else None,
            certificate_file=configuration.cert_file,
            key_file=configuration.key_file,
        )

    def server_time(self) -> datetime:
        """Return the server's time, within half a second and the time that the answer took."""
        request = "get the server's time"
        return self._within(request, lambda: self._read_time(request))

    def _read_time(self, request: str) -> datetime:
        asked = time.monotonic()
        try:
            answer: Any = self._versions.get_code(_preload_content=False, _request_timeout=self.deadline_s)
            date_header = answer.headers.get("Date")
        except urllib3.exceptions.HTTPError as error:
            raise OutOfReachError(f"{self.server} cannot be reached: {request}: is it up?") from error
        except official.ApiException as error:
            raise self._refusal(request, int(error.status or 0), str(error.body or error.reason or "")) from error
        if date_header is None:
            raise AnswerError(f"{self.server}: {request}: the answer has no date: is this an API server?")
        server_s = (
            parsedate_to_datetime(date_header).timestamp() + 0.5
        )  # the header leaves the fraction of the second out
        return datetime.fromtimestamp(server_s + (time.monotonic() - asked) / 2, UTC)

    def check_installed(self) -> None:
        """Raise ``NotInstalledError`` unless the server knows plans."""
        group, version, _ = _PLANS
        method = self._custom.get_api_resources
        if self._send("list the kinds of " + API_GROUP, method, group, version) is None:
            raise NotInstalledError(
                f"{self.server} knows no {plan_resource().kind}: let a cluster administrator install the definitions "
                "with kubectl apply -f k8s/crds"
            )

    def _get(self, request: str, method: Any, kind: Resource, namespace: str, name: str) -> Json | None:
        group, version, plural = kind
        return self._send(request, method, group, version, namespace, plural, name)

    def _ask(self, request: str, method: Any, *arguments: str, **options: Any) -> Json | None:
        used = dict(self._configuration.api_key)
        try:
            return super()._ask(request, method, *arguments, **options)
        except NotLetInError:
            self._renew()
            if self._configuration.api_key == used:
                raise
        return super()._ask(request, method, *arguments, **options)

    @property
    def _configuration(self) -> Any:
        return self._client.configuration

    def _renew(self) -> None:
        """Read the token anew where it came from; on failure it stays as it is: a later reconcile may read it."""
        if self._source is None:
            return
        try:
            with RolloutApi.connect(*self._source, self.deadline_s) as fresh:
                renewed = fresh._configuration
        except PlannerError as error:
            log.warning("the token could not be read anew", extra={"server": self.server, "error": str(error)})
            return
        # The hook comes along: it would put the old token back.
        self._configuration.api_key = renewed.api_key
        self._configuration.refresh_api_key_hook = renewed.refresh_api_key_hook

    def _send(self, request: str, method: Any, *arguments: str, **options: Any) -> Json | None:
        return self._within(request, lambda: self._ask(request, method, *arguments, **options))

    def _require(self, request: str, answer: Json | None) -> Json:
        if answer is None:
            raise ConflictError(f"{self.server}: {request}: it is gone")
        return answer

    def _refusal(self, request: str, status: int, text: str) -> OutOfReachError:
        refusal = super()._refusal(request, status, text)
        # A patch for another uid is answered so, not by 409 (seen on 1.36.4).
        is_another = status == 422 and '"field":"metadata.uid"' in text
        return ConflictError(str(refusal)) if status == 409 or is_another else refusal
