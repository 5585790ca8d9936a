package dev.consumerplanner.load;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
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
 */
final class Consumers {
    private final Options options;
    private final long serviceNanos;
    private final DeliveryLog log;
    private final List<DefaultMQPushConsumer> consumers = new ArrayList<>();

    Consumers(Options options) throws IOException {
        this.options = options;
        this.serviceNanos = Math.round(Double.parseDouble(options.get("service-ms", "0")) * 1e6);
        this.log = DeliveryLog.to(options.get("delivery-log", ""));
    }

    void run() throws Exception {
        List<String> ids = new ArrayList<>();
        for (String instance : options.list("instances")) {
            DefaultMQPushConsumer consumer = configured(instance);
            consumers.add(consumer);
            ids.add(consumer.buildMQClientId());
        }
        Runtime.getRuntime().addShutdownHook(new Thread(this::shutdown, "graceful-shutdown"));
        for (DefaultMQPushConsumer consumer : consumers) {
            consumer.start();
        }
        System.out.println("READY " + String.join(" ", ids));
        new CountDownLatch(1).await();
    }

    private DefaultMQPushConsumer configured(String instance) throws MQClientException {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(options.need("group"));
        consumer.setNamesrvAddr(options.need("name-server"));
        consumer.setClientIP(options.need("client-ip"));
        consumer.setInstanceName(instance);
        consumer.setAllocateMessageQueueStrategy(Strategies.chosen(options));
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
        for (String topic : options.list("topics")) {
            consumer.subscribe(topic, "*");
        }
        listen(consumer);
        return consumer;
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
        long begin = System.nanoTime();
        for (DefaultMQPushConsumer consumer : consumers) {
            consumer.shutdown();
        }
        try {
            log.close();
        } catch (IOException failure) {
            failure.printStackTrace();
        }
        System.out.println("STOPPED " + (System.nanoTime() - begin) / 1_000_000);
        System.out.flush();
    }
}
