"""What Prometheus scrapes. The numbers of one replica: only the leader counts, so sums over replicas are right."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from planner.execution.phases import Phase
from planner.execution.progress import Refusal, StepProgress
from planner.verification.calibration import CalibrationRecord

_STEP_S: Final = (1, 2, 5, 10, 20, 40, 60, 120, 300, 600, 1_800, 3_600)
_RECONCILE_S: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_PREFIX: Final = "consumerplanner"

Counts = Callable[[], Mapping[tuple[str, str], int]]
"""(namespace, phase) -> how many plans there are."""


class _Plans(Collector):
    """Plans by phase, counted when somebody asks."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the one gauge; a namespace with plans has every phase, so that a 0 is seen as one."""
        family = GaugeMetricFamily(f"{_PREFIX}_plans", "Plans by phase.", labels=("namespace", "phase"))
        counts = self._counts()
        for namespace in sorted({namespace for namespace, _ in counts}):
            for phase in Phase:
                family.add_metric((namespace, phase), counts.get((namespace, phase), 0))
        yield family


class Metrics:
    """All figures of a controller, in a registry of their own."""

    def __init__(self, counts: Counts, leads: Callable[[], bool]) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_Plans(counts))
        ProcessCollector(registry=self.registry)
        self._gauge("leader", "1 for the replica that acts, 0 for one that stands by.").set_function(
            lambda: float(leads())
        )
        self._steps = self._histogram("step_duration_seconds", "From a step's beginning to its end.", _STEP_S, "kind")
        self._reconciles = self._histogram(
            "turn_duration_seconds", "How long a turn of a plan took.", _RECONCILE_S, "outcome"
        )
        self._refusals = self._counter("refusals", "Reasons why plans were not carried out or turned back.", "code")
        self._figures = self._counter("forecast_figures", "Figures that were forecast and judged.", "figure", "fit")
        self._errors = self._counter("api_errors", "Requests that got no good answer.", "part")
        self._distance = Histogram(
            f"{_PREFIX}_forecast_distance",
            "How far a figure was seen from its forecast, in its unit; 0 is inside.",
            ("figure", "unit"),
            buckets=(0, 1, 2, 5, 10, 20, 50, 100, 1_000, 10_000),
            registry=self.registry,
        )

    def count_reconcile(self, outcome: str, seconds: float) -> None:
        """Count one reconcile of a plan."""
        self._reconciles.labels(outcome).observe(seconds)

    def count_step(self, step: StepProgress) -> None:
        """Count a step that is done."""
        if step.finished_at is not None:
            self._steps.labels(step.kind).observe((step.finished_at - step.started_at).total_seconds())

    def count_refusal(self, refusal: Refusal) -> None:
        """Count one reason."""
        self._refusals.labels(refusal.code).inc()

    def count_verdict(self, record: CalibrationRecord) -> None:
        """Count each figure of a verdict."""
        for miss in record.misses:
            self._figures.labels(miss.name, miss.fit).inc()
            if miss.distance is not None:
                self._distance.labels(miss.name, miss.unit).observe(abs(miss.distance))

    def count_failure(self, source: str) -> None:
        """Count a request of a source (``turn``, ``records``, else a thread's name) that got no good answer."""
        self._errors.labels(source).inc()

    def _gauge(self, name: str, help_text: str) -> Gauge:
        return Gauge(f"{_PREFIX}_{name}", help_text, registry=self.registry)

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"{_PREFIX}_{name}", help_text, labels, registry=self.registry)

    def _histogram(self, name: str, help_text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"{_PREFIX}_{name}", help_text, labels, buckets=buckets, registry=self.registry)
