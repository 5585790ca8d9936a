package dev.consumerplanner.load;

import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/** A consumer that polls and never commits. */
final class Puller {
    private final DefaultLitePullConsumer consumer;
    private volatile boolean stopped;

    Puller(Options options) throws MQClientException {
        consumer = new DefaultLitePullConsumer(options.need("group"));
        consumer.setNamesrvAddr(options.need("name-server"));
        consumer.setClientIP(options.need("client-ip"));
        consumer.setInstanceName(options.need("instances"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setAutoCommit(false);
        consumer.setMqClientApiTimeout(options.integer("api-timeout-ms", consumer.getMqClientApiTimeout()));
        consumer.setEnableStreamRequestType(false); // it would be part of the client id
        for (String topic : options.list("topics")) {
            consumer.subscribe(topic, "*");
        }
    }

    List<String> start() throws MQClientException {
        consumer.start();
        Thread thread = new Thread(() -> {
            while (!stopped) {
                consumer.poll(1_000);
            }
        }, "poll");
        thread.setDaemon(true);
        thread.start();
        return List.of(consumer.buildMQClientId());
    }

    void stop() {
        stopped = true;
        consumer.shutdown();
    }
}
