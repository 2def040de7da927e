// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.util.Map;

/** JSON as maps, lists, strings, numbers, booleans and null. What does not fit is an IllegalArgumentException. */
final class Json {
    static final int MAX_DEPTH = 100;

    private Json() {}

    static Object parse(String text) {
        return new JsonReader(text).document();
    }

    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        new JsonWriter(out).write(value, 0);
        return out.toString();
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) {
        if (!(value instanceof Map)) throw new IllegalArgumentException("an object was expected");
        return (Map<String, Object>) value;
    }

    static String string(Object value) {
        if (!(value instanceof String)) throw new IllegalArgumentException("a string was expected");
        return (String) value;
    }
}
