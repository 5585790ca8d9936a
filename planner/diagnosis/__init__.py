"""What is wrong with one consumer group, how much it costs, and what to do: pure checks over one ``GroupEvidence``."""

from planner.diagnosis.diagnose import diagnose, examine
from planner.diagnosis.finding import Diagnosis, Finding, Severity, Unchecked
from planner.diagnosis.group_evidence import GroupEvidence

__all__ = ["Diagnosis", "Finding", "GroupEvidence", "Severity", "Unchecked", "diagnose", "examine"]
