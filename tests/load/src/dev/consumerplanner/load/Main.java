package dev.consumerplanner.load;

/**
 * Runs real RocketMQ clients for tests: {@code consume}, {@code poll}, {@code fetch}, {@code produce}, {@code send}
 * or {@code ward}, then {@code --flag value ...}.
 */
public final class Main {
    private Main() {
    }

    public static void main(String[] arguments) {
        try {
            run(arguments);
            System.exit(0);
        } catch (Throwable failure) {
            failure.printStackTrace();
            // Threads of a half-started client would keep the process alive, and whoever awaits READY waiting.
            System.exit(1);
        }
    }

    private static void run(String[] arguments) throws Exception {
        if (arguments.length == 0) {
            throw new IllegalArgumentException("expected: consume|poll|fetch|produce|send|ward --flag value ...");
        }
        Options options = Options.parse(arguments, 1);
        switch (arguments[0]) {
            case "consume" -> new Consumers(options).run();
            case "poll" -> new Poller(options).run();
            case "fetch" -> new Fetcher(options).run();
            case "produce" -> new Producer(options).run();
            case "send" -> new Sender(options).run();
            case "ward" -> new Ward(options).run();
            default -> throw new IllegalArgumentException(
                "expected consume, poll, fetch, produce, send or ward, found " + arguments[0]);
        }
    }
}
