// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.util.Collection;
import java.util.Map;

/** Writes one line of JSON that is also valid UTF-8: half a surrogate pair becomes U+FFFD. */
final class JsonWriter {
    private final StringBuilder out;

    JsonWriter(StringBuilder out) {
        this.out = out;
    }

    void write(Object value, int depth) {
        if (depth > Json.MAX_DEPTH) throw new IllegalArgumentException("nested too deeply for JSON");
        if (value == null || value instanceof Boolean) out.append(value);
        else if (value instanceof String || value instanceof Character) string(value.toString());
        else if (value instanceof Number) number((Number) value);
        else if (value instanceof Map) object((Map<?, ?>) value, depth);
        else if (value instanceof Collection) array((Collection<?>) value, depth);
        else throw new IllegalArgumentException("not a value of JSON: " + value.getClass().getName());
    }

    private void object(Map<?, ?> members, int depth) {
        char before = '{';
        for (Map.Entry<?, ?> member : members.entrySet()) {
            out.append(before);
            before = ',';
            string(String.valueOf(member.getKey()));
            out.append(':');
            write(member.getValue(), depth + 1);
        }
        out.append(before == '{' ? "{}" : "}");
    }

    private void array(Collection<?> items, int depth) {
        char before = '[';
        for (Object item : items) {
            out.append(before);
            before = ',';
            write(item, depth + 1);
        }
        out.append(before == '[' ? "[]" : "]");
    }

    private void number(Number value) {
        if (value instanceof Double && !Double.isFinite((Double) value)
            || value instanceof Float && !Float.isFinite((Float) value))
            throw new IllegalArgumentException("JSON has no " + value);
        if (!value.getClass().getName().startsWith("java.")) throw new IllegalArgumentException("an unknown number");
        out.append(value);
    }

    private void string(String text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') out.append('\\').append(c);
            else if (c < 0x20) control(c);
            else if (!Character.isSurrogate(c)) out.append(c);
            else if (i + 1 < text.length() && Character.isSurrogatePair(c, text.charAt(i + 1)))
                out.append(c).append(text.charAt(++i));
            else out.append('\ufffd');
        }
        out.append('"');
    }

    private void control(char c) {
        String digits = "0123456789abcdef";
        out.append("\\u00").append(digits.charAt(c >> 4)).append(digits.charAt(c & 15));
    }
}
