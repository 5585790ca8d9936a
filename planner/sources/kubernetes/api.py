"""``KubernetesApi``: the reads that the planner needs, through the official client, each within a deadline.

Only this module and ``kubeconfig`` touch that client. It lists and gets; there is no method here that writes, and the
role in ``k8s/rbac`` allows none.
"""

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import urllib3
from kubernetes import client as official
from kubernetes.client.exceptions import ApiException

from planner.errors import BadInputError, OutOfReachError, UnknownNameError
from planner.model.deployments import APPS, BUILT_IN, DEPLOYMENT, STATEFUL_SET
from planner.sources.kubernetes.deadline import call_within, no_answer
from planner.sources.kubernetes.errors import AnswerError, ForbiddenError, NotLetInError, excerpt
from planner.sources.kubernetes.kubeconfig import load_kubeconfig
from planner.text.words import nearest_first, some

log = logging.getLogger(__name__)

Json = dict[str, Any]

_T = TypeVar("_T")
DEADLINE_S: Final = 10.0
_PAGE: Final = 500
"""Objects in one answer; a server then need not hold thousands of pods in memory for us."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_GONE: Final = 410
Resource = tuple[str, str, str]
"""API group, version and plural of a kind that is asked for by these."""
_KEDA: Final = ("keda.sh", "v1alpha1", "scaledobjects")


class _ListExpiredError(AnswerError):
    """The snapshot that a list's next page belongs to is no longer kept (after five minutes or so)."""


class KubernetesApi:
    """Reads one API server. Safe to share between threads; close it, or use it as a context manager.

    Every method raises ``OutOfReachError`` (no connection, or no answer within ``deadline_s`` seconds, all pages of a
    list together), ``NotLetInError`` (401), ``ForbiddenError`` (403) or ``AnswerError``. ``namespace=None`` means all.
    """

    def __init__(self, configuration: official.Configuration, deadline_s: float = DEADLINE_S) -> None:
        # A retry inside the client would make three deadlines of one.
        configuration.retries = False
        self.server = str(configuration.host)
        self.deadline_s = deadline_s
        self._client = official.ApiClient(configuration)
        self._core = official.CoreV1Api(self._client)
        self._apps = official.AppsV1Api(self._client)
        self._autoscaling = official.AutoscalingV2Api(self._client)
        self._custom = official.CustomObjectsApi(self._client)
        self._scaled: dict[tuple[str, str], Resource] = {}

    @classmethod
    def connect(
        cls, kubeconfig: Path | str | None = None, context: str | None = None, deadline_s: float = DEADLINE_S
    ) -> Self:
        """Return an API by a kubeconfig file and one of its contexts; nothing is sent yet.

        Text names a connection of Airflow, whose extra holds the kubeconfig as ``kube_config``. A tenant's file may
        start no program and name no file, and only a server that an administrator listed: ``tenant_kubeconfig``.

        Without either, the service account of the pod that we run in, or else kubectl's own default: ``KUBECONFIG`` or
        ``~/.kube/config`` with its current context. Raises ``BadInputError`` when there is none or it is broken.
        """
        return cls(load_kubeconfig(kubeconfig, context, deadline_s), deadline_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.rest_client.pool_manager.clear()

    def deployment(self, namespace: str, name: str, kind: str = DEPLOYMENT, api_version: str = APPS) -> Json:
        """Return one Deployment, StatefulSet or other scale target.

        A list would leave the kind out, a single object carries it. Raises ``UnknownNameError``, with those that exist,
        when there is none of that name; and as ``scaled_resource`` does.
        """
        _check_name("namespace", namespace)
        _check_name(kind, name)
        deployment = self.find_deployment(namespace, name, kind, api_version)
        if deployment is None:
            raise UnknownNameError(
                f"{self.server} has no {kind} {name} in namespace {namespace}"
                f"{self._list_others(namespace, name, kind, api_version)}: correct namespace and name (in a policy: "
                "metadata.namespace and scaleTargetRef)"
            )
        return deployment

    def find_deployment(
        self, namespace: str, name: str, kind: str = DEPLOYMENT, api_version: str = APPS
    ) -> Json | None:
        """Return a Deployment, StatefulSet or other scale target, ``None`` when there is none of that name."""
        request = f"get {kind} {namespace}/{name}"
        if (api_version, kind) in BUILT_IN:
            read = self._target_methods(kind)[0]
            return self._within(request, lambda: self._ask(request, read, name, namespace))
        group, version, plural = self.scaled_resource(kind, api_version)
        get = self._custom.get_namespaced_custom_object
        return self._within(request, lambda: self._ask(request, get, group, version, namespace, plural, name))

    def scale(self, namespace: str, name: str, kind: str, api_version: str) -> Json:
        """Return the sub-resource ``scale`` of a target of another kind (``autoscaling/v1``).

        Raises as ``scaled_resource`` does, and ``AnswerError`` where the target has gone in the meantime.
        """
        request = f"get the scale of {kind} {namespace}/{name}"
        group, version, plural = self.scaled_resource(kind, api_version)
        get = self._custom.get_namespaced_custom_object_scale
        scale = self._within(request, lambda: self._ask(request, get, group, version, namespace, plural, name))
        if scale is None:
            raise AnswerError(f"{self.server}: {request}: it is gone: look whether somebody has deleted it")
        return scale

    def scaled_resource(self, kind: str, api_version: str) -> Resource:
        """Return the resource of a kind that has a sub-resource ``scale``, by what the server says that it serves.

        Raises ``UnknownNameError`` where it serves no such kind, or one without that sub-resource.
        """
        if (kind, api_version) not in self._scaled:
            self._scaled[kind, api_version] = self._discover(kind, api_version)
        return self._scaled[kind, api_version]

    def _discover(self, kind: str, api_version: str) -> Resource:
        group, _, version = api_version.partition("/")
        request = f"list the kinds of {api_version}"
        listed = self._within(request, lambda: self._ask(request, self._custom.get_api_resources, group, version))
        if listed is None:
            raise UnknownNameError(
                f"{self.server} serves no {api_version}: correct the apiVersion of scaleTargetRef, or install that API"
            )
        resources = [each for each in listed.get("resources") or () if each.get("namespaced")]
        names = {each["name"] for each in resources}
        scaled = {each["kind"]: each["name"] for each in resources if f"{each['name']}/scale" in names}
        if kind in scaled:
            return group, version, scaled[kind]
        others = some(sorted(scaled), 10) if scaled else "none"
        raise UnknownNameError(
            f"{self.server} serves no kind {kind} of {api_version} with a sub-resource scale (those that have one: "
            f"{others}): a plan sets a count by it; correct scaleTargetRef, or add subresources.scale to the definition"
        )

    def replica_sets(self, namespace: str | None, selector: str | None = None) -> list[Json]:
        """Return ReplicaSets, those that ``selector`` (a label selector) takes."""
        if namespace is None:
            return self._list("ReplicaSets", None, self._apps.list_replica_set_for_all_namespaces, selector)
        return self._list("ReplicaSets", namespace, self._apps.list_namespaced_replica_set, selector)

    def pods(self, namespace: str | None, selector: str | None = None) -> list[Json]:
        """Return pods, those that ``selector`` takes, in whatever phase."""
        if namespace is None:
            return self._list("pods", None, self._core.list_pod_for_all_namespaces, selector)
        return self._list("pods", namespace, self._core.list_namespaced_pod, selector)

    def horizontal_pod_autoscalers(self, namespace: str) -> list[Json]:
        """Return the HorizontalPodAutoscalers (``autoscaling/v2``) of a namespace."""
        listing = self._autoscaling.list_namespaced_horizontal_pod_autoscaler
        return self._list("HorizontalPodAutoscalers", namespace, listing, None)

    def scaled_objects(self, namespace: str) -> list[Json]:
        """Return KEDA's ScaledObjects of a namespace; none where KEDA is not installed."""
        group, version, plural = _KEDA

        def listing(namespace: str, **options: Any) -> Any:
            return self._custom.list_namespaced_custom_object(group, version, namespace, plural, **options)

        return self._list("ScaledObjects", namespace, listing, None)

    def _target_methods(self, kind: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Return how one object of a kind is read, and how all are listed."""
        if kind == STATEFUL_SET:
            return self._apps.read_namespaced_stateful_set, self._apps.list_namespaced_stateful_set
        return self._apps.read_namespaced_deployment, self._apps.list_namespaced_deployment

    def _list_others(self, namespace: str, name: str, kind: str, api_version: str) -> str:
        try:
            deployments = self._list(f"{kind}s", namespace, self._listing(kind, api_version), None)
        except OutOfReachError as error:
            log.debug("others not listed", extra={"kind": kind, "namespace": namespace, "reason": str(error)})
            return ""
        names = nearest_first(name, (each["metadata"]["name"] for each in deployments))
        return f", but {some(names, 10)}" if names else ", and no other"

    def _listing(self, kind: str, api_version: str) -> Callable[..., Any]:
        if (api_version, kind) in BUILT_IN:
            return self._target_methods(kind)[1]
        group, version, plural = self.scaled_resource(kind, api_version)

        def listing(namespace: str, **options: Any) -> Any:
            return self._custom.list_namespaced_custom_object(group, version, namespace, plural, **options)

        return listing

    def _list(self, kind: str, namespace: str | None, listing: Callable[..., Any], selector: str | None) -> list[Json]:
        where = () if namespace is None else (_check_name("namespace", namespace),)
        request = f"list {kind} in {'all namespaces' if namespace is None else f'namespace {namespace}'}"
        options = {} if selector is None else {"label_selector": selector}
        return self._within(request, lambda: self._pages(request, listing, where, options))

    def _pages(self, request: str, listing: Callable[..., Any], where: tuple[str, ...], options: Json) -> list[Json]:
        def page(more: str) -> Json | None:
            return self._ask(request, listing, *where, limit=_PAGE, **options, **({"_continue": more} if more else {}))

        try:
            return self._all_pages(request, page)
        except _ListExpiredError as error:
            log.debug("list expired between two pages, read again", extra={"request": request, "reason": str(error)})
            return self._all_pages(request, page)

    def _all_pages(self, request: str, page: Callable[[str], Json | None]) -> list[Json]:
        items: list[Json] = []
        more = ""
        while (listing := page(more)) is not None:  # None: the kind itself is not there
            try:
                items += listing["items"] or []
                more = listing["metadata"].get("continue") or ""
            except (KeyError, TypeError, AttributeError) as error:
                raise AnswerError(f"{self.server}: {request}: the answer is no list of Kubernetes objects") from error
            if not more:
                break
        return items

    def _within(self, request: str, call: Callable[[], _T]) -> _T:
        return call_within(self.deadline_s, f"{self.server}: {request}", call)

    def _ask(self, request: str, method: Callable[..., Any], *arguments: str, **options: Any) -> Json | None:
        """Return the decoded object, ``None`` for 404."""
        try:
            answer = method(*arguments, **options, _preload_content=False, _request_timeout=self.deadline_s)
            status, body = int(answer.status), answer.data
        except ApiException as error:
            status, body = int(error.status or 0), (error.body or error.reason or "")
        except urllib3.exceptions.HTTPError as error:
            cause = _cause(error)
            if isinstance(cause, urllib3.exceptions.ReadTimeoutError):
                raise no_answer(f"{self.server}: {request}", self.deadline_s) from error
            raise OutOfReachError(
                f"{self.server} cannot be reached: {request}: {excerpt(str(cause))}: is it up?"
            ) from error
        text = body.decode(errors="replace") if isinstance(body, bytes) else str(body)
        return self._decode(request, status, text)

    def _decode(self, request: str, status: int, text: str) -> Json | None:
        if status == 404:
            return None
        if status not in (200, 201, 202):
            raise self._refusal(request, status, text)
        try:
            decoded = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise AnswerError(
                f"{self.server}: {request}: the answer is no JSON but {excerpt(text)!r}: is this an API server?"
            ) from error
        if not isinstance(decoded, dict):
            raise AnswerError(f"{self.server}: {request}: the answer is no Kubernetes object but {excerpt(text)!r}")
        return decoded

    def _refusal(self, request: str, status: int, text: str) -> OutOfReachError:
        reason = excerpt(_message(text))
        if status == 401:
            return NotLetInError(f"{self.server} does not know us: {request}: {reason}: renew the token or certificate")
        if status == 403:
            return ForbiddenError(f"{self.server} does not allow it: {request}: {reason}: grant the role in k8s/rbac")
        if status == 0:
            return OutOfReachError(
                f"{self.server} cannot be reached: {request}: {reason}: check its address and authority"
            )
        if status == 429:
            return OutOfReachError(f"{self.server} has too much to do: {request}: {reason}: try again later")
        kind = _ListExpiredError if status == _GONE else AnswerError
        return kind(f"{self.server}: {request}: answered {status}: {reason}")


def _check_name(kind: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise BadInputError(f"{kind} {name!r} cannot be: Kubernetes names have lower-case letters, digits, - and .")
    return name


def _message(text: str) -> str:
    """Return a Status object's message, or the text itself."""
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return text


def _cause(error: BaseException) -> BaseException:
    reason = getattr(error, "reason", None)
    return reason if isinstance(reason, BaseException) else error
