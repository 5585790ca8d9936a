package dev.consumerplanner.load.kafka;

import java.util.Collection;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;

/** What happens to a client, as lines {@code EVENT <epoch ms> <id> <kind> <detail>} on standard output. */
final class Events {
    private Events() {
    }

    static synchronized void print(String id, String kind, String detail) {
        System.out.println("EVENT " + System.currentTimeMillis() + " " + id + " " + kind + " "
            + detail.replace('\n', ' '));
        System.out.flush();
    }

    static void print(String id, String kind, Collection<TopicPartition> partitions) {
        print(id, kind, partitions.stream()
            .map(one -> one.topic() + "/" + one.partition()).sorted().collect(Collectors.joining(",")));
    }
}
