package dev.consumerplanner.load.kafka;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.TopicPartition;

/** A user's own assignor, the twin of examples/custom_assignor.py: each partition to the member that owns least. */
public final class ByWeight extends AbstractPartitionAssignor {
    @Override
    public String name() {
        return "by-weight";
    }

    @Override
    public Map<String, List<TopicPartition>> assign(
            Map<String, Integer> partitionsPerTopic, Map<String, Subscription> subscriptions) {
        Map<String, List<TopicPartition>> given = new TreeMap<>();
        subscriptions.keySet().forEach(member -> given.put(member, new ArrayList<>()));
        Comparator<String> leastLoaded = Comparator.comparing((String member) -> given.get(member).size());
        new TreeMap<>(partitionsPerTopic).forEach((topic, count) -> {
            for (int number = 0; number < count; number++) {
                String least = given.keySet().stream()
                        .filter(member -> subscriptions.get(member).topics().contains(topic))
                        .min(leastLoaded.thenComparing(Comparator.naturalOrder()))
                        .orElseThrow();
                given.get(least).add(new TopicPartition(topic, number));
            }
        });
        return given;
    }
}
