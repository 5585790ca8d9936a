import dev.consumerplanner.SpecifiedMachineStrategy;
import dev.consumerplanner.StaticStrategy;
import dev.consumerplanner.VipStrategy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
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

/** The real strategy classes, set up as a consumer would set them up, from the options of a request. */
@SuppressWarnings("unchecked")
final class Strategies {
    private Strategies() {
    }

    /** The strategy as {@code client} carries it: CONFIG is the one whose set-up differs from client to client. */
    static AllocateMessageQueueStrategy of(String name, Map<String, Object> options, String client) {
        switch (name) {
            case "CONFIG": {
                AllocateMessageQueueByConfig config = new AllocateMessageQueueByConfig();
                Object list = ((Map<String, Object>) options.get("config")).get(client);
                config.setMessageQueueList(list == null ? new ArrayList<>() : queues((List<Object>) list));
                return config;
            }
            case "MACHINE_ROOM": {
                AllocateMessageQueueByMachineRoom rooms = new AllocateMessageQueueByMachineRoom();
                rooms.setConsumeridcs(texts(options.get("consumer_rooms")));
                return rooms;
            }
            case "MACHINE_ROOM_NEARBY":
                return nearby((Map<String, Object>) options.get("machine_rooms"), options);
            case "SPECIFIED_MACHINE":
                return new SpecifiedMachineStrategy(texts(options.get("hosts")), inner(options, options));
            case "VIP":
                return new VipStrategy(
                        new HashSet<>(queues((List<Object>) options.get("vip_queues"))),
                        texts(options.get("vip_clients")),
                        inner(options, options));
            case "STATIC":
                return new StaticStrategy(reserved((Map<String, Object>) options.get("reserved")), inner(options, options));
            default:
                return plain(name, options);
        }
    }

    static List<MessageQueue> queues(List<Object> documents) {
        List<MessageQueue> queues = new ArrayList<>();
        for (Object document : documents) {
            queues.add(queue(document));
        }
        return queues;
    }

    private static MessageQueue queue(Object document) {
        if (document instanceof List) {
            List<Object> parts = (List<Object>) document;
            return new MessageQueue((String) parts.get(0), (String) parts.get(1), ((Long) parts.get(2)).intValue());
        }
        Map<String, Object> parts = (Map<String, Object>) document;
        return new MessageQueue(
                (String) parts.get("topic"), (String) parts.get("broker"), ((Long) parts.get("queue_id")).intValue());
    }

    private static AllocateMessageQueueStrategy plain(String name, Map<String, Object> options) {
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH":
                return options.containsKey("virtual_nodes")
                        ? new AllocateMessageQueueConsistentHash(((Long) options.get("virtual_nodes")).intValue())
                        : new AllocateMessageQueueConsistentHash();
            default:
                throw new IllegalArgumentException("no such strategy: " + name);
        }
    }

    private static AllocateMessageQueueStrategy inner(Map<String, Object> holder, Map<String, Object> options) {
        return plain((String) holder.getOrDefault("inner", "AVG"), options);
    }

    private static AllocateMessageQueueStrategy nearby(Map<String, Object> rooms, Map<String, Object> options) {
        Map<String, Object> brokers = (Map<String, Object>) rooms.get("brokers");
        Map<String, Object> clients = (Map<String, Object>) rooms.get("clients");
        return new AllocateMachineRoomNearby(inner(rooms, options), new AllocateMachineRoomNearby.MachineRoomResolver() {
            @Override
            public String brokerDeployIn(MessageQueue queue) {
                return (String) brokers.get(queue.getBrokerName());
            }

            @Override
            public String consumerDeployIn(String client) {
                return (String) clients.get(client);
            }
        });
    }

    private static Map<MessageQueue, String> reserved(Map<String, Object> lists) {
        Map<MessageQueue, String> reserved = new HashMap<>();
        lists.forEach((name, list) -> queues((List<Object>) list).forEach(queue -> reserved.put(queue, name)));
        return reserved;
    }

    private static Set<String> texts(Object list) {
        return new HashSet<>((List<String>) list);
    }
}
