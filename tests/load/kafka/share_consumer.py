"""One real consumer of a share group in a pod: logs the records that it is given, is ready once it has asked for some.

``python share_consumer.py SERVERS GROUP TOPIC LOG SETTINGS``; its client id is ``$POD_NAME``, ``SETTINGS`` are
librdkafka's as JSON. What it was given is acknowledged by the next poll. On SIGTERM it gives back the rest and leaves.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from confluent_kafka import ShareConsumer


def main(servers: str, group: str, topic: str, log: str, settings: str) -> None:
    """Consume until told to stop."""
    going = [True]
    signal.signal(signal.SIGTERM, lambda *_: going.clear())
    name = os.environ["POD_NAME"]
    usual = {"bootstrap.servers": servers, "group.id": group, "client.id": name}
    consumer = ShareConsumer({**usual, **json.loads(settings)})
    consumer.subscribe([topic])
    with Path(log).open("a", encoding="utf-8") as given:
        while going:
            for record in consumer.poll(0.1):
                if record.error():
                    continue
                fields = (time.time_ns() // 1_000_000, name, topic, record.partition(), record.offset())
                given.write("\t".join(map(str, (*fields, record.timestamp()[1]))) + "\n")
            given.flush()
            Path("assigned").touch()
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
