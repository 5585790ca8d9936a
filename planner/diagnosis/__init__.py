"""What is wrong with one consumer group, how much it costs, and what to do: pure checks over one ``Picture``."""

from planner.diagnosis.diagnose import diagnose, examine
from planner.diagnosis.finding import Diagnosis, Finding, Severity, Unchecked
from planner.diagnosis.picture import Picture

__all__ = ["Diagnosis", "Finding", "Picture", "Severity", "Unchecked", "diagnose", "examine"]
