"""Kubeconfigs: which one says how to reach an API server, and what the official client makes of it."""

import logging
import os
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client as official
from kubernetes import config as official_loaders
from kubernetes.config import kube_config
from kubernetes.config.config_exception import ConfigException

from planner.documents.tenant_files import tenant_file
from planner.errors import BadInputError
from planner.sources.connections import connection
from planner.sources.kubernetes.deadline import call_within
from planner.sources.kubernetes.errors import excerpt
from planner.sources.kubernetes.tenant_kubeconfig import tenant_kubeconfig

log = logging.getLogger(__name__)

Json = dict[str, Any]


def load_kubeconfig(kubeconfig: Path | str | None, context: str | None, deadline_s: float) -> official.Configuration:
    """Return the client's configuration by a file or a connection of Airflow, as ``KubernetesApi.connect`` says."""
    configuration = official.Configuration()
    what = _name_of(kubeconfig)
    content = _kubeconfig_of(kubeconfig) if isinstance(kubeconfig, str) else kubeconfig
    try:
        call_within(deadline_s, what, lambda: _load(configuration, content, context))
    except (ConfigException, OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise _unusable(f"{what}{f', context {context},' if context else ''}", kubeconfig, error) from error
    return configuration


def _name_of(kubeconfig: Path | str | None) -> str:
    return f"the kubeconfig {kubeconfig}" if kubeconfig else "the default kubeconfig"


def _unusable(what: str, kubeconfig: Path | str | None, error: Exception) -> BadInputError:
    """Return what is wrong with ``what``: for a default one that is no file at all, where it was looked for."""
    default = kube_config.KUBE_CONFIG_DEFAULT_LOCATION
    if kubeconfig is None and not any(Path(name).expanduser().exists() for name in default.split(os.pathsep) if name):
        return BadInputError(
            f"found no kubeconfig at {default}, and this is no pod: name a file that kubectl works with, by "
            "--kubeconfig or KUBECONFIG"
        )
    return BadInputError(f"{what} cannot be used: {excerpt(str(error))}: name a file that kubectl works with")


def _kubeconfig_of(reference: str) -> Json:
    """Return the kubeconfig in a connection's extra; its ``kube_config`` is an object, or the text of one."""
    kubeconfig = connection(reference).fields().get("kube_config")
    try:
        content = yaml.safe_load(kubeconfig) if isinstance(kubeconfig, str) else kubeconfig
    except yaml.YAMLError:
        content = None
    if not isinstance(content, dict):
        raise BadInputError(f"{reference} has no kubeconfig in field kube_config of its extra: set it in Airflow")
    return content


def own_namespace(kubeconfig: Path | None) -> str:
    """Return the namespace that kubectl would take: the current context's, else ``default``.

    Raises ``BadInputError`` for a kubeconfig that cannot be used.
    """
    try:
        _, current = official_loaders.list_kube_config_contexts(None if kubeconfig is None else str(kubeconfig))
    except (ConfigException, OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise _unusable(_name_of(kubeconfig), kubeconfig, error) from error
    return str(current.get("context", {}).get("namespace") or "default")


def _load(configuration: official.Configuration, kubeconfig: Path | Json | None, context: str | None) -> None:
    if kubeconfig is None and context is None:
        try:
            official_loaders.load_incluster_config(client_configuration=configuration)
        except ConfigException:
            log.debug("not in a pod, so by kubeconfig")
        else:
            return
    if isinstance(kubeconfig, Path) and (tenant := tenant_file(kubeconfig)):
        kubeconfig = tenant_kubeconfig(tenant, context)
    if isinstance(kubeconfig, dict):
        official_loaders.load_kube_config_from_dict(
            kubeconfig, context=context, client_configuration=configuration, persist_config=False
        )
        return
    official_loaders.load_kube_config(
        config_file=None if kubeconfig is None else str(kubeconfig),
        context=context,
        client_configuration=configuration,
        persist_config=False,
    )
