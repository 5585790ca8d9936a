package dev.consumerplanner.load.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** Fields of an order as the types that clients want. */
final class Fields {
    private Fields() {
    }

    static List<String> texts(JsonNode array) {
        List<String> texts = new ArrayList<>();
        array.forEach(one -> texts.add(one.asText()));
        return texts;
    }

    static Properties properties(JsonNode object) {
        Properties properties = new Properties();
        object.fields().forEachRemaining(field -> properties.put(field.getKey(), field.getValue().asText()));
        return properties;
    }
}
