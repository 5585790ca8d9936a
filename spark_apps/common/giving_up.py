"""A policy that a stage cannot serve leaves the run with its reason; the others go on."""

from planner.storage.files import write_atomically
from planner.storage.layout import RunFolder


def give_up(run: RunFolder, policy: str, reason: object) -> str:
    """Return the sentence that says why the policy has no decision, and see to it that the run's files say so alone.

    Without its snapshot the later stages pass the policy over.
    """
    sentence = f"No decision for policy {policy}: {str(reason).rstrip('.')}."
    files = run.policy(policy)
    run.snapshot(policy).unlink(missing_ok=True)
    files.forget_results()
    write_atomically(files.no_decision, sentence + "\n")
    return sentence
