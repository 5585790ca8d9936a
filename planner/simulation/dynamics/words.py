"""Causes of pauses and duplicates as people read them; a simulation names its causes by these keys."""

CAUSES = {
    "notice": "the new owner learns of the change later than the old one has stopped",
    "expiry": "the brokers take so long to find out that the client is gone",
    "route": "clients poll routes and look for changes by their own clocks",
    "lock": "the new owner waits for the broker's lock on the queue",
    "lock_renewal": "a locked queue is consumed only after the next lock renewal (clients 4.9.0 to 4.9.4)",
    "first_pull": "the client waits 500 ms before it pulls a new queue",
    "version_race": "the first pull overtakes the heartbeat that carries its subscription version, and is retried",
    "pull": "reading the offset and the first pull take their time",
    "head_of_line": "the new owner works off what it had cached before",
    "in_flight": "calls are running when the queue changes hands, so their messages are not counted",
    "unsaved": "the broker's offset is older than what was consumed",
    "overlap": "two clients consume the queue at the same time",
}
"""Every cause as people's text."""
