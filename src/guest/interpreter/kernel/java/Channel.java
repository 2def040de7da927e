package glovebox;

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** The two pipes to the server. Any thread may send; the answers name the request that is, or was last, at work. */
final class Channel {
    private final BufferedReader requests;
    private final OutputStream answers;
    private String request;
    private boolean replied = true;

    /** Child processes do not inherit these: the JDK closes every descriptor above 2 for them. */
    Channel() throws IOException {
        requests = new BufferedReader(new InputStreamReader(new FileInputStream("/dev/fd/3"), StandardCharsets.UTF_8));
        answers = new FileOutputStream("/dev/fd/4");
    }

    /** The next line, null at the end. Only the kernel's thread calls it. */
    String receive() throws IOException {
        return requests.readLine();
    }

    synchronized void begin(String id) {
        request = id;
        replied = false;
    }

    synchronized boolean atWork() {
        return !replied;
    }

    synchronized void send(Map<String, ?> message) throws IOException {
        answers.write((Json.write(message) + "\n").getBytes(StandardCharsets.UTF_8));
    }

    /** Left out before the first request: there is nobody to show it to. */
    synchronized void sendContent(String type, Map<String, ?> content) throws IOException {
        if (request == null) return;
        Map<String, Object> message = new LinkedHashMap<>();
        message.put("id", request);
        message.put("type", type);
        message.put("content", content);
        send(message);
    }

    synchronized void reply(boolean ok) throws IOException {
        sendContent("reply", Map.of("status", ok ? "ok" : "error"));
        replied = true;
    }

    synchronized void replyExit(boolean ok) throws IOException {
        sendContent("reply", Map.of("status", ok ? "ok" : "error", "exit", true));
        replied = true;
    }
}
