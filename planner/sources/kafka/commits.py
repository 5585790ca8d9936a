"""What groups have committed, read over our own connections.

Not by librdkafka: it aborts the whole process when a broker is asked for a group's coordinator and answers after the
deadline (``rd_kafka_enq_once_del_source_return``, https://github.com/confluentinc/librdkafka/issues/4605). With 2.16.0
a broker 4.4.0 that was frozen for 3 s at that moment did it nearly every time.
"""

from collections.abc import Mapping, Sequence

from planner.errors import PlannerError
from planner.sources.kafka import requests
from planner.sources.kafka.answers import Commits
from planner.sources.kafka.broker_connections import BrokerConnections
from planner.sources.kafka.connection import Connection
from planner.sources.kafka.coordinators import ask_coordinators
from planner.sources.kafka.errors import answer_error
from planner.sources.kafka.requests import WireCommits


def committed_offsets(connections: BrokerConnections, groups: Sequence[str]) -> dict[str, Commits | PlannerError]:
    """Return each group's commits, or the error that stands in its way; a group that is not there has none."""
    return ask_coordinators(connections, groups, _by_coordinator)


def _by_coordinator(link: Connection, _: int, groups: Sequence[str]) -> Mapping[str, Commits | PlannerError]:
    answers = link.ask(requests.OFFSET_FETCH, requests.commits_request(tuple(groups)))
    return {answer.group: _commits(answer) for answer in answers}


def _commits(answer: WireCommits) -> Commits | PlannerError:
    if answer.code:
        return answer_error(f"commits of group {answer.group}", answer.code)
    return Commits(
        offsets={
            commit.partition: commit.offset for commit in answer.commits if not commit.code and commit.offset >= 0
        },
        errors={
            commit.partition: answer_error(f"commit on {commit.partition}", commit.code)
            for commit in answer.commits
            if commit.code
        },
    )
