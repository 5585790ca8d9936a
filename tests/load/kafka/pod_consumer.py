"""One real librdkafka consumer in a pod: logs what it is given, is ready once it was assigned partitions.

``python pod_consumer.py SERVERS GROUP TOPICS LOG SETTINGS``; its client id is ``$POD_NAME``, ``SETTINGS`` are
librdkafka's as JSON. On SIGTERM it leaves the group.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from confluent_kafka import Consumer


def main(servers: str, group: str, topics: str, log: str, settings: str) -> None:
    """Consume until told to stop."""
    going = [True]
    signal.signal(signal.SIGTERM, lambda *_: going.clear())
    name = os.environ["POD_NAME"]
    usual = {"bootstrap.servers": servers, "group.id": group, "client.id": name, "auto.offset.reset": "earliest"}
    consumer = Consumer({**usual, **json.loads(settings)})
    consumer.subscribe(topics.split(","), on_assign=lambda *_: Path("assigned").touch())
    with Path(log).open("a", encoding="utf-8") as given:
        while going:
            record = consumer.poll(0.1)
            if record is None or record.error():
                continue
            fields = (time.time_ns() // 1_000_000, name, record.topic(), record.partition(), record.offset())
            given.write("\t".join(map(str, (*fields, record.timestamp()[1]))) + "\n")
            given.flush()
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
