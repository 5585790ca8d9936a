"""Will an Airflow task of ours work here? Each check proves one thing by doing it, and says so in a sentence.

``run_checks`` runs all of them and never stops at the first that fails. A check is a function from ``CheckSettings`` to
results; ``inside`` is the process that imports Airflow, so that its logs and its settings stay there. The package is
imported without Airflow: that it is missing is a result, too.
"""

from planner.orchestration.checks.result import CheckResult, CheckSettings
from planner.orchestration.checks.run import CHECKS, run_checks

__all__ = ["CHECKS", "CheckResult", "CheckSettings", "run_checks"]
