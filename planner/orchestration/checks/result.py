"""What a check is about, and what comes of it."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """What the tasks of the DAG would be given: folders of policies and data as text, as in the DAG's form.

    ``kubeconfig`` is the one of the apply DAG, ``None`` where no plan is handed over from here. ``spark_s`` seconds may
    pass until the Spark job has ended.
    """

    policies: str
    data: str
    kubeconfig: Path | None
    spark_s: float


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One sentence: what was proved, or what was found instead, what was expected and the next step."""

    check: str
    is_good: bool
    sentence: str
