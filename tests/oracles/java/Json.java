import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON of one line to maps, lists, strings, longs and booleans, and back. Made for our own requests: it trusts them. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(String line) {
        return new Json(line).value();
    }

    private Object value() {
        char first = next();
        switch (first) {
            case '{':
                return object();
            case '[':
                return array();
            case '"':
                return string();
            case 't':
                at += 3;
                return Boolean.TRUE;
            case 'f':
                at += 4;
                return Boolean.FALSE;
            case 'n':
                at += 3;
                return null;
            default:
                return number();
        }
    }

    private char next() {
        while (text.charAt(at) == ' ') {
            at++;
        }
        return text.charAt(at++);
    }

    private Map<String, Object> object() {
        Map<String, Object> members = new LinkedHashMap<>();
        char mark = next();
        while (mark != '}') {
            if (mark == ',') {
                next();
            }
            String name = string();
            next();
            members.put(name, value());
            mark = next();
        }
        return members;
    }

    private List<Object> array() {
        List<Object> items = new ArrayList<>();
        char mark = next();
        while (mark != ']') {
            if (mark != ',') {
                at--;
            }
            items.add(value());
            mark = next();
        }
        return items;
    }

    private String string() {
        StringBuilder content = new StringBuilder();
        for (char c = text.charAt(at++); c != '"'; c = text.charAt(at++)) {
            content.append(c == '\\' ? escaped() : c);
        }
        return content.toString();
    }

    private char escaped() {
        char kind = text.charAt(at++);
        switch (kind) {
            case 'u':
                at += 4;
                return (char) Integer.parseInt(text.substring(at - 4, at), 16);
            case 'n':
                return '\n';
            case 't':
                return '\t';
            case 'r':
                return '\r';
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            default:
                return kind;
        }
    }

    private Long number() {
        int start = at - 1;
        while (at < text.length() && "0123456789-".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        return Long.valueOf(text.substring(start, at));
    }

    static void write(StringBuilder out, String content) {
        out.append('"');
        for (int i = 0; i < content.length(); i++) {
            char c = content.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20 || c > 0x7e) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }
}
