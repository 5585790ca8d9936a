package dev.consumerplanner.load.kafka;

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * One tab-separated line for each record when its processing begins: epoch milliseconds, client, topic, partition,
 * offset, epoch milliseconds of the record itself. The consumers flush it themselves.
 */
final class DeliveryFile implements AutoCloseable {
    private final BufferedWriter writer;

    private DeliveryFile(BufferedWriter writer) {
        this.writer = writer;
    }

    static DeliveryFile at(Path path) throws IOException {
        return new DeliveryFile(Files.newBufferedWriter(path, StandardOpenOption.CREATE, StandardOpenOption.APPEND));
    }

    synchronized void add(String id, ConsumerRecord<?, ?> record) {
        try {
            writer.write(System.currentTimeMillis() + "\t" + id + "\t" + record.topic() + "\t" + record.partition()
                + "\t" + record.offset() + "\t" + record.timestamp() + "\n");
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    synchronized void flush() {
        try {
            writer.flush();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    @Override
    public synchronized void close() throws IOException {
        writer.close();
    }
}
