package dev.consumerplanner.load;

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * One tab-separated line per message handed to a listener: epoch milliseconds, client id, topic, broker,
 * queue id, offset, and when the broker stored it; where it tells messages, also the message's id and how many times it
 * came back. Written when processing begins, flushed every 200 ms: a crash loses at most that much, or nothing where
 * every line is flushed.
 */
final class DeliveryLog implements AutoCloseable {
    private static final long FLUSH_MILLIS = 200;

    private final BufferedWriter writer;
    private final boolean flushesEach;
    private final boolean tellsMessages;
    private final ScheduledExecutorService flusher;
    private boolean closed;

    private DeliveryLog(BufferedWriter writer, boolean flushesEach, boolean tellsMessages) {
        this.writer = writer;
        this.flushesEach = flushesEach;
        this.tellsMessages = tellsMessages;
        this.flusher = Executors.newSingleThreadScheduledExecutor(task -> {
            Thread thread = new Thread(task, "delivery-log");
            thread.setDaemon(true);
            return thread;
        });
        flusher.scheduleWithFixedDelay(this::flush, FLUSH_MILLIS, FLUSH_MILLIS, TimeUnit.MILLISECONDS);
    }

    /** A log that appends to a file, or one that forgets everything when the path is empty. */
    static DeliveryLog to(String path, boolean flushesEach, boolean tellsMessages) throws IOException {
        BufferedWriter writer = path.isEmpty()
            ? new BufferedWriter(java.io.Writer.nullWriter())
            : Files.newBufferedWriter(Path.of(path), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        return new DeliveryLog(writer, flushesEach, tellsMessages);
    }

    synchronized void add(String clientId, MessageQueue queue, MessageExt message) {
        if (closed) {
            return;
        }
        // Who pops from all queues of a broker is told none.
        int queueId = queue.getQueueId() < 0 ? message.getQueueId() : queue.getQueueId();
        try {
            writer.append(Long.toString(System.currentTimeMillis())).append('\t')
                .append(clientId).append('\t')
                .append(queue.getTopic()).append('\t')
                .append(queue.getBrokerName()).append('\t')
                .append(Integer.toString(queueId)).append('\t')
                .append(Long.toString(message.getQueueOffset())).append('\t')
                .append(Long.toString(message.getStoreTimestamp()));
            if (tellsMessages) {
                writer.append('\t').append(message.getMsgId())
                    .append('\t').append(Integer.toString(message.getReconsumeTimes()))
                    .append('\t').append(message.getTags() == null ? "" : message.getTags());
            }
            writer.append('\n');
            if (flushesEach) {
                writer.flush();
            }
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private synchronized void flush() {
        try {
            if (!closed) {
                writer.flush();
            }
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    @Override
    public synchronized void close() throws IOException {
        closed = true;
        flusher.shutdownNow();
        writer.close();
    }
}
