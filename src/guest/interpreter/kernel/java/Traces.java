// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import jdk.jshell.EvalException;
import jdk.jshell.JShellException;
import jdk.jshell.UnresolvedReferenceException;

/** Exceptions of the user's code as Java prints them, without the frames of the kernel and of jshell. */
final class Traces {
    private static final int MOST_FRAMES = 50;

    private Traces() {}

    static CellError thrown(Session session, JShellException exception) {
        List<String> lines = new ArrayList<>();
        String name = name(exception);
        String message = message(session, exception);
        Throwable cause = exception;
        for (int depth = 0; cause != null && depth < 20; depth++, cause = cause.getCause()) {
            lines.add((depth == 0 ? "" : "Caused by: ") + headline(name(cause), message(session, cause)));
            frames(session, cause.getStackTrace(), lines);
        }
        return new CellError(name, message == null ? "" : message, lines);
    }

    /** Thrown outside of a snippet, by a method of the user's that the kernel called. */
    static CellError thrown(Throwable thrown) {
        String name = Names.plain(thrown.getClass().getName());
        String message;
        try {
            message = Names.plain(thrown.getMessage());
        } catch (RuntimeException | StackOverflowError again) {
            message = null;
        }
        List<String> lines = new ArrayList<>(List.of(headline(name, message)));
        StackTraceElement[] stack = thrown.getStackTrace();
        int kernel = 0;
        while (kernel < stack.length && !stack[kernel].getClassName().startsWith("glovebox.")) kernel++;
        frames(null, Arrays.copyOf(stack, kernel), lines);
        return new CellError(name, message == null ? "" : message, lines);
    }

    /** jshell could not load or find what it had compiled. */
    static CellError notRun(Throwable failure) {
        String message = String.valueOf(failure.getMessage());
        return new CellError("LinkageError", message, List.of("LinkageError: " + message));
    }

    private static String name(Throwable exception) {
        if (exception instanceof EvalException) return Names.plain(((EvalException) exception).getExceptionClassName());
        if (exception instanceof UnresolvedReferenceException) return "UnresolvedReferenceException";
        return exception.getClass().getName();
    }

    private static String message(Session session, Throwable exception) {
        if (!(exception instanceof UnresolvedReferenceException)) return Names.plain(exception.getMessage());
        var snippet = ((UnresolvedReferenceException) exception).getSnippet();
        return snippet.name() + " needs what is not declared: " + Diagnostics.missing(session, snippet);
    }

    private static String headline(String name, String message) {
        return message == null ? name : name + ": " + message;
    }

    private static void frames(Session session, StackTraceElement[] stack, List<String> lines) {
        for (int i = 0; i < Math.min(stack.length, MOST_FRAMES); i++) lines.add("\tat " + frame(session, stack[i]));
        if (stack.length > MOST_FRAMES) lines.add("\t... " + (stack.length - MOST_FRAMES) + " more");
    }

    /** A snippet's file is its id behind "#". */
    private static String frame(Session session, StackTraceElement element) {
        String file = element.getFileName();
        if (session == null || file == null || !file.startsWith("#")) return Names.plain(element.toString());
        Session.Place place = session.place(file.substring(1));
        if (place == null) return element.toString();
        String where = "(cell " + place.cell + ":" + (place.line + element.getLineNumber() - 1) + ")";
        String method = element.getMethodName();
        if (method.startsWith("do_it$") || method.isEmpty()) return where;
        if (method.startsWith("lambda$")) return "lambda " + where;
        String owner = element.getClassName();
        return (owner.isEmpty() ? "" : owner + ".") + method + " " + where;
    }
}
