import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Answers requests of {@code planner allocate}, one JSON line each, by calling the real strategy classes once for every
 * client and topic, both lists sorted as {@code RebalanceImpl#rebalanceByTopic} sorts them. An empty line is answered by
 * an empty line and flushes.
 */
@SuppressWarnings("unchecked")
public final class AllocationOracle {
    private AllocationOracle() {
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isEmpty()) {
                out.print('\n');
                out.flush();
            } else {
                out.print(answer((Map<String, Object>) Json.parse(line)));
                out.print('\n');
            }
        }
        out.flush();
    }

    private static String answer(Map<String, Object> request) {
        StringBuilder out = new StringBuilder();
        try {
            if (request.containsKey("bench")) {
                return Benchmark.run(request);
            }
            write(out, allocate(request));
        } catch (Throwable problem) {
            out.setLength(0);
            out.append("{\"error\":");
            Json.write(out, String.valueOf(problem));
            out.append('}');
        }
        return out.toString();
    }

    private static Map<String, List<MessageQueue>> allocate(Map<String, Object> request) throws Exception {
        List<MessageQueue> queues = Strategies.queues((List<Object>) request.get("queues"));
        List<String> clients = new ArrayList<>((List<String>) request.get("clients"));
        Map<String, Object> options = (Map<String, Object>) request.getOrDefault("options", Collections.emptyMap());
        String name = (String) request.get("strategy");
        List<String> asked = (List<String>) request.getOrDefault("ask", clients);
        Collections.sort(clients);
        Map<String, List<MessageQueue>> topics = new TreeMap<>();
        for (MessageQueue queue : queues) {
            topics.computeIfAbsent(queue.getTopic(), topic -> new ArrayList<>()).add(queue);
        }
        if (name.equals("CONFIG") && !topics.isEmpty()) {
            topics = new TreeMap<>(Collections.singletonMap("any", queues));
        }
        Map<String, List<MessageQueue>> answers = new LinkedHashMap<>();
        for (String client : new LinkedHashSet<>(asked)) {
            AllocateMessageQueueStrategy strategy = Strategies.of(name, options, client);
            List<MessageQueue> mine = new ArrayList<>();
            for (List<MessageQueue> topic : topics.values()) {
                Collections.sort(topic);
                mine.addAll(share(strategy, client, topic, clients, options.get("pop_share_queues")));
            }
            answers.put(client, mine);
        }
        return answers;
    }

    private static List<MessageQueue> share(
            AllocateMessageQueueStrategy strategy, String client, List<MessageQueue> topic, List<String> clients, Object shared)
            throws Exception {
        if (shared == null || topic.get(0).getTopic().startsWith("%RETRY%")) {
            return strategy.allocate("group", client, topic, clients);
        }
        return Pop.allocate(strategy, client, topic, clients, ((Long) shared).intValue());
    }

    private static void write(StringBuilder out, Map<String, List<MessageQueue>> answers) {
        char separator = '{';
        for (Map.Entry<String, List<MessageQueue>> answer : answers.entrySet()) {
            out.append(separator);
            Json.write(out, answer.getKey());
            out.append(":[");
            for (int i = 0; i < answer.getValue().size(); i++) {
                MessageQueue queue = answer.getValue().get(i);
                out.append(i == 0 ? "[" : ",[");
                Json.write(out, queue.getTopic());
                out.append(',');
                Json.write(out, queue.getBrokerName());
                out.append(',').append(queue.getQueueId()).append(']');
            }
            out.append(']');
            separator = ',';
        }
        out.append(answers.isEmpty() ? "{}" : "}");
    }

    /** The broker's own class, without a broker around it: its method needs nothing that the constructor sets up. */
    private static final class Pop {
        private static Object processor;

        static List<MessageQueue> allocate(
                AllocateMessageQueueStrategy strategy, String client, List<MessageQueue> topic, List<String> clients, int shared)
                throws Exception {
            Class<?> kind = Class.forName("org.apache.rocketmq.broker.processor.QueryAssignmentProcessor");
            if (processor == null) {
                Class<?> unsafe = Class.forName("sun.misc.Unsafe");
                Field access = unsafe.getDeclaredField("theUnsafe");
                access.setAccessible(true);
                processor = unsafe.getMethod("allocateInstance", Class.class).invoke(access.get(null), kind);
            }
            Object answer = kind.getMethod(
                    "allocate4Pop", AllocateMessageQueueStrategy.class, String.class, String.class, List.class, List.class, int.class)
                    .invoke(processor, strategy, "group", client, topic, clients, shared);
            return new ArrayList<>(new LinkedHashSet<>((List<MessageQueue>) answer));
        }
    }
}
