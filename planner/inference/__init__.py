"""Which strategy a group really runs, from who owns what: names, parameters, evidence, or *unknown*.

``infer`` answers for RocketMQ, ``infer_assignor`` for Kafka; ``contradiction`` compares a policy's word with it.
"""

from planner.inference.evidence import with_evidence
from planner.inference.explanation import (
    Evidence,
    Explanation,
    Freedom,
    Inference,
    MemberExplanation,
    Refuted,
    contradiction,
)
from planner.inference.families import Search
from planner.inference.kafka import PartitionObservation, infer_assignor, mixed_lists, partition_observation_of
from planner.inference.observation import Observation, observation_of, settled_observations
from planner.inference.rocketmq import infer

__all__ = [
    "Evidence",
    "Explanation",
    "Freedom",
    "Inference",
    "MemberExplanation",
    "Observation",
    "PartitionObservation",
    "Refuted",
    "Search",
    "contradiction",
    "infer",
    "infer_assignor",
    "mixed_lists",
    "observation_of",
    "partition_observation_of",
    "settled_observations",
    "with_evidence",
]
