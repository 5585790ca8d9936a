"""``random``: the example of a custom assignor. Each partition goes to a subscriber drawn by lot.

It keeps nothing and balances nothing: with N partitions and k subscribers one given member is idle with
probability (1 - 1/k)^N, and N × (1 - 1/k) partitions move on average whenever it runs again.
"""

import numpy as np

from planner.allocation.kafka.group import Group, Outcome, nobody


def random_owners(group: Group, seed: int = 0) -> Outcome:
    """Return one draw; the same seed gives the same draw, but a real leader will draw another."""
    owners = nobody(group.topics.partition_count)
    generator = np.random.default_rng(seed)
    for topic, size in enumerate(group.topics.sizes):
        members = group.subscribers[topic]
        if len(members):
            owners[group.topics.block(topic)] = members[generator.integers(len(members), size=size)]
    is_alone = all(len(members) < 2 for members in group.subscribers)
    return Outcome(owners, is_determined=is_alone, warnings=() if is_alone else (_BY_LOT,))


_BY_LOT = "the assignor draws lots: this is one of many possible answers, and nothing is kept at the next rebalance"
