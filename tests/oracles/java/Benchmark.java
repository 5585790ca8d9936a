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
 * class. One thread; the request says how many runs warm up and how many of the clients are measured in each run.
 */
@SuppressWarnings("unchecked")
final class Benchmark {
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
                long start = System.nanoTime();
                List<MessageQueue> sortedQueues = new ArrayList<>(queues);
                List<String> sortedClients = new ArrayList<>(clients);
                Collections.sort(sortedQueues);
                Collections.sort(sortedClients);
                long sorted = System.nanoTime();
                String client = clients.get(k);
                AllocateMessageQueueStrategy strategy = Strategies.of(name, options, client);
                long ready = System.nanoTime();
                found += strategy.allocate("group", client, sortedQueues, sortedClients).size();
                allocating[round] += System.nanoTime() - ready;
                sorting[round] += sorted - start;
            }
        }
        return "{\"sorting_ns\":" + Arrays.toString(sorting) + ",\"allocating_ns\":" + Arrays.toString(allocating)
                + ",\"found\":" + found + "}";
    }
}
