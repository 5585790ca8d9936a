import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Times a whole group's rebalance as its clients really do it: every client copies and sorts both lists, then calls the real
 * class. Processor time of the one thread that works; the request says how many rounds and how many of the clients.
 */
@SuppressWarnings("unchecked")
final class Benchmark {
    private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();

    private Benchmark() {
    }

    static String run(Map<String, Object> request) {
        Map<String, Object> options = (Map<String, Object>) request.getOrDefault("options", Collections.emptyMap());
        List<MessageQueue> queues = Strategies.queues((List<Object>) request.get("queues"));
        List<String> clients = new ArrayList<>((List<String>) request.get("clients"));
        String name = (String) request.get("strategy");
        int measured = ((Long) request.getOrDefault("measured_clients", (long) clients.size())).intValue();
        int rounds = ((Long) request.get("bench")).intValue();
        Collections.shuffle(queues, new Random(1));
        Collections.shuffle(clients, new Random(2));
        long[] sorting = new long[rounds];
        long[] allocating = new long[rounds];
        long found = 0;
        for (int round = 0; round < rounds; round++) {
            for (int k = 0; k < measured; k++) {
                long start = CLOCK.getCurrentThreadCpuTime();
                List<MessageQueue> sortedQueues = new ArrayList<>(queues);
                List<String> sortedClients = new ArrayList<>(clients);
                Collections.sort(sortedQueues);
                Collections.sort(sortedClients);
                long sorted = CLOCK.getCurrentThreadCpuTime();
                String client = clients.get(k);
                AllocateMessageQueueStrategy strategy = Strategies.of(name, options, client);
                long ready = CLOCK.getCurrentThreadCpuTime();
                found += strategy.allocate("group", client, sortedQueues, sortedClients).size();
                allocating[round] += CLOCK.getCurrentThreadCpuTime() - ready;
                sorting[round] += sorted - start;
            }
        }
        return "{\"sorting_ns\":" + Arrays.toString(sorting) + ",\"allocating_ns\":" + Arrays.toString(allocating)
                + ",\"found\":" + found + "}";
    }
}
