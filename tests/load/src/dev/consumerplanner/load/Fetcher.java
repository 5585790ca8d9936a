package dev.consumerplanner.load;

import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * A pull consumer ({@code DefaultMQPullConsumer}) whose application goes round the queues that its rebalance gives it,
 * asks each for what there is, and commits after each answer. What it prints, and its flags, are as those of
 * {@link Poller}; it starts to read at the offset that the group has stored.
 */
final class Fetcher {
    private static final int MOST_MESSAGES = 32;
    private static final long ROUND_MS = 100;

    private final Options options;
    private final DeliveryLog log;
    private final DefaultMQPullConsumer consumer;
    private volatile boolean stopped;

    Fetcher(Options options) throws IOException {
        this.options = options;
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
        consumer.start();
        Thread thread = new Thread(this::fetch, "fetch");
        thread.setDaemon(true);
        thread.start();
        System.out.println("READY " + consumer.buildMQClientId());
        new CountDownLatch(1).await();
    }

    private DefaultMQPullConsumer configured() {
        DefaultMQPullConsumer made = new DefaultMQPullConsumer(options.need("group"));
        made.setNamesrvAddr(options.need("name-server"));
        made.setClientIP(options.need("client-ip"));
        made.setInstanceName(options.need("instances"));
        made.setEnableStreamRequestType(false); // it would be part of the client id
        made.setPollNameServerInterval(options.integer("poll-ms", made.getPollNameServerInterval()));
        made.setHeartbeatBrokerInterval(options.integer("heartbeat-ms", made.getHeartbeatBrokerInterval()));
        made.setPersistConsumerOffsetInterval(
            options.integer("persist-ms", made.getPersistConsumerOffsetInterval()));
        made.setMqClientApiTimeout(options.integer("api-timeout-ms", made.getMqClientApiTimeout()));
        String looks = options.get("look-log", "");
        AllocateMessageQueueStrategy chosen = Strategies.chosen(options);
        made.setAllocateMessageQueueStrategy(
            looks.isEmpty() ? chosen : new Watched(chosen, made.buildMQClientId(), Path.of(looks)));
        made.setRegisterTopics(Set.copyOf(options.list("topics")));
        return made;
    }

    private void fetch() {
        Map<MessageQueue, Long> next = new HashMap<>();
        while (!stopped) {
            for (String topic : options.list("topics")) {
                fetchAll(topic, next);
            }
            pause();
        }
    }

    private void fetchAll(String topic, Map<MessageQueue, Long> next) {
        Set<MessageQueue> mine;
        try {
            mine = consumer.fetchMessageQueuesInBalance(topic);
        } catch (MQClientException notThereYet) {
            return;
        }
        next.keySet().removeIf(queue -> queue.getTopic().equals(topic) && !mine.contains(queue));
        for (MessageQueue queue : mine) {
            try {
                fetchOne(queue, next);
            } catch (Exception outOfReach) {
                outOfReach.printStackTrace(); // and asked again in the next round
            }
        }
    }

    private void fetchOne(MessageQueue queue, Map<MessageQueue, Long> next) throws Exception {
        if (!next.containsKey(queue)) {
            next.put(queue, Math.max(consumer.fetchConsumeOffset(queue, true), 0));
        }
        PullResult found = consumer.pull(queue, "*", next.get(queue), MOST_MESSAGES);
        if (found.getPullStatus() == PullStatus.FOUND) {
            for (MessageExt message : found.getMsgFoundList()) {
                log.add(consumer.buildMQClientId(), queue, message);
            }
        }
        next.put(queue, found.getNextBeginOffset());
        consumer.updateConsumeOffset(queue, found.getNextBeginOffset());
    }

    private void pause() {
        try {
            Thread.sleep(ROUND_MS);
        } catch (InterruptedException ended) {
            stopped = true;
        }
    }

    private void shutdown() {
        System.out.println("STOPPING " + System.currentTimeMillis());
        long begin = System.nanoTime();
        stopped = true;
        consumer.shutdown();
        System.out.println("STOPPED " + (System.nanoTime() - begin) / 1_000_000);
        System.out.flush();
        try {
            log.close();
        } catch (IOException failure) {
            failure.printStackTrace();
        }
    }
}
