package dev.consumerplanner.load.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Real Kafka consumers and producers, many in one JVM, told what to do by JSON lines on standard input.
 *
 * <p>{@code {"do": "start", "id": "c0", "topics": [...], "config": {...}, "service_us": 0, "commit": "auto"}},
 * {@code {"do": "stop", "id": "c0"}}, {@code {"do": "hang", "id": "c0"}} (polls no more),
 * {@code {"do": "subscribe", "id": "c0", "topics": [...]}} and
 * {@code {"do": "produce", "id": "p0", "config": {...}, "lanes": ["topic partition seconds:rate ..."]}}. What happens
 * is printed by {@link Events}; each delivery goes to the log that the first argument names. At the end of the input,
 * and on SIGTERM, everything is closed gracefully. A second argument is the only order, as in a pod: then nothing is
 * read, and the program ends with the consumer.
 */
public final class KafkaMain {
    private final Map<String, ConsumerThread> consumers = new LinkedHashMap<>();
    private final Map<String, ProducerThread> producers = new LinkedHashMap<>();
    private final DeliveryFile log;

    private KafkaMain(DeliveryFile log) {
        this.log = log;
    }

    public static void main(String[] arguments) throws Exception {
        try (DeliveryFile log = DeliveryFile.at(Path.of(arguments[0]))) {
            KafkaMain main = new KafkaMain(log);
            Runtime.getRuntime().addShutdownHook(new Thread(main::closeAll, "graceful-shutdown"));
            System.out.println("READY");
            if (arguments.length > 1) {
                main.obey(new BufferedReader(new StringReader(arguments[1])));
                main.consumers.values().forEach(KafkaMain::await);
            } else {
                main.obey(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
                main.closeAll();
            }
        }
    }

    private void obey(BufferedReader commands) throws Exception {
        ObjectMapper json = new ObjectMapper();
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            JsonNode order = json.readTree(line);
            String id = order.get("id").asText();
            try {
                obey(order.get("do").asText(), id, order);
            } catch (RuntimeException failure) {
                Events.print(id, "failed", failure.toString());
            }
        }
    }

    private synchronized void obey(String verb, String id, JsonNode order) {
        switch (verb) {
            case "start" -> {
                ConsumerThread consumer = new ConsumerThread(id, order, log);
                consumers.put(id, consumer);
                consumer.start();
            }
            case "stop" -> {
                if (producers.containsKey(id)) {
                    producers.get(id).close();
                } else {
                    consumers.get(id).close();
                }
            }
            case "hang" -> consumers.get(id).hang();
            case "subscribe" -> consumers.get(id).subscribeLater(Fields.texts(order.get("topics")));
            case "produce" -> {
                ProducerThread producer = new ProducerThread(id, order);
                producers.put(id, producer);
                producer.start();
            }
            default -> throw new IllegalArgumentException("no such order: " + verb);
        }
    }

    private synchronized void closeAll() {
        producers.values().forEach(ProducerThread::close);
        consumers.values().forEach(ConsumerThread::close);
        producers.values().forEach(KafkaMain::await);
        consumers.values().forEach(KafkaMain::await);
    }

    private static void await(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        }
    }
}
