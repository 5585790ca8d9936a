"""``planner advise`` over recorded samples: its own loop, with the options that somebody has who gives none."""

from collections.abc import Sequence

from planner.cli.address import Address
from planner.cli.concluding import Conclusion, conclude
from planner.cli.default_policy import default_policy
from planner.cli.watching import GroupWatch
from planner.model.samples import GroupSample

ADDRESSES = {"kafka": Address(kafka="127.0.0.1:9092"), "rocketmq": Address(name_server="127.0.0.1:9876")}


def replay(samples: Sequence[GroupSample], sample_every_s: float, longest_s: float = 600.0) -> Conclusion:
    """Return what ``advise`` concludes of the group, after as much of the samples as it watches."""
    address = ADDRESSES[samples[0].system]
    watch = GroupWatch(default_policy(address, samples[0]))
    for sample in samples:
        watch.samples.append(sample)
        watch.evaluate(sample_every_s)
        if watch.is_clear or watch.watched_s >= longest_s:
            break
    return conclude(watch, sample_every_s, address, None)
