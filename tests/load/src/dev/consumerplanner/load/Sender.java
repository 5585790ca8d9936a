package dev.consumerplanner.load;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.message.Message;

/**
 * Sends as applications do, and leaves the choice of the queue to the client: round robin, or by the hash of a key.
 *
 * <p>Each of {@code --topics} has a client of its own, which sends {@code --rate} messages a second, synchronously and
 * with every default; where its number in {@code --keys} is above 0, by {@code SelectMessageQueueByHash}. Prints
 * {@code READY <epoch ms>}, and at the end one {@code SENT topic acknowledged failed} line per topic and {@code DONE}.
 */
final class Sender {
    private static final long END_SECONDS = 60;

    private final Options options;
    private final double rate;
    private final List<Lane> lanes = new ArrayList<>();
    private final CountDownLatch reported = new CountDownLatch(1);
    private volatile boolean stopping;

    Sender(Options options) {
        this.options = options;
        this.rate = Double.parseDouble(options.need("rate"));
        List<String> keys = options.list("keys");
        for (String topic : options.list("topics")) {
            lanes.add(new Lane(topic, Integer.parseInt(keys.get(lanes.size()))));
        }
    }

    void run() throws Exception {
        for (Lane lane : lanes) {
            lane.start();
            Thread.sleep(options.integer("apart-ms", 0));
        }
        Runtime.getRuntime().addShutdownHook(new Thread(this::finish, "finish"));
        System.out.println("READY " + System.currentTimeMillis());
        for (Lane lane : lanes) {
            lane.thread.join();
        }
        for (Lane lane : lanes) {
            lane.producer.shutdown();
            System.out.println("SENT " + lane.topic + " " + lane.acknowledged + " " + lane.failed);
        }
        System.out.println("DONE");
        System.out.flush();
        reported.countDown();
    }

    private void finish() {
        stopping = true;
        try {
            reported.await(END_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        }
    }

    /** One topic, its client and thread, and what became of the messages so far. */
    private final class Lane {
        private final String topic;
        private final int keys;
        private final DefaultMQProducer producer;
        private final Thread thread = new Thread(this::follow, "sender");
        private long acknowledged;
        private long failed;

        Lane(String topic, int keys) {
            this.topic = topic;
            this.keys = keys;
            this.producer = new DefaultMQProducer("sender-" + topic);
        }

        void start() throws Exception {
            producer.setNamesrvAddr(options.need("name-server"));
            producer.setInstanceName("sender-" + topic + "-" + ProcessHandle.current().pid());
            producer.setPollNameServerInterval(options.integer("poll-ms", producer.getPollNameServerInterval()));
            producer.setMqClientApiTimeout(options.integer("api-timeout-ms", producer.getMqClientApiTimeout()));
            producer.setSendLatencyFaultEnable(Boolean.parseBoolean(options.get("avoid-faults", "false")));
            producer.start();
            thread.start();
        }

        private void follow() {
            long begin = System.nanoTime();
            for (long sent = 1; !stopping; sent++) {
                send(sent);
                long pause = begin + (long) (sent * 1e9 / rate) - System.nanoTime();
                if (pause > 0) {
                    LockSupport.parkNanos(pause);
                }
            }
        }

        private void send(long number) {
            Message message = new Message(topic, new byte[16]);
            try {
                if (keys > 0) {
                    producer.send(message, new SelectMessageQueueByHash(), "key-" + number % keys);
                } else {
                    producer.send(message);
                }
                acknowledged++;
            } catch (Exception failure) {
                failed++;
            }
        }
    }
}
