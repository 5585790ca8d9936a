package dev.consumerplanner.load;

import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;

/** The client's own allocation strategies by the names they report. */
final class Strategies {
    private Strategies() {
    }

    static AllocateMessageQueueStrategy named(Options options) {
        String name = options.get("strategy", "AVG");
        return switch (name) {
            case "AVG" -> new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE" -> new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH" -> new AllocateMessageQueueConsistentHash(options.integer("virtual-nodes", 10));
            default -> throw new IllegalArgumentException("unknown strategy " + name);
        };
    }
}
