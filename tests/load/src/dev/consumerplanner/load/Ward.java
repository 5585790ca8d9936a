package dev.consumerplanner.load;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * Many groups in one JVM, sick ones and healthy ones: each line of {@code --plan} is one call of {@code consume}, or,
 * with {@code --pull true}, a consumer that polls and never commits.
 *
 * <p>{@code --stop-after-ms} in a line stops its consumers for good, {@code --restart-ms} stops and starts them again
 * and again. Prints {@code READY <client ids>} once all have started, {@code STOPPED 0} when SIGTERM has ended them.
 */
final class Ward {
    private final List<Options> lines = new ArrayList<>();
    private final List<Runnable> stops = new ArrayList<>();

    Ward(Options options) throws Exception {
        for (String line : Files.readAllLines(Path.of(options.need("plan")))) {
            lines.add(Options.parse(line.trim().split("\\s+"), 0));
        }
    }

    void run() throws Exception {
        List<String> ids = new ArrayList<>();
        Runtime.getRuntime().addShutdownHook(new Thread(this::stop, "graceful-shutdown"));
        for (Options line : lines) {
            ids.addAll(started(line));
        }
        System.out.println("READY " + String.join(" ", ids));
        new CountDownLatch(1).await();
    }

    private List<String> started(Options line) throws Exception {
        if (Boolean.parseBoolean(line.get("poll", "false"))) {
            return polling(line);
        }
        return Boolean.parseBoolean(line.get("pull", "false")) ? pulling(line) : pushing(line);
    }

    private List<String> polling(Options line) throws Exception {
        Poller poller = new Poller(line);
        stops.add(poller::stop);
        return poller.start();
    }

    private List<String> pulling(Options line) throws Exception {
        Puller puller = new Puller(line);
        stops.add(puller::stop);
        return puller.start();
    }

    private List<String> pushing(Options line) throws Exception {
        Consumers consumers = new Consumers(line);
        List<String> ids = consumers.start();
        if (line.integer("stop-after-ms", 0) > 0) {
            later("stop", () -> {
                Thread.sleep(line.integer("stop-after-ms", 0));
                consumers.stop();
            });
        } else if (line.integer("restart-ms", 0) > 0) {
            later("restart", () -> restart(line, consumers));
        } else {
            stops.add(consumers::stop);
        }
        return ids;
    }

    private void restart(Options line, Consumers first) throws Exception {
        Consumers running = first;
        while (true) {
            Thread.sleep(line.integer("restart-ms", 0));
            running.stop();
            Thread.sleep(line.integer("restart-ms", 0));
            running = new Consumers(line);
            running.start();
        }
    }

    private interface Work {
        void run() throws Exception;
    }

    private static void later(String name, Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception failure) {
                failure.printStackTrace();
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }

    private void stop() {
        stops.parallelStream().forEach(Runnable::run);
        System.out.println("STOPPED 0");
        System.out.flush();
    }
}
