package dev.consumerplanner;

import java.util.ArrayList;
import java.util.List;

/** The parts of a client id, {@code host@instance} or {@code host@instance@unit}, and the checks all our strategies share. */
final class ClientNames {
    private ClientNames() {
    }

    /** The part before the first {@code @}, which is the consumer's {@code clientIP}. */
    static String host(String clientId) {
        int at = clientId.indexOf('@');
        return at < 0 ? clientId : clientId.substring(0, at);
    }

    /** The part between the first and the second {@code @}: the {@code instanceName}. The whole id when there is no {@code @}. */
    static String stableName(String clientId) {
        int first = clientId.indexOf('@');
        if (first < 0) {
            return clientId;
        }
        int second = clientId.indexOf('@', first + 1);
        return second < 0 ? clientId.substring(first + 1) : clientId.substring(first + 1, second);
    }

    /** Fails as RocketMQ's own strategies do: the consumer then keeps the queues that it has. */
    static void check(String current, List<?> queues, List<String> clients) {
        if (current == null || current.isEmpty()) {
            throw new IllegalArgumentException("currentCID is empty");
        }
        if (queues == null || queues.isEmpty()) {
            throw new IllegalArgumentException("mqAll is null or mqAll empty");
        }
        if (clients == null || clients.isEmpty()) {
            throw new IllegalArgumentException("cidAll is null or cidAll empty");
        }
    }

    /** What {@code inner} gives this client of these queues; nothing when there are none, or it is not among the clients. */
    static <Q> List<Q> shareOf(
            InnerStrategy<Q> inner, String group, String current, List<Q> queues, List<String> clients) {
        if (queues.isEmpty() || !clients.contains(current)) {
            return new ArrayList<>();
        }
        return inner.allocate(group, current, queues, clients);
    }

    /** The one method of a strategy that is needed here. */
    interface InnerStrategy<Q> {
        List<Q> allocate(String group, String current, List<Q> queues, List<String> clients);
    }
}
