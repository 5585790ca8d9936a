"""The reader's next command, the same on the terminal and on the page."""

import shlex

from planner.rollout.plan import RolloutPlan


def approve_command(plan: RolloutPlan, file: str) -> str:
    """Return the command that approves the plan in ``file``, with the phrases that its offset steps ask for."""
    phrases = "".join(f" --confirm {shlex.quote(phrase)}" for phrase in dict.fromkeys(plan.confirmations))
    return f"planner approve {shlex.quote(file)}{phrases}"


def apply_command(file: str) -> str:
    """Return the command that carries out the approved plan in ``file``."""
    return f"planner apply {shlex.quote(file)} --watch"
