package dev.consumerplanner.load.grpc;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientException;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;

/**
 * Real gRPC push consumers of RocketMQ 5 in one process, one for each group and its topic, each with four threads that
 * spend so many milliseconds on a message: {@code endpoints milliseconds group=topic ...}. Says {@code READY} once all
 * have started, runs until it is stopped, and then closes its consumers as an application does.
 */
public final class GrpcConsumers {
    private static final int THREADS = 4;
    private static final int STARTS = 20;

    private GrpcConsumers() {
    }

    public static void main(String[] arguments) throws Exception {
        String endpoints = arguments[0];
        long serviceMillis = Long.parseLong(arguments[1]);
        AtomicLong consumed = new AtomicLong();
        List<PushConsumer> consumers = new ArrayList<>();
        for (String pair : List.of(arguments).subList(2, arguments.length)) {
            String[] parts = pair.split("=");
            consumers.add(start(endpoints, parts[1], parts[0], serviceMillis, consumed));
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> consumers.forEach(GrpcConsumers::close)));
        System.out.println("READY");
        while (true) {
            Thread.sleep(1_000);
            System.out.println("CONSUMED " + consumed.get());
        }
    }

    /** Building fails for good where the proxy is late with its answer, so an application tries again. */
    private static PushConsumer start(
        String endpoints, String topic, String group, long serviceMillis, AtomicLong consumed) throws Exception {
        ClientConfiguration configuration = ClientConfiguration.newBuilder()
            .setEndpoints(endpoints)
            .enableSsl(false)
            .setRequestTimeout(Duration.ofSeconds(10))
            .build();
        for (int left = STARTS; ; left--) {
            try {
                return ClientServiceProvider.loadService().newPushConsumerBuilder()
                    .setClientConfiguration(configuration)
                    .setConsumerGroup(group)
                    .setSubscriptionExpressions(Map.of(topic, FilterExpression.SUB_ALL))
                    .setConsumptionThreadCount(THREADS)
                    .setMessageListener(message -> consume(serviceMillis, consumed))
                    .build();
            } catch (ClientException | RuntimeException failure) {
                if (left == 0) {
                    throw failure;
                }
                System.out.println("LATER " + failure);
                Thread.sleep(1_000);
            }
        }
    }

    private static ConsumeResult consume(long serviceMillis, AtomicLong consumed) {
        try {
            Thread.sleep(serviceMillis);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return ConsumeResult.FAILURE;
        }
        consumed.incrementAndGet();
        return ConsumeResult.SUCCESS;
    }

    private static void close(PushConsumer consumer) {
        try {
            consumer.close();
        } catch (Exception failure) {
            failure.printStackTrace();
        }
    }
}
