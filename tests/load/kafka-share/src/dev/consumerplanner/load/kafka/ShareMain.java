package dev.consumerplanner.load.kafka;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;

/**
 * One consumer of a share group (KIP-932, clients from 4.2 on): what it was given is acknowledged as its settings say, by
 * default all of a batch by the next poll.
 *
 * <p>Arguments: delivery log, client id, topic, settings as JSON, microseconds that each record takes, and how it ends on
 * SIGTERM before it closes: it leaves its batch half done ({@code at-once}), works it off ({@code batch}), or works it off
 * and acknowledges it ({@code commit}). Prints {@code assigned} once it has polled, {@code again} for a record that somebody
 * was given before, with its delivery count, and {@code stopped} once it is closed.
 */
public final class ShareMain {
    private static final Duration POLL = Duration.ofMillis(100);

    private final KafkaShareConsumer<byte[], byte[]> consumer;
    private final DeliveryFile log;
    private final String id;
    private final long serviceNanos;
    private final String end;
    private volatile boolean closing;

    private ShareMain(String[] words, DeliveryFile log) throws Exception {
        this.consumer = new KafkaShareConsumer<>(Fields.properties(new ObjectMapper().readTree(words[3])));
        this.log = log;
        this.id = words[1];
        this.serviceNanos = Long.parseLong(words[4]) * 1_000;
        this.end = words[5];
        consumer.subscribe(List.of(words[2]));
    }

    public static void main(String[] words) throws Exception {
        try (DeliveryFile log = DeliveryFile.at(Path.of(words[0]))) {
            ShareMain main = new ShareMain(words, log);
            Thread working = Thread.currentThread();
            Runtime.getRuntime().addShutdownHook(new Thread(() -> main.close(working), "graceful-shutdown"));
            main.consume();
        }
    }

    private void close(Thread working) {
        closing = true;
        try {
            working.join();
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        }
    }

    private void consume() {
        Events.print(id, "started", "");
        boolean hasPolled = false;
        while (!closing) {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
            if (!hasPolled) {
                Events.print(id, "assigned", "");
                hasPolled = true;
            }
            work(records);
        }
        if (end.equals("commit")) {
            consumer.commitSync();
        }
        consumer.close();
        Events.print(id, "stopped", "");
    }

    private void work(ConsumerRecords<byte[], byte[]> records) {
        for (ConsumerRecord<byte[], byte[]> record : records) {
            if (closing && end.equals("at-once")) {
                return;
            }
            log.add(id, record);
            log.flush(); // a crash in the middle of a batch must not lose what was delivered before it
            if (record.deliveryCount().orElse((short) 1) > 1) {
                Events.print(id, "again", record.partition() + " " + record.offset() + " " + record.deliveryCount().get());
            }
            spend();
        }
    }

    private void spend() {
        long end = System.nanoTime() + serviceNanos;
        for (long left = serviceNanos; left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }
}
