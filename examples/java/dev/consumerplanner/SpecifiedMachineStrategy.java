package dev.consumerplanner;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Only consumers on the named hosts consume; they share all queues by an inner strategy, and everybody else idles.
 *
 * <p>With no consumer on any of the hosts, nobody consumes.
 */
public final class SpecifiedMachineStrategy implements AllocateMessageQueueStrategy {
    private final Set<String> hosts;
    private final AllocateMessageQueueStrategy inner;

    public SpecifiedMachineStrategy(Set<String> hosts, AllocateMessageQueueStrategy inner) {
        this.hosts = hosts;
        this.inner = inner;
    }

    @Override
    public List<MessageQueue> allocate(
            String group, String current, List<MessageQueue> queues, List<String> clients) {
        ClientNames.check(current, queues, clients);
        List<String> chosen = new ArrayList<>();
        for (String client : clients) {
            if (hosts.contains(ClientNames.host(client))) {
                chosen.add(client);
            }
        }
        return ClientNames.shareOf(inner::allocate, group, current, queues, chosen);
    }

    @Override
    public String getName() {
        return "SPECIFIED_MACHINE";
    }
}
