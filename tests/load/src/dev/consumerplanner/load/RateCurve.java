package dev.consumerplanner.load;

/** Messages per second over time: straight lines between points, nothing before the first and after the last. */
public final class RateCurve {
    private final double[] seconds;
    private final double[] rates;

    /** Points of the form {@code seconds:rate}, with ascending seconds, from {@code parts[from]} on. */
    public RateCurve(String[] parts, int from) {
        seconds = new double[parts.length - from];
        rates = new double[parts.length - from];
        for (int i = from; i < parts.length; i++) {
            String[] point = parts[i].split(":");
            seconds[i - from] = Double.parseDouble(point[0]);
            rates[i - from] = Double.parseDouble(point[1]);
        }
    }

    /** When the last point lies, in seconds from the start. */
    public double end() {
        return seconds[seconds.length - 1];
    }

    /** How many messages are due from the start until {@code now} seconds: the area under the curve. */
    public double due(double now) {
        double area = 0;
        for (int i = 1; i < seconds.length && seconds[i - 1] < now; i++) {
            double span = seconds[i] - seconds[i - 1];
            double until = Math.min(now, seconds[i]) - seconds[i - 1];
            // Two points at the same second are a jump; they enclose no area.
            double rate = span > 0 ? rates[i - 1] + (rates[i] - rates[i - 1]) * until / span : rates[i];
            area += until * (rates[i - 1] + rate) / 2;
        }
        return area;
    }
}
