package dev.consumerplanner.load;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Sends to exactly the queues of a plan, at the rates of the plan, evenly paced.
 *
 * <p>Each line of the plan is {@code topic broker queue seconds:rate seconds:rate ...}. Prints
 * {@code READY <epoch ms of second 0>} and, when the plan is over or on SIGTERM, one
 * {@code SENT topic broker queue acknowledged failed} line per queue and {@code DONE acknowledged failed}.
 */
final class Producer {
    private static final long TICK_NANOS = 20_000_000;
    private static final int CONNECT_ATTEMPTS = 5;
    private static final int MAX_IN_FLIGHT = 1024;
    // On a busy machine an answer takes longer than the 3 s that a client waits by default, and counts would be wrong.
    private static final int SEND_MILLIS = 12_000;
    private static final long DRAIN_SECONDS = 60;
    private static final int REPORTED_FAILURES = 3;
    // Fractions of multiples of the golden ratio spread queues over a tick, however many there are.
    private static final double GOLDEN = 0.6180339887498949;

    private final Options options;
    private final List<Lane> lanes = new ArrayList<>();
    private final String[] tags;
    private final Semaphore inFlight = new Semaphore(MAX_IN_FLIGHT);
    private final CountDownLatch finished = new CountDownLatch(1);
    private volatile boolean stopping;

    Producer(Options options) throws IOException {
        this.options = options;
        this.tags = options.get("tags", "").isEmpty() ? new String[0] : options.list("tags").toArray(new String[0]);
        for (String line : Files.readAllLines(Path.of(options.need("plan")))) {
            lanes.add(new Lane(line.trim().split("\\s+"), lanes.size() * GOLDEN % 1));
        }
    }

    void run() throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(options.get("group", "load-producer"));
        producer.setNamesrvAddr(options.need("name-server"));
        producer.setInstanceName("producer-" + ProcessHandle.current().pid());
        producer.setPollNameServerInterval(options.integer("poll-ms", producer.getPollNameServerInterval()));
        producer.setMqClientApiTimeout(options.integer("api-timeout-ms", producer.getMqClientApiTimeout()));
        producer.setSendMsgTimeout(SEND_MILLIS);
        // A second attempt after a lost answer would store the message twice and spoil the counts.
        producer.setRetryTimesWhenSendAsyncFailed(0);
        producer.start();
        connect(producer);
        Runtime.getRuntime().addShutdownHook(new Thread(this::finish, "finish"));
        System.out.println("READY " + System.currentTimeMillis());
        follow(producer);
        inFlight.tryAcquire(MAX_IN_FLIGHT, DRAIN_SECONDS, TimeUnit.SECONDS);
        producer.shutdown();
        report();
        finished.countDown();
    }

    /** Ask every queue for an offset, so that second 0 does not wait for routes and connections. */
    private void connect(DefaultMQProducer producer) throws MQClientException {
        for (Lane lane : lanes) {
            connect(producer, lane, CONNECT_ATTEMPTS);
        }
    }

    /** On a busy machine a name server that has just started takes longer than the client waits for a route. */
    private void connect(DefaultMQProducer producer, Lane lane, int attempts) throws MQClientException {
        try {
            producer.maxOffset(lane.queue);
        } catch (IllegalStateException late) {
            if (attempts == 1) {
                throw late;
            }
            connect(producer, lane, attempts - 1);
        }
    }

    private void follow(DefaultMQProducer producer) throws InterruptedException {
        int bodyBytes = options.integer("body-bytes", 16);
        double end = lanes.stream().mapToDouble(lane -> lane.curve.end()).max().orElse(0);
        long begin = System.nanoTime();
        for (long tick = begin; !stopping; tick += TICK_NANOS) {
            double now = (System.nanoTime() - begin) / 1e9;
            for (Lane lane : lanes) {
                lane.sendDue(producer, now, bodyBytes);
            }
            if (now >= end) {
                return;
            }
            long pause = tick + TICK_NANOS - System.nanoTime();
            if (pause > 0) {
                TimeUnit.NANOSECONDS.sleep(pause);
            }
        }
    }

    private void report() {
        long sent = 0;
        long failed = 0;
        for (Lane lane : lanes) {
            System.out.println("SENT " + lane.queue.getTopic() + " " + lane.queue.getBrokerName() + " "
                + lane.queue.getQueueId() + " " + lane.acknowledged + " " + lane.failed);
            sent += lane.acknowledged.get();
            failed += lane.failed.get();
        }
        System.out.println("DONE " + sent + " " + failed);
        System.out.flush();
    }

    private void finish() {
        stopping = true;
        try {
            finished.await(DRAIN_SECONDS + 2, TimeUnit.SECONDS);
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        }
    }

    /** One queue, its curve, and what became of the messages sent to it so far. */
    private final class Lane {
        private final MessageQueue queue;
        private final RateCurve curve;
        private final double phase;
        private final AtomicLong acknowledged = new AtomicLong();
        private final AtomicLong failed = new AtomicLong();
        private long attempted;

        Lane(String[] words, double phase) {
            this.queue = new MessageQueue(words[0], words[1], Integer.parseInt(words[2]));
            this.curve = new RateCurve(words, 3);
            this.phase = phase;
        }

        void sendDue(DefaultMQProducer producer, double now, int bodyBytes) throws InterruptedException {
            long due = (long) Math.floor(curve.due(now) + phase);
            while (attempted < due && !stopping) {
                attempted++;
                inFlight.acquire();
                send(producer, bodyBytes);
            }
        }

        private void send(DefaultMQProducer producer, int bodyBytes) throws InterruptedException {
            byte[] number = Long.toString(attempted).getBytes(StandardCharsets.US_ASCII);
            Message message = new Message(queue.getTopic(), Arrays.copyOf(number, Math.max(number.length, bodyBytes)));
            if (tags.length > 0) {
                message.setTags(tags[(int) (attempted % tags.length)]);
            }
            try {
                producer.send(message, queue, new SendCallback() {
                    @Override
                    public void onSuccess(SendResult result) {
                        done(acknowledged);
                    }

                    @Override
                    public void onException(Throwable failure) {
                        failed(failure);
                    }
                });
            } catch (InterruptedException stop) {
                throw stop;
            } catch (Exception failure) {
                failed(failure);
            }
        }

        private void failed(Throwable failure) {
            if (failed.get() < REPORTED_FAILURES) {
                System.out.println("FAILED " + queue + " " + failure);
            }
            done(failed);
        }

        private void done(AtomicLong counter) {
            counter.incrementAndGet();
            inFlight.release();
        }
    }
}
