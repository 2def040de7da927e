// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.io.IOException;
import java.util.List;
import java.util.Map;

/**
 * A Java kernel over jshell. Requests come from descriptor 3 and are answered on descriptor 4, one JSON object per
 * line, strictly one after another; what the user's code prints goes to descriptors 1 and 2.
 */
final class Kernel {
    // The compiler recurses over expressions: the default megabyte ends at a sum of a few thousand terms.
    private static final long STACK_BYTES = 16L << 20;

    private final Channel channel;
    private final Output output;
    private final UserThread userThread = new UserThread();
    private final Environment environment = new Environment();
    private final Reseed reseed = new Reseed();
    private final Session session;

    private Kernel() throws IOException {
        output = new Output();
        userThread.interruptBySignal();  // first of all: the default action would end the process
        channel = new Channel();
        Display.connect(channel);
        Exit.reportTo(channel, output);
        session = new Session(userThread);
        session.warmUp();
        output.renew();  // what the warm-up may have done to the streams
    }

    public static void main(String[] arguments) {
        new Thread(null, Kernel::serve, "kernel", STACK_BYTES).start();
    }

    private static void serve() {
        try {
            Kernel kernel = new Kernel();
            kernel.channel.send(Map.of("type", "ready"));
            for (String line; (line = kernel.channel.receive()) != null;) kernel.answer(line);
            System.exit(0);
        } catch (Throwable failure) {
            failure.printStackTrace();
            Runtime.getRuntime().halt(70);
        }
    }

    private void answer(String line) throws IOException {
        Map<String, Object> request;
        try {
            request = Json.object(Json.parse(line));
            channel.begin(Json.string(request.get("id")));
        } catch (IllegalArgumentException malformed) {
            System.err.println("kernel: request not understood: " + malformed.getMessage());
            return;
        }
        boolean ok;
        try {
            ok = handle(request);
        } catch (Throwable failure) {
            ok = refuse(failure);
        }
        output.flush();
        channel.reply(ok);
    }

    private boolean handle(Map<String, Object> request) throws IOException {
        String type = Json.string(request.get("type"));
        switch (type) {
            case "execute":
                return execute(request);
            case "enter_generation": {
                Map<String, Object> argument = Json.object(request.get("argument"));
                if (Boolean.TRUE.equals(argument.get("reseed"))) reseed.reseed();
                environment.ofSandbox(Json.object(argument.getOrDefault("env", Map.of())));
                return true;
            }
            case "set_call_env":
                environment.ofCall(Json.object(request.get("argument")));
                return true;
            default:
                throw new IllegalArgumentException("unknown request " + type);
        }
    }

    private boolean execute(Map<String, Object> request) throws IOException {
        String code = Json.string(request.get("code"));
        Object count = request.get("count");
        output.renew();
        Cell cell = new Cell(session, userThread, count instanceof Number ? ((Number) count).longValue() : 0, code);
        CellError error = null;
        userThread.begin();
        try {
            cell.run();
        } catch (CellError failed) {
            error = failed;
        } finally {
            if (userThread.end()) error = CellError.interrupted();
        }
        output.flush();  // before the answer that concludes it
        if (error != null) channel.sendContent("error", error.content());
        else if (cell.result() != null) channel.sendContent("execute_result", Map.of("data", cell.result()));
        return error == null;
    }

    /** A failure of the kernel's own or the compiler's, such as for memory that the user's threads hold. */
    private boolean refuse(Throwable failure) throws IOException {
        String message = String.valueOf(failure.getMessage());
        channel.sendContent("error", new CellError(failure.getClass().getName(), message,
            List.of(failure.toString())).content());
        return false;
    }
}
