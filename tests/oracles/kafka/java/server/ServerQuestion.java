import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * The server-side assignors as the coordinator calls them ({@code TargetAssignmentBuilder}): members in a HashMap that
 * got them in the document's order, topics without metadata unresolved. Topic ids count upwards in name order, so that
 * sets of ids iterate in name order; with {@code topic_id_seed} they are random, as on a real broker.
 */
@SuppressWarnings("unchecked")
public final class ServerQuestion implements KafkaOracle.Question {
    private final ConsumerGroupPartitionAssignor assignor;
    private final Map<Uuid, String> names = new HashMap<>();
    private final Map<Uuid, Integer> sizes = new HashMap<>();
    private final GroupSpecImpl spec;
    private final List<String> memberIds = new ArrayList<>();

    public ServerQuestion(Map<String, Object> request) {
        assignor = request.get("strategy").equals("uniform") ? new UniformAssignor() : new RangeAssignor();
        List<Map<String, Object>> members = (List<Map<String, Object>>) request.get("members");
        Map<String, Uuid> ids = topicIds(members, (Map<String, Object>) request.get("partitions"), request.get("topic_id_seed"));
        Map<String, MemberSubscriptionAndAssignmentImpl> specs = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Map<String, Integer> subscribers = new HashMap<>();
        for (Map<String, Object> member : members) {
            String id = (String) member.get("id");
            memberIds.add(id);
            Set<Uuid> topics = new HashSet<>();
            for (String topic : new TreeSet<>((List<String>) member.get("topics"))) {
                subscribers.merge(topic, 1, Integer::sum);
                if (ids.containsKey(topic)) {
                    topics.add(ids.get(topic));
                }
            }
            specs.put(id, new MemberSubscriptionAndAssignmentImpl(
                Optional.ofNullable((String) member.get("rack")), Optional.ofNullable((String) member.get("instance_id")),
                topics, target(member, ids, owners)));
        }
        boolean alike = subscribers.values().stream().allMatch(count -> count == members.size());
        spec = new GroupSpecImpl(specs, alike ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS, owners);
    }

    private Map<String, Uuid> topicIds(List<Map<String, Object>> members, Map<String, Object> partitions, Object seed) {
        Set<String> subscribed = new TreeSet<>();
        members.forEach(member -> subscribed.addAll((List<String>) member.get("topics")));
        List<String> ordered = new ArrayList<>(subscribed);
        new TreeSet<>(partitions.keySet()).stream().filter(topic -> !subscribed.contains(topic)).forEach(ordered::add);
        Random random = seed == null ? null : new Random((Long) seed);
        Map<String, Uuid> ids = new HashMap<>();
        for (String topic : ordered) {
            int size = ((Long) partitions.getOrDefault(topic, 0L)).intValue();
            if (size > 0) {
                Uuid id = random == null ? new Uuid(0, 2 + ids.size()) : new Uuid(random.nextLong(), random.nextLong());
                ids.put(topic, id);
                names.put(id, topic);
                sizes.put(id, size);
            }
        }
        return ids;
    }

    /** Returns the target as the coordinator reads it back from its log: sets copied from lists, topics by name here. */
    private static Assignment target(Map<String, Object> member, Map<String, Uuid> ids, Map<Uuid, Map<Integer, String>> owners) {
        Map<String, List<Integer>> numbers = new TreeMap<>();
        List<List<Object>> claims = (List<List<Object>>) member.get("owned");
        for (List<Object> claim : claims == null ? List.<List<Object>>of() : claims) {
            int number = ((Long) claim.get(1)).intValue();
            numbers.computeIfAbsent((String) claim.get(0), topic -> new ArrayList<>()).add(number);
            owners.computeIfAbsent(ids.get((String) claim.get(0)), id -> new HashMap<>()).put(number, (String) member.get("id"));
        }
        Map<Uuid, Set<Integer>> target = new LinkedHashMap<>();
        numbers.forEach((topic, list) -> {
            Collections.sort(list);
            target.put(ids.get(topic), new HashSet<>(list));
        });
        return new Assignment(Collections.unmodifiableMap(target));
    }

    @Override
    public Object call() {
        return assignor.assign(spec, new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid id) {
                return sizes.getOrDefault(id, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid id, int partition) {
                return Set.of();
            }
        });
    }

    @Override
    public Map<String, List<KafkaOracle.Partition>> answer(Object called) {
        Map<String, MemberAssignment> assigned = ((GroupAssignment) called).members();
        Map<String, List<KafkaOracle.Partition>> found = new LinkedHashMap<>();
        for (String memberId : memberIds) {
            List<KafkaOracle.Partition> partitions = new ArrayList<>();
            if (assigned.containsKey(memberId)) {
                assigned.get(memberId).partitions().forEach((id, numbers) ->
                    numbers.forEach(number -> partitions.add(new KafkaOracle.Partition(names.get(id), number))));
            }
            found.put(memberId, partitions);
        }
        return found;
    }
}
