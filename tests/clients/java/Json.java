import java.util.Collection;
import java.util.stream.Collectors;

/** The little JSON that the drivers print. */
final class Json {
    private Json() {
    }

    static String string(String text) {
        if (text == null) {
            return "null";
        }
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    /** An array of values that are JSON already. */
    static String array(Collection<String> values) {
        return values.stream().collect(Collectors.joining(",", "[", "]"));
    }
}
