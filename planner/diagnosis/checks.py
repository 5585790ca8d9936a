"""All checks, in the order in which docs/doctor.md lists them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from planner.diagnosis import (
    balance,
    broker_loss,
    brokers,
    clients,
    deployment,
    kafka,
    load,
    membership,
    membership_views,
    ownership,
    progress,
    rebalances,
    shared_clients,
    standing,
    strategies,
    subscription,
    topics,
    unknown_members,
)
from planner.diagnosis.finding import Gap, Symptom
from planner.diagnosis.group_evidence import GroupEvidence
from planner.model.systems import KAFKA, ROCKETMQ


@dataclass(frozen=True, slots=True)
class Check:
    """One rule: ``evaluate`` yields symptoms, and gaps where it lacks data.

    ``explained_by`` names checks whose findings are the cause: where one of them already speaks of all the queues
    that this one names, this one is left out. ``system`` names the one system whose groups are judged by it, ``None``
    where it is a rule for all.
    """

    code: str
    meaning: str
    evaluate: Callable[[GroupEvidence], Iterator[Symptom | Gap]]
    explained_by: tuple[str, ...] = ()
    system: str | None = None


_ROCKETMQ, _KAFKA = ROCKETMQ.name, KAFKA.name

_CAUSES = ("duplicate-client-id", "mixed-strategies", "different-topics")

CHECKS: tuple[Check, ...] = (
    Check("no-members", "the group has commits and no members", unknown_members.no_members),
    Check("members-unknown", "clients consume that no broker lists", unknown_members.members_unknown),
    Check("other-lever", "the number of members does not decide what the group can do", unknown_members.other_lever),
    Check(
        "duplicate-client-id",
        "two processes run with one client id",
        membership.duplicate_client_ids,
        system=_ROCKETMQ,
    ),
    Check("brokers-disagree", "brokers list different members", membership.brokers_list_differently, system=_ROCKETMQ),
    Check("silent-member", "a member does not answer", membership.silent_members),
    Check("frequent-rebalances", "members come and go all the time", rebalances.frequent_rebalances),
    Check("broadcasting", "members read every queue, or some of them do", membership.broadcasting),
    Check(
        "mixed-strategies",
        "members run different allocation strategies",
        strategies.mixed_strategies,
        system=_ROCKETMQ,
    ),
    Check(
        "other-view",
        "members do not own what the strategy gives them",
        membership_views.other_view,
        (*_CAUSES, "brokers-disagree"),
        system=_ROCKETMQ,
    ),
    Check("owned-twice", "queues with more than one owner", ownership.several_owners, (*_CAUSES, "other-view")),
    Check("no-owner", "queues that nobody consumes", ownership.without_owner, (*_CAUSES, "other-view")),
    Check("against-policy", "the policy states another strategy", strategies.against_policy),
    Check(
        "retry-no-owner",
        "retry queues that nobody consumes",
        ownership.retry_without_owner,
        _CAUSES,
        system=_ROCKETMQ,
    ),
    Check("different-topics", "members subscribe to different topics", subscription.different_topics, system=_ROCKETMQ),
    Check("different-tags", "members filter one topic differently", subscription.different_tags, system=_ROCKETMQ),
    Check("idle-members", "more members than queues", balance.idle_members),
    Check("tilt", "queues pile up on some members", balance.tilt, _CAUSES),
    Check("hot-queue", "one queue has most of the load", balance.hot_queue),
    Check("slow-member", "one member is much slower than its peers", balance.slow_member),
    Check("stalled", "queues stand still while messages wait", standing.stalled, ("never-commits",)),
    Check("rewinding", "commits went back", progress.rewinding),
    Check("too-few-consumers", "all members work, and more comes in than they can do", load.too_few_consumers),
    Check("falling-behind", "the backlog of a queue grows while its member is done with others", load.falling_behind),
    Check(
        "long-backlog",
        "a new message waits long behind the backlog",
        progress.long_backlog,
        ("stalled", "too-few-consumers", "slow-member", "hot-queue", "falling-behind"),
    ),
    Check("never-commits", "the group consumes and commits nothing", progress.never_commits),
    Check("too-old", "messages wait longer than the policy allows", progress.too_old),
    Check("unread-queues", "queues that are written and never read", topics.unread_queues),
    Check("empty-queues", "queues that are read and never written", topics.empty_queues),
    Check("broker-permission", "a broker is read-only, or cannot be read", topics.broker_permissions),
    Check("broker-gone", "a broker is gone or does not answer", topics.broker_gone, system=_ROCKETMQ),
    Check(
        "broker-loss",
        "the members cannot carry the load without one broker",
        broker_loss.broker_loss,
        system=_ROCKETMQ,
    ),
    Check("no-master", "a slave serves instead of its master", topics.slave_serves),
    Check("static-topic", "a topic with mapped queues", topics.static_topics),
    Check("left-topic", "a topic that was read once", topics.left_topics),
    Check("expired-unread", "messages were removed before they were consumed", topics.expired_unread),
    Check("beyond-end", "commits beyond the newest message", topics.beyond_the_end),
    Check("retries", "messages fail and come again", topics.retries, system=_ROCKETMQ),
    Check("dead-letters", "messages were given up", topics.dead_letters, system=_ROCKETMQ),
    Check("no-shutdown-wait", "a stop interrupts running calls", clients.shutdown_without_wait, system=_ROCKETMQ),
    Check("group-settings", "the brokers' settings of the group are odd", brokers.group_settings),
    Check("broker-disk", "a broker's disk is nearly full", brokers.full_disks, system=_ROCKETMQ),
    Check("clock-skew", "a broker's clock differs from ours", brokers.clock_skew),
    Check("old-client", "client versions with known faults", clients.old_clients),
    Check("mixed-versions", "client versions that rebalance differently", clients.mixed_versions),
    Check(
        "shared-client",
        "clients that run several groups",
        shared_clients.shared_clients,
        system=_ROCKETMQ,
    ),
    Check("mixed-order", "some members consume in order, others do not", clients.orderly_members),
    Check("other-scaler", "somebody else sets the replicas", deployment.other_scalers),
    Check("crash-prone", "pods restart again and again", deployment.crash_prone),
    Check("short-grace", "pods may be killed before they have stopped", deployment.short_grace),
    Check("pods-without-member", "pods that are ready and consume nothing", deployment.pods_without_member),
    Check("kafka-eager", "every change stops everybody", kafka.eager_group, system=_KAFKA),
    Check("kafka-mixed-assignors", "members offer different assignors", kafka.mixed_assignors, system=_KAFKA),
    Check("kafka-no-static-ids", "every restart is two rebalances", kafka.dynamic_members, system=_KAFKA),
    Check("kafka-rebalancing", "the group does not become stable", kafka.unstable_group, system=_KAFKA),
    Check(
        "kafka-mixed-protocols",
        "a migration to the new protocol is under way",
        kafka.mixed_protocols,
        system=_KAFKA,
    ),
    Check("share-late-batches", "a share group's batches outlive their locks", kafka.late_batches, system=_KAFKA),
    Check(
        "kafka-session-timeout",
        "the session timeout does not go with a restart",
        kafka.session_timeout,
        system=_KAFKA,
    ),
)
