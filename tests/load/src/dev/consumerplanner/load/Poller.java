package dev.consumerplanner.load;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * A lite pull consumer that commits as its class does by itself, every few seconds in a poll. One thread polls, and works
 * on each message for a fixed time. What it prints, and its flags, are as those of {@link Consumers}; on SIGTERM it polls
 * no more and shuts down, without a commit, as the class does none. With {@code --commit-each-poll true} it commits after
 * each poll besides; {@code --stuck Q --stuck-after N} is as there.
 */
final class Poller {
    private final Options options;
    private final long serviceNanos;
    private final boolean commitsEach;
    private final DeliveryLog log;
    private final DefaultLitePullConsumer consumer;
    private final int stuckQueue;
    private final long stuckAfter;
    private long ofStuckQueue;
    private volatile boolean stopped;

    Poller(Options options) throws IOException, MQClientException {
        this.options = options;
        this.serviceNanos = Math.round(Double.parseDouble(options.get("service-ms", "0")) * 1e6);
        this.stuckQueue = options.integer("stuck", -1);
        this.stuckAfter = options.integer("stuck-after", 0);
        this.commitsEach = Boolean.parseBoolean(options.get("commit-each-poll", "false"));
        boolean flushesEach = Boolean.parseBoolean(options.get("flush-each", "false"));
        this.log = DeliveryLog.to(options.get("delivery-log", ""), flushesEach, false);
        this.consumer = configured();
    }

    void run() throws Exception {
        Runtime.getRuntime().addShutdownHook(new Thread(this::shutdown, "graceful-shutdown"));
        if (Boolean.parseBoolean(options.get("on-order", "false"))) {
            System.out.println("LOADED");
            System.in.read();
        }
        System.out.println("STARTING " + System.currentTimeMillis());
        System.out.println("READY " + String.join(" ", start()));
        new CountDownLatch(1).await();
    }

    /** Start it and return its client id. */
    List<String> start() throws MQClientException {
        consumer.start();
        Thread thread = new Thread(this::poll, "poll");
        thread.setDaemon(true);
        thread.start();
        return List.of(consumer.buildMQClientId());
    }

    private DefaultLitePullConsumer configured() throws MQClientException {
        DefaultLitePullConsumer made = new DefaultLitePullConsumer(options.need("group"));
        made.setNamesrvAddr(options.need("name-server"));
        made.setClientIP(options.need("client-ip"));
        made.setInstanceName(options.need("instances"));
        made.setEnableStreamRequestType(false); // it would be part of the client id
        made.setConsumeFromWhere(ConsumeFromWhere.valueOf(options.need("consume-from")));
        made.setPullBatchSize(options.integer("pull-batch", made.getPullBatchSize()));
        made.setPollNameServerInterval(options.integer("poll-ms", made.getPollNameServerInterval()));
        made.setHeartbeatBrokerInterval(options.integer("heartbeat-ms", made.getHeartbeatBrokerInterval()));
        made.setPersistConsumerOffsetInterval(
            options.integer("persist-ms", made.getPersistConsumerOffsetInterval()));
        made.setMqClientApiTimeout(options.integer("api-timeout-ms", made.getMqClientApiTimeout()));
        Properties.set(made, options.get("set", "").isEmpty() ? Map.of() : options.pairs("set"));
        String looks = options.get("look-log", "");
        AllocateMessageQueueStrategy chosen = Strategies.chosen(options);
        made.setAllocateMessageQueueStrategy(
            looks.isEmpty() ? chosen : new Watched(chosen, made.buildMQClientId(), Path.of(looks)));
        for (String topic : options.list("topics")) {
            made.subscribe(topic, options.get("tags", "*"));
        }
        return made;
    }

    private void poll() {
        String id = consumer.buildMQClientId();
        while (!stopped) {
            List<MessageExt> messages = consumer.poll();
            for (MessageExt message : messages) {
                log.add(id, new MessageQueue(message.getTopic(), message.getBrokerName(), message.getQueueId()), message);
                work();
                if (message.getQueueId() == stuckQueue && ofStuckQueue++ == stuckAfter) {
                    LockSupport.parkNanos(Long.MAX_VALUE);
                }
            }
            if (commitsEach && !messages.isEmpty()) {
                consumer.commitSync();
            }
        }
    }

    private void work() {
        long end = System.nanoTime() + serviceNanos;
        for (long left = serviceNanos; left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    private void shutdown() {
        System.out.println("STOPPING " + System.currentTimeMillis());
        long begin = System.nanoTime();
        stop();
        System.out.println("STOPPED " + (System.nanoTime() - begin) / 1_000_000);
        System.out.flush();
    }

    /** Poll no more, and shut it down. */
    void stop() {
        stopped = true;
        consumer.shutdown();
        try {
            log.close();
        } catch (IOException failure) {
            failure.printStackTrace();
        }
    }
}
