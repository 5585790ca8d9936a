package dev.consumerplanner.load;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageQueueListener;

/** Properties of a consumer that only some releases have: set by name, so that this compiles with all of them. */
final class Properties {
    private Properties() {
    }

    /** Set each property by its own name; the client's own check comes with its start. */
    static void set(Object consumer, Map<String, String> values) {
        for (Map.Entry<String, String> one : values.entrySet()) {
            Method setter = setter(consumer, one.getKey());
            invoke(setter, consumer, parsed(one.getValue(), setter.getParameterTypes()[0]));
        }
    }

    /** Let it be told which queues are its own after each change of them (clients since 5.2). */
    static void setListener(DefaultMQPushConsumer consumer, MessageQueueListener listener) {
        invoke(setter(consumer, "messageQueueListener"), consumer, listener);
    }

    private static Method setter(Object consumer, String property) {
        String name = "set" + Character.toUpperCase(property.charAt(0)) + property.substring(1);
        for (Method method : consumer.getClass().getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == 1) {
                return method;
            }
        }
        throw new IllegalArgumentException("this client has no property " + property);
    }

    private static Object parsed(String value, Class<?> type) {
        if (type == boolean.class) {
            return Boolean.parseBoolean(value);
        }
        return type == long.class ? (Object) Long.parseLong(value) : (Object) Integer.parseInt(value);
    }

    private static void invoke(Method setter, Object consumer, Object value) {
        try {
            setter.invoke(consumer, value);
        } catch (IllegalAccessException | InvocationTargetException failure) {
            throw new IllegalArgumentException(setter.getName() + " " + value, failure);
        }
    }
}
