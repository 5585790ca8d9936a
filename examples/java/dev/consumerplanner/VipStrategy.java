package dev.consumerplanner;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * VIP queues go to the consumers with VIP instance names, the other queues to the other consumers, each part spread by
 * an inner strategy for itself.
 *
 * <p>A part whose consumers are all missing is spread over those that are left, so that no queue is without an owner.
 */
public final class VipStrategy implements AllocateMessageQueueStrategy {
    private final Set<MessageQueue> vipQueues;
    private final Set<String> vipNames;
    private final AllocateMessageQueueStrategy inner;

    public VipStrategy(Set<MessageQueue> vipQueues, Set<String> vipNames, AllocateMessageQueueStrategy inner) {
        this.vipQueues = vipQueues;
        this.vipNames = vipNames;
        this.inner = inner;
    }

    @Override
    public List<MessageQueue> allocate(
            String group, String current, List<MessageQueue> queues, List<String> clients) {
        ClientNames.check(current, queues, clients);
        List<String> vips = new ArrayList<>();
        List<String> others = new ArrayList<>();
        for (String client : clients) {
            (vipNames.contains(ClientNames.stableName(client)) ? vips : others).add(client);
        }
        List<MessageQueue> chosen = new ArrayList<>();
        List<MessageQueue> rest = new ArrayList<>();
        for (MessageQueue queue : queues) {
            (vipQueues.contains(queue) ? chosen : rest).add(queue);
        }
        List<MessageQueue> mine = new ArrayList<>(
                ClientNames.shareOf(inner::allocate, group, current, chosen, vips.isEmpty() ? others : vips));
        mine.addAll(ClientNames.shareOf(inner::allocate, group, current, rest, others.isEmpty() ? vips : others));
        return mine;
    }

    @Override
    public String getName() {
        return "VIP";
    }
}
