import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;

/** A Kafka Streams application without state: {@code BOOTSTRAP APPLICATION TOPIC DIRECTORY PROTOCOL THREADS}. */
public final class StreamsApp {
    private StreamsApp() {
    }

    public static void main(String[] arguments) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(arguments[2]).foreach((key, value) -> { });
        Properties settings = new Properties();
        settings.putAll(Map.of(
            StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0],
            StreamsConfig.APPLICATION_ID_CONFIG, arguments[1],
            StreamsConfig.STATE_DIR_CONFIG, arguments[3],
            "group.protocol", arguments[4],
            StreamsConfig.NUM_STREAM_THREADS_CONFIG, arguments[5],
            StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class.getName(),
            StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class.getName(),
            "auto.offset.reset", "earliest"));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> System.out.println(now));
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }
}
