package dev.consumerplanner.load;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.MessageQueueListener;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * A strategy that writes down what each look shows, where it differs from the look before: epoch milliseconds,
 * client id, topic, members, queues, tab-separated. Every line is on its way to the disk before the look goes on.
 * Where the broker allocates, the client tells its queues after it has changed them; nobody tells the members then.
 */
final class Watched implements AllocateMessageQueueStrategy, MessageQueueListener {
    private final AllocateMessageQueueStrategy strategy;
    private final String consumerId;
    private final Path log;
    private final Map<String, String> latest = new HashMap<>();

    Watched(AllocateMessageQueueStrategy strategy, String consumerId, Path log) {
        this.strategy = strategy;
        this.consumerId = consumerId;
        this.log = log;
    }

    @Override
    public List<MessageQueue> allocate(String group, String clientId, List<MessageQueue> queues, List<String> members) {
        List<MessageQueue> found = strategy.allocate(group, clientId, queues, members);
        write(clientId, queues.get(0).getTopic(), String.join(",", members) + "\t" + names(found));
        return found;
    }

    @Override
    public void messageQueueChanged(String topic, Set<MessageQueue> all, Set<MessageQueue> mine) {
        write(consumerId, topic, "\t" + names(mine.stream().sorted().toList()));
    }

    private static String names(List<MessageQueue> queues) {
        return String.join(",", queues.stream().map(one -> one.getBrokerName() + "/" + one.getQueueId()).toList());
    }

    private synchronized void write(String clientId, String topic, String shown) {
        if (shown.equals(latest.put(topic, shown))) {
            return;
        }
        String line = System.currentTimeMillis() + "\t" + clientId + "\t" + topic + "\t" + shown + "\n";
        try {
            Files.writeString(log, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    @Override
    public String getName() {
        return strategy.getName();
    }
}
