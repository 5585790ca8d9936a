package dev.consumerplanner.load;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The {@code --flag value} pairs of one run. */
final class Options {
    private final Map<String, String> values;

    private Options(Map<String, String> values) {
        this.values = values;
    }

    static Options parse(String[] arguments, int from) {
        Map<String, String> values = new HashMap<>();
        for (int i = from; i < arguments.length; i += 2) {
            if (!arguments[i].startsWith("--") || i + 1 == arguments.length) {
                throw new IllegalArgumentException("expected --flag value, found " + arguments[i]);
            }
            values.put(arguments[i].substring(2), arguments[i + 1]);
        }
        return new Options(values);
    }

    /** The value of a flag that must be there. */
    String need(String flag) {
        String value = values.get(flag);
        if (value == null) {
            throw new IllegalArgumentException("--" + flag + " is missing");
        }
        return value;
    }

    String get(String flag, String otherwise) {
        return values.getOrDefault(flag, otherwise);
    }

    int integer(String flag, int otherwise) {
        return Integer.parseInt(get(flag, Integer.toString(otherwise)));
    }

    /** The comma-separated values of a flag that must be there. */
    List<String> list(String flag) {
        return List.of(need(flag).split(","));
    }

    /** The comma-separated {@code key=value} pairs of a flag that must be there. */
    Map<String, String> pairs(String flag) {
        Map<String, String> pairs = new HashMap<>();
        for (String pair : list(flag)) {
            int middle = pair.lastIndexOf('=');
            pairs.put(pair.substring(0, middle), pair.substring(middle + 1));
        }
        return pairs;
    }
}
