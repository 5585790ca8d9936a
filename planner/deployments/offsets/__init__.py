"""Offset steps: the only code that writes to brokers, and only what such a step of an approved plan states.

``actions`` (are they set, set them), ``installations`` (the brokers that a policy names), ``rocketmq_writes`` (the
allow-list of the requests that write), ``rocketmq`` and ``kafka`` (a group's offsets on real brokers).
"""
