package dev.consumerplanner.load.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import dev.consumerplanner.load.RateCurve;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Sends to exactly the partitions of its lanes, evenly paced along each lane's curve; each lane is
 * {@code topic partition seconds:rate ...}. Prints {@code sending} at second 0 and at the end, when the last curve is
 * over or it is closed, one {@code sent topic/partition acknowledged failed} each and {@code stopped}.
 */
final class ProducerThread extends Thread {
    private static final long TICK_NANOS = 10_000_000;
    // Fractions of multiples of the golden ratio spread partitions over a tick, however many there are.
    private static final double GOLDEN = 0.6180339887498949;

    private final String id;
    private final JsonNode order;
    private final List<Lane> lanes = new ArrayList<>();
    private volatile boolean closing;

    ProducerThread(String id, JsonNode order) {
        super(id);
        this.id = id;
        this.order = order;
        for (String lane : Fields.texts(order.get("lanes"))) {
            lanes.add(new Lane(lane.split(" "), lanes.size() * GOLDEN % 1));
        }
    }

    void close() {
        closing = true;
    }

    @Override
    public void run() {
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(Fields.properties(order.get("config")))) {
            // So that second 0 does not wait for metadata.
            lanes.forEach(lane -> producer.partitionsFor(lane.topic));
            Events.print(id, "sending", "");
            follow(producer);
            producer.flush();
        } catch (RuntimeException failure) {
            Events.print(id, "failed", failure.toString());
        }
        lanes.forEach(lane -> Events.print(id, "sent", lane.toString()));
        Events.print(id, "stopped", "");
    }

    private void follow(KafkaProducer<byte[], byte[]> producer) {
        double end = lanes.stream().mapToDouble(lane -> lane.curve.end()).max().orElse(0);
        long begin = System.nanoTime();
        for (double now = 0; !closing && now < end; ) {
            LockSupport.parkNanos(TICK_NANOS);
            now = (System.nanoTime() - begin) / 1e9;
            for (Lane lane : lanes) {
                lane.sendDue(producer, now);
            }
        }
    }

    /** One partition, its curve, and what became of the records sent to it so far. */
    private static final class Lane {
        private final String topic;
        private final int partition;
        private final RateCurve curve;
        private final double phase;
        private final AtomicLong acknowledged = new AtomicLong();
        private final AtomicLong failed = new AtomicLong();
        private long attempted;

        Lane(String[] words, double phase) {
            this.topic = words[0];
            this.partition = Integer.parseInt(words[1]);
            this.curve = new RateCurve(words, 2);
            this.phase = phase;
        }

        void sendDue(KafkaProducer<byte[], byte[]> producer, double now) {
            for (long due = (long) Math.floor(curve.due(now) + phase); attempted < due; attempted++) {
                producer.send(new ProducerRecord<>(topic, partition, null, new byte[16]), (sent, failure) ->
                    (failure == null ? acknowledged : failed).incrementAndGet());
            }
        }

        @Override
        public String toString() {
            return topic + "/" + partition + " " + acknowledged + " " + failed;
        }
    }
}
