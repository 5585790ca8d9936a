package dev.consumerplanner.load;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * A strategy that writes down what each look shows, where it differs from the look before: epoch milliseconds,
 * client id, topic, members, queues, tab-separated. Every line is on its way to the disk before the look goes on.
 */
final class Watched implements AllocateMessageQueueStrategy {
    private final AllocateMessageQueueStrategy strategy;
    private final Path log;
    private final Map<String, String> latest = new HashMap<>();

    Watched(AllocateMessageQueueStrategy strategy, Path log) {
        this.strategy = strategy;
        this.log = log;
    }

    @Override
    public List<MessageQueue> allocate(String group, String clientId, List<MessageQueue> queues, List<String> members) {
        List<MessageQueue> found = strategy.allocate(group, clientId, queues, members);
        List<String> names = found.stream().map(queue -> queue.getBrokerName() + "/" + queue.getQueueId()).toList();
        String topic = queues.get(0).getTopic();
        write(clientId, topic, String.join(",", members) + "\t" + String.join(",", names));
        return found;
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
