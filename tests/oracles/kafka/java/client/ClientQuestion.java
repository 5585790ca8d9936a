import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupAssignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * The client-side assignors as a group leader calls them ({@code ConsumerCoordinator#onLeaderElected}): a fresh assignor,
 * the members in a HashMap that got them in the document's order. Sticky members bring the user data that their own
 * assignor object made.
 *
 * {@code cooperative_round} {@code final} repeats the round with what everybody got, one generation on, until nobody
 * gives anything up.
 */
@SuppressWarnings("unchecked")
final class ClientQuestion implements KafkaOracle.Question {
    private static final int MOST_ROUNDS = 20;

    private final String strategy;
    private final Cluster cluster;
    private final Map<String, Subscription> subscriptions = new HashMap<>();
    private final boolean allRounds;

    ClientQuestion(Map<String, Object> request) {
        strategy = (String) request.get("strategy");
        Map<String, Object> options = (Map<String, Object>) request.getOrDefault("options", Map.of());
        Map<String, Object> racks = (Map<String, Object>) options.getOrDefault("partition_racks", Map.of());
        cluster = cluster((Map<String, Object>) request.get("partitions"), racks);
        allRounds = strategy.equals("cooperative-sticky") && !"first".equals(options.get("cooperative_round"));
        for (Map<String, Object> member : (List<Map<String, Object>>) request.get("members")) {
            subscriptions.put((String) member.get("id"), subscription(member));
        }
    }

    private static Cluster cluster(Map<String, Object> partitions, Map<String, Object> racks) {
        List<PartitionInfo> infos = new ArrayList<>();
        for (Map.Entry<String, Object> entry : partitions.entrySet()) {
            List<Object> lists = (List<Object>) racks.get(entry.getKey());
            for (int number = 0; number < (Long) entry.getValue(); number++) {
                List<Object> names = lists == null ? List.of() : (List<Object>) lists.get(number);
                Node[] replicas = new Node[names.size()];
                for (int i = 0; i < replicas.length; i++) {
                    String rack = (String) names.get(i);
                    replicas[i] = new Node(i, "host", 9092, rack == null || rack.isEmpty() ? null : rack);
                }
                infos.add(new PartitionInfo(entry.getKey(), number, Node.noNode(), replicas, replicas));
            }
        }
        return new Cluster("cluster", List.of(), infos, Collections.emptySet(), Collections.emptySet());
    }

    private Subscription subscription(Map<String, Object> member) {
        List<String> topics = new ArrayList<>(new TreeSet<>((List<String>) member.get("topics")));
        List<TopicPartition> owned = new ArrayList<>();
        List<List<Object>> claims = (List<List<Object>>) member.get("owned");
        for (List<Object> claim : claims == null ? List.<List<Object>>of() : claims) {
            owned.add(new TopicPartition((String) claim.get(0), ((Long) claim.get(1)).intValue()));
        }
        Long generation = (Long) member.get("generation");
        Subscription subscription = subscription(
            topics, owned, generation == null ? -1 : generation.intValue(), (String) member.get("rack"));
        subscription.setGroupInstanceId(Optional.ofNullable((String) member.get("instance_id")));
        return subscription;
    }

    private Subscription subscription(List<String> topics, List<TopicPartition> owned, int generation, String rack) {
        java.nio.ByteBuffer userData = null;
        if (strategy.equals("sticky") && (!owned.isEmpty() || generation >= 0)) {
            StickyAssignor own = new StickyAssignor();
            own.onAssignment(new Assignment(owned), new ConsumerGroupMetadata("group", generation, "member", Optional.empty()));
            userData = own.subscriptionUserData(new HashSet<>(topics));
        }
        boolean tells = strategy.equals("cooperative-sticky");
        return new Subscription(topics, userData, tells ? owned : List.of(), generation, Optional.ofNullable(rack));
    }

    @Override
    public void prepare() {
        for (Subscription subscription : subscriptions.values()) {
            if (subscription.userData() != null) {
                subscription.userData().rewind();
            }
        }
    }

    @Override
    public Object call() {
        GroupAssignment found = round(subscriptions);
        Map<String, Subscription> members = subscriptions;
        for (int rounds = 1; allRounds && rounds < MOST_ROUNDS && somebodyRevokes(members, found); rounds++) {
            members = nextRound(members, found, rounds);
            found = round(members);
        }
        return found;
    }

    private GroupAssignment round(Map<String, Subscription> members) {
        return assignor().assign(cluster, new GroupSubscription(members));
    }

    private ConsumerPartitionAssignor assignor() {
        switch (strategy) {
            case "range":
                return new RangeAssignor();
            case "roundrobin":
                return new RoundRobinAssignor();
            case "sticky":
                return new StickyAssignor();
            case "cooperative-sticky":
                return new CooperativeStickyAssignor();
            default:
                throw new IllegalArgumentException("no class for " + strategy);
        }
    }

    private static boolean somebodyRevokes(Map<String, Subscription> members, GroupAssignment found) {
        for (Map.Entry<String, Subscription> member : members.entrySet()) {
            List<TopicPartition> assigned = found.groupAssignment().get(member.getKey()).partitions();
            if (!new HashSet<>(assigned).containsAll(member.getValue().ownedPartitions())) {
                return true;
            }
        }
        return false;
    }

    private Map<String, Subscription> nextRound(Map<String, Subscription> members, GroupAssignment found, int rounds) {
        int newest = members.values().stream().mapToInt(one -> one.generationId().orElse(-1)).max().orElse(-1);
        Map<String, Subscription> next = new HashMap<>();
        members.forEach((id, before) -> {
            Subscription after = subscription(
                before.topics(), found.groupAssignment().get(id).partitions(), newest + 1, before.rackId().orElse(null));
            after.setGroupInstanceId(before.groupInstanceId());
            next.put(id, after);
        });
        return next;
    }

    @Override
    public Map<String, List<KafkaOracle.Partition>> answer(Object called) {
        Map<String, List<KafkaOracle.Partition>> found = new LinkedHashMap<>();
        ((GroupAssignment) called).groupAssignment().forEach((id, assignment) -> found.put(id, assignment.partitions().stream()
            .map(one -> new KafkaOracle.Partition(one.topic(), one.partition())).collect(Collectors.toList())));
        return found;
    }
}
