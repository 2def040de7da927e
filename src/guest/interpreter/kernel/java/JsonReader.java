// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** RFC 8259, strictly. */
final class JsonReader {
    private static final Pattern NUMBER = Pattern.compile("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?");

    private final String text;
    private int at;

    JsonReader(String text) {
        this.text = text;
    }

    Object document() {
        Object value = value(0);
        skipSpace();
        if (at != text.length()) throw error("text after the value");
        return value;
    }

    private Object value(int depth) {
        if (depth > Json.MAX_DEPTH) throw error("nested too deeply");
        skipSpace();
        switch (peek()) {
            case '{': return object(depth);
            case '[': return array(depth);
            case '"': return string();
            case 't': return word("true", true);
            case 'f': return word("false", false);
            case 'n': return word("null", null);
            default: return number();
        }
    }

    private Map<String, Object> object(int depth) {
        Map<String, Object> members = new LinkedHashMap<>();
        at++;
        skipSpace();
        if (take('}')) return members;
        do {
            skipSpace();
            String name = string();
            skipSpace();
            expect(':');
            members.put(name, value(depth + 1));
            skipSpace();
        } while (take(','));
        expect('}');
        return members;
    }

    private List<Object> array(int depth) {
        List<Object> items = new ArrayList<>();
        at++;
        skipSpace();
        if (take(']')) return items;
        do {
            items.add(value(depth + 1));
            skipSpace();
        } while (take(','));
        expect(']');
        return items;
    }

    private String string() {
        expect('"');
        StringBuilder out = new StringBuilder();
        while (true) {
            char c = next();
            if (c == '"') return out.toString();
            if (c < 0x20) throw error("a control character in a string");
            out.append(c == '\\' ? escaped() : c);
        }
    }

    private char escaped() {
        char c = next();
        switch (c) {
            case '"': case '\\': case '/': return c;
            case 'b': return '\b';
            case 'f': return '\f';
            case 'n': return '\n';
            case 'r': return '\r';
            case 't': return '\t';
            case 'u': return unit();
            default: throw error("an unknown escape");
        }
    }

    private char unit() {
        int value = 0;
        for (int i = 0; i < 4; i++) {
            char c = next();
            int digit = c < 128 ? Character.digit(c, 16) : -1;
            if (digit < 0) throw error("an escape that is not hexadecimal");
            value = value * 16 + digit;
        }
        return (char) value;
    }

    private Object number() {
        Matcher matcher = NUMBER.matcher(text).region(at, text.length());
        if (!matcher.lookingAt()) throw error("a value was expected");
        at = matcher.end();
        String digits = matcher.group();
        if (matcher.group(2) == null && matcher.group(3) == null && digits.length() < 18) return Long.valueOf(digits);
        return new BigDecimal(digits);
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) throw error("a value was expected");
        at += word.length();
        return value;
    }

    private void skipSpace() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
    }

    private char peek() {
        if (at == text.length()) throw error("the text ends early");
        return text.charAt(at);
    }

    private char next() {
        char c = peek();
        at++;
        return c;
    }

    private boolean take(char c) {
        if (at == text.length() || text.charAt(at) != c) return false;
        at++;
        return true;
    }

    private void expect(char c) {
        if (!take(c)) throw error("'" + c + "' was expected");
    }

    private IllegalArgumentException error(String what) {
        return new IllegalArgumentException(what + " at position " + at);
    }
}
