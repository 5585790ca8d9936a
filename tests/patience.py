"""Time limits of looks at RocketMQ where a test is about something else: a busy machine takes its time."""

from planner.sources.rocketmq import TimeLimits

PATIENT = TimeLimits(connect_s=30.0, request_s=60.0, running_info_s=60.0, members_s=120.0)
"""Against hanging only. Brokers themselves wait 10 s for a member."""
