"""Who is notified: any Airflow notifier, by the one setting ``CONSUMER_PLANNER_NOTIFIER``.

Its value is JSON, ``{"classpath": "airflow.providers.smtp.notifications.smtp.SmtpNotifier", "kwargs": {…}}``. Templates
in kwargs know ``event`` (``planned``, ``holding``, ``overdue``, ``asked``, ``refused``, ``failed``) and ``sentence``
beside Airflow's own names.
"""

import json
import logging
import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from planner.errors import BadInputError
from planner.text.printable import one_line

log = logging.getLogger(__name__)

SETTING = "CONSUMER_PLANNER_NOTIFIER"
EXPECTED = 'expected JSON like {"classpath": "package.module.Notifier", "kwargs": {}}'


def notify(context: Mapping[str, Any], event: str, sentence: str) -> None:
    """Have the configured notifier say the sentence; nothing where there is none.

    A notifier that fails costs no run: the sentence and the failure are logged.
    """
    try:
        notifier = configured_notifier()
        if notifier is not None:
            notifier({**context, "event": event, "sentence": sentence})
    except Exception:
        log.exception("nobody was notified (%s: %s): check %s", event, one_line(sentence), SETTING)


def notify_of_failure(context: Mapping[str, Any]) -> None:
    """Notify of a task that failed for good: the ``on_failure_callback`` of every task.

    A refusal of the planner has its name in the sentence and is an event of its own.
    """
    sentence = str(context.get("exception") or "no reason was given").splitlines()[0]
    task = context["ti"].task_id
    notify(context, "refused" if sentence.startswith("no plan (") else "failed", f"{task}: {sentence}")


def configured_notifier() -> Any | None:
    """Return the notifier of the setting, ``None`` without one. Raises ``BadInputError`` when it cannot be made."""
    text = os.environ.get(SETTING)
    if not text:
        return None
    try:
        setting = json.loads(text)
        module, _, name = setting["classpath"].rpartition(".")
        return getattr(import_module(module), name)(**setting.get("kwargs", {}))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, ImportError) as error:
        raise BadInputError(f"{SETTING} cannot be used ({type(error).__name__}: {error}): {EXPECTED}") from error
