package dev.consumerplanner;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * A queue that is reserved for an instance name goes to the first consumer of that name; every queue that is not
 * reserved, or whose consumer is missing, is spread by an inner strategy over all consumers.
 */
public final class StaticStrategy implements AllocateMessageQueueStrategy {
    private final Map<MessageQueue, String> reserved;
    private final AllocateMessageQueueStrategy inner;

    public StaticStrategy(Map<MessageQueue, String> reserved, AllocateMessageQueueStrategy inner) {
        this.reserved = reserved;
        this.inner = inner;
    }

    @Override
    public List<MessageQueue> allocate(
            String group, String current, List<MessageQueue> queues, List<String> clients) {
        ClientNames.check(current, queues, clients);
        List<MessageQueue> mine = new ArrayList<>();
        List<MessageQueue> free = new ArrayList<>();
        for (MessageQueue queue : queues) {
            String owner = firstNamed(reserved.get(queue), clients);
            if (owner == null) {
                free.add(queue);
            } else if (owner.equals(current)) {
                mine.add(queue);
            }
        }
        mine.addAll(ClientNames.shareOf(inner::allocate, group, current, free, clients));
        return mine;
    }

    @Override
    public String getName() {
        return "STATIC";
    }

    private static String firstNamed(String name, List<String> clients) {
        if (name != null) {
            for (String client : clients) {
                if (name.equals(ClientNames.stableName(client))) {
                    return client;
                }
            }
        }
        return null;
    }
}
