// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Base64;
import java.util.Map;

/** For cells: shows something along the way. A cell needs no import for it. */
public final class Display {
    private static Channel channel;

    private Display() {}

    static void connect(Channel to) {
        channel = to;
    }

    /** Shows a value as it would be shown as a cell's result. */
    public static void show(Object value) throws Exception {
        send(Representations.of(value));
    }

    public static void html(String html) {
        send("text/html", html);
    }

    public static void markdown(String markdown) {
        send("text/markdown", markdown);
    }

    public static void latex(String latex) {
        send("text/latex", latex);
    }

    public static void svg(String svg) {
        send("image/svg+xml", svg);
    }

    public static void png(byte[] png) {
        send("image/png", Base64.getEncoder().encodeToString(png));
    }

    public static void jpeg(byte[] jpeg) {
        send("image/jpeg", Base64.getEncoder().encodeToString(jpeg));
    }

    /** Maps, collections, strings, numbers, booleans and null; anything else is an IllegalArgumentException. */
    public static void json(Object value) {
        send("application/json", value);
    }

    private static void send(String type, Object value) {
        String text = value instanceof String ? (String) value : "";
        send(Map.of("text/plain", type.startsWith("text/") ? text : type, type, value));
    }

    private static void send(Map<String, Object> data) {
        System.out.flush();
        try {
            channel.sendContent("display_data", Map.of("data", data));
        } catch (IOException gone) {
            throw new UncheckedIOException(gone);
        }
    }
}
