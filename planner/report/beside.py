"""What an advice says beside its decision, as a page shows it: the terminal's own words."""

from dataclasses import dataclass

from planner.advice.answer import Advice
from planner.advice.sentences import certainty_sentence, finding_advice, finding_title, labelled_lines


@dataclass(frozen=True, slots=True)
class Remark:
    """One finding of the doctor: ``severity`` gives the colour, ``title`` and ``advice`` are sentences."""

    severity: str
    title: str
    advice: str


@dataclass(frozen=True, slots=True)
class Beside:
    """Labelled lines (one without a label goes on with the one above), findings, how sure it is, and what next."""

    lines: tuple[tuple[str, str], ...]
    remarks: tuple[Remark, ...]
    certainty: str
    next: str


def beside(advice: Advice) -> Beside:
    """Return what stands beside the decision of ``planner advise``."""
    remarks = (
        Remark(str(finding.severity), finding_title(finding), finding_advice(finding)) for finding in advice.findings
    )
    return Beside(tuple(labelled_lines(advice)), tuple(remarks), certainty_sentence(advice), str(advice.next))
