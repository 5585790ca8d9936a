import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * Answers Kafka requests of {@code planner allocate}, one JSON line each, by calling the real assignor classes. A blank
 * line is answered by a blank line and flushes. A request with {@code bench} is answered by how long one call takes.
 */
@SuppressWarnings("unchecked")
public final class KafkaOracle {
    private static final long WARM_UP_NANOS = 1_500_000_000L;
    private static final int FEWEST_RUNS = 5;

    private KafkaOracle() {
    }

    /** One request, ready to be computed as often as wanted. */
    interface Question {
        /** Does what must happen before each call and is not part of it. */
        default void prepare() {
        }

        /** Calls the real class. */
        Object call() throws Exception;

        /** Returns what the class answered: member id to its partitions. */
        Map<String, List<Partition>> answer(Object called);
    }

    /** A partition as it is written out. */
    static final class Partition {
        final String topic;
        final int number;

        Partition(String topic, int number) {
            this.topic = topic;
            this.number = number;
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isEmpty()) {
                out.print('\n');
                out.flush();
            } else {
                out.print(answer((Map<String, Object>) Json.parse(line)));
                out.print('\n');
            }
        }
        out.flush();
    }

    private static String answer(Map<String, Object> request) {
        StringBuilder out = new StringBuilder();
        try {
            Question question = question(request);
            if (request.containsKey("bench")) {
                return bench(question, (Long) request.get("bench"));
            }
            question.prepare();
            write(out, question.answer(question.call()));
        } catch (Throwable problem) {
            out.setLength(0);
            out.append("{\"error\":");
            Json.write(out, String.valueOf(problem));
            out.append('}');
        }
        return out.toString();
    }

    private static Question question(Map<String, Object> request) throws Exception {
        String strategy = (String) request.get("strategy");
        if (!strategy.equals("uniform") && !strategy.equals("range-server")) {
            return new ClientQuestion(request);
        }
        try {
            return (Question) Class.forName("ServerQuestion").getDeclaredConstructor(Map.class).newInstance(request);
        } catch (InvocationTargetException wrapped) {
            throw wrapped.getCause() instanceof Exception ? (Exception) wrapped.getCause() : wrapped;
        }
    }

    /**
     * Runs the question for a while to warm up, then for the wanted milliseconds; answers the median in nanoseconds of
     * this thread's processor time, so that a busy machine does not count.
     */
    private static String bench(Question question, long milliseconds) throws Exception {
        run(question, WARM_UP_NANOS);
        long[] nanos = run(question, milliseconds * 1_000_000L);
        Arrays.sort(nanos);
        return "{\"nanos\":" + nanos[nanos.length / 2] + ",\"runs\":" + nanos.length + "}";
    }

    private static long[] run(Question question, long nanosLong) throws Exception {
        long[] nanos = new long[1_000_000];
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        int runs = 0;
        long spent = 0;
        while (runs < nanos.length && (spent < nanosLong || runs < FEWEST_RUNS)) {
            question.prepare();
            long start = clock.getCurrentThreadCpuTime();
            question.call();
            nanos[runs] = clock.getCurrentThreadCpuTime() - start;
            spent += nanos[runs++];
        }
        return Arrays.copyOf(nanos, runs);
    }

    private static void write(StringBuilder out, Map<String, List<Partition>> assignment) {
        out.append('{');
        String gap = "";
        for (Map.Entry<String, List<Partition>> entry : assignment.entrySet()) {
            out.append(gap);
            Json.write(out, entry.getKey());
            out.append(":[");
            String comma = "";
            for (Partition partition : entry.getValue()) {
                out.append(comma).append('[');
                Json.write(out, partition.topic);
                out.append(',').append(partition.number).append(']');
                comma = ",";
            }
            out.append(']');
            gap = ",";
        }
        out.append('}');
    }
}
