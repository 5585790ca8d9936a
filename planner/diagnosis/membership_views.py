"""Members that own something else than the group's strategy gives them, and the view that would explain it."""

from collections.abc import Iterator, Mapping, Sequence

from planner.allocation.group import allocate_group
from planner.allocation.strategy import Strategy
from planner.diagnosis.finding import Gap, Severity, Symptom
from planner.diagnosis.group_evidence import GroupEvidence
from planner.diagnosis.phrases import MOVING, WATCH_LONGER, some, verb
from planner.diagnosis.split_ownership import split_by_reports
from planner.model.membership import GroupMember
from planner.model.queues import MessageQueue, Queue, message_queues
from planner.text.words import counted

MOST_VIEWS = 64
"""Members whose view is searched for; more would only repeat the same."""


def other_view(evidence: GroupEvidence) -> Iterator[Symptom | Gap]:
    """Members whose queues do not follow from the group's strategy, and the view that would explain them.

    Tried: a member list without one that is there or with one that has left, a broker left out, fewer queues on each
    broker. Where no such view explains what a member owns, it says so.
    """
    if not evidence.has_owners:
        return
    strategy = evidence.strategy
    if strategy is None:
        if not (evidence.inference and evidence.inference.is_mixed):  # that is a finding of its own
            yield _unexplained_symptom(evidence)
        return
    queues = message_queues(evidence.queues)
    expected = _expected_queues(evidence, _answers(strategy, queues, evidence.processes))
    owned = {member.client_id: _data(member) for member in evidence.rocketmq_members if member.owned is not None}
    astray = [client for client, of_client in owned.items() if of_client != expected.get(client, frozenset())]
    if not astray:
        return
    if evidence.is_moving:
        yield Gap(
            f"{counted(len(astray), 'member')} {verb(len(astray), 'is', 'are')} on another membership view now, but "
            f"{MOVING}"
        )
        return
    reasons = {client: _view(evidence, strategy, queues, client, owned[client]) for client in astray[:MOST_VIEWS]}
    lasting = evidence.has_settled and all(
        _is_astray(evidence, index, expected, astray) for index in range(len(evidence.recent))
    )
    elsewhere = {queue for client in astray for queue in owned[client] ^ expected.get(client, frozenset())}
    yield _view_symptom(evidence, reasons, astray, len(elsewhere), is_lasting=lasting)


def _view_symptom(
    evidence: GroupEvidence, reasons: Mapping[str, str], astray: Sequence[str], elsewhere: int, *, is_lasting: bool
) -> Symptom:
    """Say that members own other queues than the strategy gives them: ``elsewhere`` queues in all."""
    split = split_by_reports(evidence)
    return Symptom(
        severity=Severity.ERROR if is_lasting and split else Severity.WARNING,
        title=f"{counted(len(astray), 'member')} {verb(len(astray), 'does', 'do')} not own what "
        f"{evidence.strategy_name} gives them",
        evidence=(
            *(f"{client}: {reason}" for client, reason in list(reasons.items())[:5]),
            *split.evidence,
        ),
        consequence=split.consequence
        if split
        else f"{counted(elsewhere, 'queue')} {verb(elsewhere, 'is', 'are')} elsewhere than predicted, "
        "each with one owner",
        advice="restart the members that act on another membership view; if it comes back, see what keeps them from "
        "the brokers"
        if is_lasting
        else WATCH_LONGER,
        about=(*astray, *split.about),
    )


def _unexplained_symptom(evidence: GroupEvidence) -> Symptom | Gap:
    """Say why nothing can be computed: a strategy that is not known, or owners that no parameters of it explain."""
    inference = evidence.inference
    if inference is None or not inference.named or inference.explanations or not evidence.has_settled:
        return Gap(
            f"who should own what cannot be computed: {inference.sentence if inference else 'no owner is known'}"
        )
    now = split_by_reports(evidence)
    return Symptom(
        severity=Severity.ERROR if now else Severity.WARNING,
        title=f"No parameters of {inference.named[0]} explain who owns what",
        evidence=(inference.sentence, *now.evidence),
        consequence=now.consequence if now else "every queue has one owner, but not the one that all members agree on",
        advice="see whether all members are set up with the same parameters (virtual nodes, rooms, lists)",
        about=now.about,
    )


def _expected_queues(
    evidence: GroupEvidence, answers: Mapping[str, frozenset[MessageQueue]]
) -> dict[str, frozenset[MessageQueue]]:
    """Return what each member can own of its answer: it drops what it does not subscribe."""
    subscribed = {member.identity: member.data_topics for member in evidence.members}
    return {
        client: answer if topics is None else frozenset(queue for queue in answer if queue.topic in topics)
        for client, answer in answers.items()
        for topics in [subscribed.get(client)]
    }


def _answers(
    strategy: Strategy, queues: Sequence[MessageQueue], clients: Sequence[str]
) -> dict[str, frozenset[MessageQueue]]:
    answer = allocate_group(strategy, queues, clients).answer()
    return {client: frozenset(of_client) for client, of_client in answer.items()}


def _data(member: GroupMember) -> frozenset[Queue]:
    return frozenset(queue for queue in member.owned or () if not queue.is_retry)


def _is_astray(
    evidence: GroupEvidence, index: int, expected: Mapping[str, frozenset[MessageQueue]], astray: Sequence[str]
) -> bool:
    owned = {member.identity: _data(member) for member in evidence.recent[index].members if member.owned is not None}
    return any(client in owned and owned[client] != expected.get(client, frozenset()) for client in astray)


def _view(
    evidence: GroupEvidence, strategy: Strategy, queues: Sequence[MessageQueue], client: str, owned: frozenset[Queue]
) -> str:
    for words, view_queues, view_members in _views(evidence, queues, client):
        if _answers(strategy, view_queues, view_members).get(client, frozenset()) == owned:
            return f"acts as if {words}"
    queues_text = some(sorted(owned, key=str), 3)
    return f"owns {counted(len(owned), 'queue')} that no membership view we tried explains: {queues_text}"


def _views(
    evidence: GroupEvidence, queues: Sequence[MessageQueue], client: str
) -> Iterator[tuple[str, Sequence[MessageQueue], Sequence[str]]]:
    """Yield (in words, queues, members) that this client may see."""
    clients = evidence.processes
    for other in clients[:MOST_VIEWS]:
        if other != client:
            yield f"{other} were not there", queues, [member for member in clients if member != other]
    gone = sorted({member.identity for sample in evidence.samples for member in sample.members} - set(clients))
    for other in gone[:MOST_VIEWS]:
        yield f"{other}, which has left, were still there", queues, sorted([*clients, other])
    if len(clients) > 2:
        yield "it were alone", queues, [client]
    for broker in sorted({queue.broker for queue in queues}):
        yield f"broker {broker} had no queues", [queue for queue in queues if queue.broker != broker], clients
    for topic in sorted({queue.topic for queue in queues}):
        yield f"topic {topic} were not there", [queue for queue in queues if queue.topic != topic], clients
    for fewer in range(1, min(MOST_VIEWS, max(queue.queue_id for queue in queues) + 1)):
        yield (
            f"each broker had {counted(fewer, 'queue')} of a topic at most",
            [queue for queue in queues if queue.queue_id < fewer],
            clients,
        )
