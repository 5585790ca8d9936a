package dev.consumerplanner.load.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;

/**
 * One consumer that spends a fixed time on each record and commits as ordered: by itself, after each poll, after each
 * record, never. When it stops it prints {@code worked records nanoseconds}: the time spent on records, the commits after
 * each of them included. {@code stuck} names a partition number whose record number {@code stuck_after} never ends.
 */
final class ConsumerThread extends Thread implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(100);

    private final String id;
    private final Properties config;
    private final long serviceNanos;
    private final boolean commitsAfterPoll;
    private final boolean commitsEach;
    private final int stuckPartition;
    private final long stuckAfter;
    private final DeliveryFile log;
    private final AtomicReference<List<String>> newTopics = new AtomicReference<>();
    private volatile boolean closing;
    private volatile boolean hanging;
    private long recordCount;
    private long workedNanos;
    private long ofStuckPartition;

    ConsumerThread(String id, JsonNode order, DeliveryFile log) {
        super(id);
        this.id = id;
        this.config = Fields.properties(order.get("config"));
        this.serviceNanos = order.path("service_us").asLong() * 1_000;
        this.commitsAfterPoll = order.path("commit").asText().equals("sync");
        this.commitsEach = order.path("commit").asText().equals("each");
        this.stuckPartition = order.path("stuck").asInt(-1);
        this.stuckAfter = order.path("stuck_after").asLong();
        this.newTopics.set(Fields.texts(order.get("topics")));
        this.log = log;
    }

    void close() {
        closing = true;
    }

    void hang() {
        hanging = true;
    }

    void subscribeLater(List<String> topics) {
        newTopics.set(topics);
    }

    @Override
    public void run() {
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config)) {
            Events.print(id, "started", "");
            while (!closing) {
                subscribe(consumer);
                consume(consumer);
            }
        } catch (RuntimeException failure) {
            Events.print(id, "failed", failure.toString());
        }
        log.flush();
        Events.print(id, "worked", recordCount + " " + workedNanos);
        Events.print(id, "stopped", "");
    }

    private void subscribe(KafkaConsumer<byte[], byte[]> consumer) {
        List<String> topics = newTopics.getAndSet(null);
        if (topics == null) {
            return;
        }
        // "^" marks a pattern, as librdkafka has it.
        if (topics.size() == 1 && topics.get(0).startsWith("^")) {
            consumer.subscribe(Pattern.compile(topics.get(0)), this);
        } else if (topics.size() == 1 && topics.get(0).startsWith("~")) {
            subscribeByBroker(consumer, topics.get(0).substring(1));
        } else {
            consumer.subscribe(topics, this);
        }
    }

    /** The broker evaluates this pattern (KIP-848), which only clients since 4.0 can ask for. */
    private void subscribeByBroker(KafkaConsumer<byte[], byte[]> consumer, String pattern) {
        try {
            Class<?> type = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
            Object asked = type.getConstructor(String.class).newInstance(pattern);
            KafkaConsumer.class.getMethod("subscribe", type, ConsumerRebalanceListener.class).invoke(consumer, asked, this);
        } catch (ReflectiveOperationException failure) {
            throw new IllegalStateException(failure);
        }
    }

    private void consume(KafkaConsumer<byte[], byte[]> consumer) {
        if (hanging) {
            LockSupport.parkNanos(POLL.toNanos());
            return;
        }
        ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
        for (ConsumerRecord<byte[], byte[]> record : records) {
            long begin = System.nanoTime();
            log.add(id, record);
            spend();
            getStuck(record);
            if (commitsEach) {
                commit(consumer, record);
            }
            recordCount++;
            workedNanos += System.nanoTime() - begin;
        }
        if (!records.isEmpty()) {
            log.flush();
            if (commitsAfterPoll) {
                commit(consumer);
            }
        }
    }

    private void getStuck(ConsumerRecord<byte[], byte[]> record) {
        if (record.partition() == stuckPartition && ofStuckPartition++ >= stuckAfter) {
            while (!closing) {
                LockSupport.parkNanos(POLL.toNanos());
            }
        }
    }

    private void commit(KafkaConsumer<byte[], byte[]> consumer, ConsumerRecord<byte[], byte[]> record) {
        TopicPartition partition = new TopicPartition(record.topic(), record.partition());
        commit(() -> consumer.commitSync(Map.of(partition, new OffsetAndMetadata(record.offset() + 1))));
    }

    private void commit(KafkaConsumer<byte[], byte[]> consumer) {
        commit(consumer::commitSync);
    }

    private void commit(Runnable order) {
        try {
            order.run();
        } catch (CommitFailedException | RebalanceInProgressException refusal) {
            // The next poll goes on with the rebalance; what was not committed comes again where it belongs now.
            Events.print(id, "refused", refusal.getClass().getSimpleName());
        }
    }

    private void spend() {
        if (serviceNanos == 0) {
            return;
        }
        log.flush(); // a crash in the middle of a batch must not lose what was delivered before it
        long end = System.nanoTime() + serviceNanos;
        for (long left = serviceNanos; left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        Events.print(id, "assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        Events.print(id, "revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        Events.print(id, "lost", partitions);
    }
}
