package dev.consumerplanner.load;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Push consumers, usually one, that spend a fixed time on each message. Prints {@code READY <client ids>}
 * once all have started; on SIGTERM shuts each down gracefully and prints {@code STOPPED <milliseconds>}.
 *
 * <p>With {@code --on-order true} it prints {@code LOADED} and starts them when a line comes on standard input;
 * {@code --look-log} names a file for what each look shows. {@code STARTING} and {@code STOPPING} tell the epoch
 * milliseconds of {@code start()} and of the signal.
 *
 * <p>{@code --set name=value,...} sets properties of the consumer by their own names: those that only some releases have.
 * With {@code clientRebalance=false} no strategy runs here, and the looks are what the broker's answers changed.
 *
 * <p>Sick on demand: {@code --block-after N} never returns from the listener again after N messages,
 * {@code --stuck Q --stuck-after N} never from message N of the queues with number Q, {@code --fail true} fails each
 * message.
 */
final class Consumers {
    private final Options options;
    private final long serviceNanos;
    private final boolean failing;
    private final long blockAfter;
    private final int stuckQueue;
    private final long stuckAfter;
    private final AtomicLong served = new AtomicLong();
    private final AtomicLong ofStuckQueue = new AtomicLong();
    private final DeliveryLog log;
    private final List<DefaultMQPushConsumer> consumers = new ArrayList<>();

    Consumers(Options options) throws IOException {
        this.options = options;
        this.serviceNanos = Math.round(Double.parseDouble(options.get("service-ms", "0")) * 1e6);
        this.failing = Boolean.parseBoolean(options.get("fail", "false"));
        this.blockAfter = options.integer("block-after", Integer.MAX_VALUE);
        this.stuckQueue = options.integer("stuck", -1);
        this.stuckAfter = options.integer("stuck-after", 0);
        boolean flushesEach = Boolean.parseBoolean(options.get("flush-each", "false"));
        boolean tellsMessages = Boolean.parseBoolean(options.get("tell-messages", "false"));
        this.log = DeliveryLog.to(options.get("delivery-log", ""), flushesEach, tellsMessages);
    }

    void run() throws Exception {
        Runtime.getRuntime().addShutdownHook(new Thread(this::shutdown, "graceful-shutdown"));
        System.out.println("READY " + String.join(" ", start()));
        new CountDownLatch(1).await();
    }

    /** Start them all and return their client ids. */
    List<String> start() throws MQClientException, IOException {
        List<String> ids = new ArrayList<>();
        for (String instance : options.list("instances")) {
            DefaultMQPushConsumer consumer = configured(instance);
            consumers.add(consumer);
            ids.add(consumer.buildMQClientId());
        }
        if (Boolean.parseBoolean(options.get("on-order", "false"))) {
            System.out.println("LOADED");
            System.in.read();
        }
        System.out.println("STARTING " + System.currentTimeMillis());
        for (DefaultMQPushConsumer consumer : consumers) {
            consumer.start();
        }
        return ids;
    }

    private DefaultMQPushConsumer configured(String instance) throws MQClientException {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(options.need("group"));
        consumer.setNamesrvAddr(options.need("name-server"));
        consumer.setClientIP(options.need("client-ip"));
        consumer.setInstanceName(instance);
        allocate(consumer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.valueOf(options.need("consume-from")));
        consumer.setConsumeThreadMin(options.integer("threads", 20));
        consumer.setConsumeThreadMax(options.integer("threads", 20));
        consumer.setConsumeMessageBatchMaxSize(options.integer("batch", consumer.getConsumeMessageBatchMaxSize()));
        consumer.setPullBatchSize(options.integer("pull-batch", consumer.getPullBatchSize()));
        consumer.setAwaitTerminationMillisWhenShutdown(options.integer("await-termination-ms", 0));
        consumer.setPollNameServerInterval(options.integer("poll-ms", consumer.getPollNameServerInterval()));
        consumer.setHeartbeatBrokerInterval(
            options.integer("heartbeat-ms", consumer.getHeartbeatBrokerInterval()));
        consumer.setPersistConsumerOffsetInterval(
            options.integer("persist-ms", consumer.getPersistConsumerOffsetInterval()));
        consumer.setMqClientApiTimeout(options.integer("api-timeout-ms", consumer.getMqClientApiTimeout()));
        if (Boolean.parseBoolean(options.get("broadcast", "false"))) {
            // The enum lies in another package since 5.0, so that its name must not stand here.
            var broadcasting = Enum.valueOf(consumer.getMessageModel().getDeclaringClass(), "BROADCASTING");
            consumer.setMessageModel(broadcasting);
        }
        consumer.setMaxReconsumeTimes(options.integer("max-reconsume", consumer.getMaxReconsumeTimes()));
        for (String topic : options.list("topics")) {
            consumer.subscribe(topic, options.get("tags", "*"));
        }
        Properties.set(consumer, options.get("set", "").isEmpty() ? Map.of() : options.pairs("set"));
        listen(consumer);
        return consumer;
    }

    private void allocate(DefaultMQPushConsumer consumer) {
        AllocateMessageQueueStrategy chosen = Strategies.chosen(options);
        String log = options.get("look-log", "");
        if (log.isEmpty()) {
            consumer.setAllocateMessageQueueStrategy(chosen);
            return;
        }
        Watched watched = new Watched(chosen, consumer.buildMQClientId(), Path.of(log));
        consumer.setAllocateMessageQueueStrategy(watched);
        if (options.get("set", "").contains("clientRebalance=false")) {
            Properties.setListener(consumer, watched);
        }
    }

    private void listen(DefaultMQPushConsumer consumer) {
        String id = consumer.buildMQClientId();
        if (Boolean.parseBoolean(options.get("orderly", "false"))) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) ->
                served(id, context.getMessageQueue(), messages)
                    ? ConsumeOrderlyStatus.SUCCESS
                    : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT);
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) ->
                served(id, context.getMessageQueue(), messages)
                    ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS
                    : ConsumeConcurrentlyStatus.RECONSUME_LATER);
        }
    }

    /** Log and spend the service time of each message; false when interrupted, as a shutdown does. */
    private boolean served(String clientId, MessageQueue queue, List<MessageExt> messages) {
        for (MessageExt message : messages) {
            log.add(clientId, queue, message);
            if (failing) {
                return false;
            }
            boolean isStuck = message.getQueueId() == stuckQueue && ofStuckQueue.getAndIncrement() == stuckAfter;
            if (isStuck || served.incrementAndGet() > blockAfter) {
                LockSupport.parkNanos(Long.MAX_VALUE);
            }
            long end = System.nanoTime() + serviceNanos;
            for (long left = serviceNanos; left > 0; left = end - System.nanoTime()) {
                LockSupport.parkNanos(left);
                if (Thread.currentThread().isInterrupted()) {
                    return false;
                }
            }
        }
        return true;
    }

    private void shutdown() {
        System.out.println("STOPPING " + System.currentTimeMillis());
        long begin = System.nanoTime();
        stop();
        System.out.println("STOPPED " + (System.nanoTime() - begin) / 1_000_000);
        System.out.flush();
    }

    /** Shut them down, each gracefully. */
    void stop() {
        for (DefaultMQPushConsumer consumer : consumers) {
            consumer.shutdown();
        }
        try {
            log.close();
        } catch (IOException failure) {
            failure.printStackTrace();
        }
    }
}
