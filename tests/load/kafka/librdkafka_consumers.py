"""Real librdkafka consumers (confluent-kafka), many in one process, told by the same JSON lines as ``KafkaMain``.

``python librdkafka_consumers.py DELIVERY_LOG``. Knows ``start``, ``stop``, ``hang`` and ``subscribe``; at the end of
its input, and on SIGTERM, every consumer is closed gracefully.
"""

import json
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

POLL_S = 0.1
REFUSALS = (KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID)
_printing = threading.Lock()


def event(client: str, kind: str, detail: str = "") -> None:
    """Print what happened, as ``KafkaMain`` does."""
    with _printing:
        print(f"EVENT {time.time_ns() // 1_000_000} {client} {kind} {detail}", flush=True)


class ConsumerThread(threading.Thread):
    """One consumer that spends a fixed time on each record."""

    def __init__(self, order: dict[str, Any], log: TextIO) -> None:
        super().__init__(name=order["id"])
        self.new_topics: Sequence[str] | None = order["topics"]
        self.closing = self.hanging = False
        self._config = order["config"]
        self._service_s = order["service_us"] / 1e6
        self._commits_after_poll = order["commit"] == "sync"
        self._commits_each = order["commit"] == "each"
        self._batch = order.get("batch", 1)
        self._stuck, self._stuck_after = order.get("stuck", -1), order.get("stuck_after", 0)
        self._records, self._of_stuck, self._worked_s = 0, 0, 0.0
        self._log = log

    def run(self) -> None:
        """Poll until told to close."""
        try:
            consumer = Consumer(self._config)
            event(self.name, "started")
            while not self.closing:
                self._subscribe(consumer)
                self._consume(consumer)
            consumer.close()
        except (KafkaException, ValueError) as error:
            event(self.name, "failed", str(error))
        event(self.name, "worked", f"{self._records} {self._worked_s * 1e9:.0f}")
        event(self.name, "stopped")

    def _subscribe(self, consumer: Consumer) -> None:
        topics, self.new_topics = self.new_topics, None
        if topics is not None:
            consumer.subscribe(
                list(topics),
                on_assign=lambda _, parts: self._tell("assigned", parts),
                on_revoke=lambda _, parts: self._tell("revoked", parts),
                on_lost=lambda _, parts: self._tell("lost", parts),
            )

    def _consume(self, consumer: Consumer) -> None:
        if self.hanging:
            time.sleep(POLL_S)
            return
        last = None
        for record in consumer.consume(self._batch, POLL_S):
            if record.error():
                event(self.name, "failed", str(record.error()))
            else:
                self._work(consumer, record)
                last = record
        if last is not None and self._commits_after_poll:
            self._commit(consumer, last if self._batch == 1 else None)

    def _work(self, consumer: Consumer, record: Message) -> None:
        started = time.perf_counter()
        self._deliver(record)
        if record.partition() == self._stuck:
            self._of_stuck += 1
            while self._of_stuck > self._stuck_after and not self.closing:
                time.sleep(POLL_S)
        if self._commits_each:
            self._commit(consumer, record)
        self._records += 1
        self._worked_s += time.perf_counter() - started

    def _commit(self, consumer: Consumer, record: Message | None) -> None:
        """Commit up to one record, or up to the last of every partition that was delivered."""
        try:
            if record is None:
                consumer.commit(asynchronous=False)
            else:
                consumer.commit(record, asynchronous=False)
        except KafkaException as refusal:
            if refusal.args[0].code() not in REFUSALS:
                raise
            # The next poll goes on with the rebalance; what was not committed comes again where it belongs now.
            event(self.name, "refused", refusal.args[0].name())

    def _deliver(self, record: Message) -> None:
        now_ms, (_, made_ms) = time.time_ns() // 1_000_000, record.timestamp()
        fields = (now_ms, self.name, record.topic(), record.partition(), record.offset(), made_ms)
        self._log.write("\t".join(map(str, fields)) + "\n")
        self._log.flush()
        time.sleep(self._service_s)

    def _tell(self, kind: str, parts: Sequence[TopicPartition]) -> None:
        event(self.name, kind, ",".join(sorted(f"{one.topic}/{one.partition}" for one in parts)))


def obey(order: dict[str, Any], consumers: dict[str, ConsumerThread], log: TextIO) -> None:
    """Do what one line says."""
    verb, client = order["do"], order["id"]
    if verb == "start":
        consumers[client] = ConsumerThread(order, log)
        consumers[client].start()
    elif verb == "stop":
        consumers[client].closing = True
    elif verb == "hang":
        consumers[client].hanging = True
    elif verb == "subscribe":
        consumers[client].new_topics = order["topics"]
    else:
        event(client, "failed", f"no such order: {verb}")


def main(delivery_log: str) -> None:
    """Obey until the input ends."""
    consumers: dict[str, ConsumerThread] = {}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Path(delivery_log).open("a") as log:
        print("READY", flush=True)
        try:
            for line in sys.stdin:
                obey(json.loads(line), consumers, log)
        finally:
            for consumer in consumers.values():
                consumer.closing = True
            for consumer in consumers.values():
                consumer.join()


if __name__ == "__main__":
    main(sys.argv[1])
