package dev.consumerplanner.load;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/** The client's own allocation strategies by the names they report. */
final class Strategies {
    private static final String NEARBY = "MACHINE_ROOM_NEARBY-";

    private Strategies() {
    }

    static AllocateMessageQueueStrategy chosen(Options options) {
        return named(options.get("strategy", "AVG"), options);
    }

    private static AllocateMessageQueueStrategy named(String name, Options options) {
        if (name.startsWith(NEARBY)) {
            return nearby(named(name.substring(NEARBY.length()), options), options);
        }
        return switch (name) {
            case "AVG" -> new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE" -> new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH" -> new AllocateMessageQueueConsistentHash(options.integer("virtual-nodes", 10));
            case "CONFIG" -> byConfig(options);
            case "MACHINE_ROOM" -> byMachineRoom(options);
            default -> throw new IllegalArgumentException("unknown strategy " + name);
        };
    }

    /** {@code --queues topic/broker/queue,...}: exactly these. */
    private static AllocateMessageQueueStrategy byConfig(Options options) {
        AllocateMessageQueueByConfig strategy = new AllocateMessageQueueByConfig();
        List<MessageQueue> queues = options.list("queues").stream().map(Strategies::queue).toList();
        strategy.setMessageQueueList(queues);
        return strategy;
    }

    /** {@code --rooms room,...}: brokers named {@code room@name} in these rooms. */
    private static AllocateMessageQueueStrategy byMachineRoom(Options options) {
        AllocateMessageQueueByMachineRoom strategy = new AllocateMessageQueueByMachineRoom();
        strategy.setConsumeridcs(Set.copyOf(options.list("rooms")));
        return strategy;
    }

    /**
     * {@code --broker-rooms broker=room,... --client-rooms client id=room,...}. A name with a star, {@code near*=r1}, is
     * of all clients whose id or instance begins so: pods of a Deployment, whose ids nobody knows before they run.
     */
    private static AllocateMessageQueueStrategy nearby(AllocateMessageQueueStrategy inner, Options options) {
        Map<String, String> brokers = options.pairs("broker-rooms");
        Map<String, String> clients = options.pairs("client-rooms");
        return new AllocateMachineRoomNearby(inner, new AllocateMachineRoomNearby.MachineRoomResolver() {
            @Override
            public String brokerDeployIn(MessageQueue queue) {
                return brokers.get(queue.getBrokerName());
            }

            @Override
            public String consumerDeployIn(String clientId) {
                return clients.getOrDefault(clientId, roomByBeginning(clients, clientId));
            }
        });
    }

    private static String roomByBeginning(Map<String, String> clients, String clientId) {
        String instance = clientId.substring(clientId.indexOf('@') + 1);
        return clients.entrySet().stream()
            .filter(room -> room.getKey().endsWith("*"))
            .filter(room -> {
                String beginning = room.getKey().substring(0, room.getKey().length() - 1);
                return instance.startsWith(beginning) || clientId.startsWith(beginning);
            })
            .map(Map.Entry::getValue)
            .findFirst()
            .orElse(null);
    }

    private static MessageQueue queue(String text) {
        String[] parts = text.split("/");
        return new MessageQueue(parts[0], parts[1], Integer.parseInt(parts[2]));
    }
}
