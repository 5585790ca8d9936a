"""The pages of plans, served by Airflow's API server to whoever may read the scheduled DAG.

The API server reads them below ``CONSUMER_PLANNER_DATA``, which has to be mounted there, too.
"""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PREFIX: Final = "/consumer-planner"
SCHEDULED: Final = "consumer_planner"
"""The DAG whose readers may read pages."""

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_SEALED: Final = {
    # The page draws with its own script and styles; it may not speak to the API server in its reader's name.
    "Content-Security-Policy": "sandbox allow-scripts",
    "X-Content-Type-Options": "nosniff",
}


def page_link(plan: Path) -> str | None:
    """Return the link to the page that lies beside a run's plan, ``None`` where the run wrote none.

    It begins with ``[api] base_url``, where that is set.
    """
    from airflow.sdk.configuration import conf  # noqa: PLC0415  this module is read in every process of Airflow

    from planner.storage.layout import RUNS, PolicyFiles, is_time_name  # noqa: PLC0415

    run = plan.parent.parent
    if not PolicyFiles(plan.parent).report.exists() or run.parent.name != RUNS or not is_time_name(run.name):
        return None
    base = (conf.get("api", "base_url", fallback=None) or "").rstrip("/")
    return f"{base}{PREFIX}/pages/{run.name}/{plan.parent.name}"


def page_file(run: str, policy: str) -> Path | None:
    """Return a page below the data folder, ``None`` for names that no run has and for a page that is not there."""
    from planner.storage.layout import PolicyFiles, is_time_name, runs_folder  # noqa: PLC0415

    data = os.environ.get("CONSUMER_PLANNER_DATA")
    if not data or not is_time_name(run) or not _NAME.fullmatch(policy):
        return None
    page = PolicyFiles(runs_folder(Path(data)) / run / policy).report
    return page if page.is_file() else None


class Pages:
    """An ASGI app that is made when the first page is asked for: plugins are loaded in every process of Airflow."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer one request."""
        if self._app is None:
            self._app = _make_app()
        await self._app(scope, receive, send)


def _make_app() -> Any:
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity  # noqa: PLC0415
    from airflow.api_fastapi.core_api.security import requires_access_dag  # noqa: PLC0415
    from fastapi import Depends, FastAPI, HTTPException  # noqa: PLC0415
    from fastapi.responses import FileResponse  # noqa: PLC0415

    app = FastAPI(title="Consumer planner", docs_url=None, redoc_url=None, openapi_url=None)
    may_read = Depends(requires_access_dag("GET", DagAccessEntity.RUN, SCHEDULED))

    @app.get("/pages/{run}/{policy}", dependencies=[may_read])
    def page(run: str, policy: str) -> FileResponse:
        file = page_file(run, policy)
        if file is None:
            raise HTTPException(
                404, f"no page of policy {policy} in run {run} below CONSUMER_PLANNER_DATA of the API server"
            )
        return FileResponse(file, media_type="text/html", headers=_SEALED)

    return app
