// SPDX-License-Identifier: Apache-2.0
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

/**
 * The two pipes to the server. Any thread may send; answers name the request at work. A reply is the last of them:
 * what comes later, from threads that live on, belongs to no request and is left out.
 */
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

    synchronized void send(Map<String, ?> message) throws IOException {
        answers.write((Json.write(message) + "\n").getBytes(StandardCharsets.UTF_8));
    }

    synchronized void sendContent(String type, Map<String, ?> content) throws IOException {
        if (replied) return;
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

    /** The code asked the process to exit with `status`. */
    synchronized void replyExit(int status) throws IOException {
        if (status != 0) sendContent("error", CellError.exited(status).content());
        sendContent("reply", Map.of("status", status == 0 ? "ok" : "error", "exit", true));
        replied = true;
    }
}
