// SPDX-License-Identifier: Apache-2.0
package glovebox;

import glovebox.Parts.Part;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import jdk.jshell.DeclarationSnippet;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;

/** One execution: the snippets of a cell one after another, up to the first that fails. */
final class Cell {
    private final Session session;
    private final UserThread thread;
    private final long number;
    private final String code;
    private final List<Snippet> unresolved = new ArrayList<>();
    private Map<String, Object> result;

    Cell(Session session, UserThread thread, long number, String code) {
        this.session = session;
        this.thread = thread;
        this.number = number;
        this.code = code;
    }

    /** Representations of the last expression's value; null when there is none. */
    Map<String, Object> result() {
        return result;
    }

    long number() {
        return number;
    }

    String code() {
        return code;
    }

    /** The line that `offset` is on, from 1. */
    int line(int offset) {
        return 1 + (int) code.substring(0, offset).chars().filter(c -> c == '\n').count();
    }

    void run() throws CellError {
        try {
            List<Part> parts = Parts.of(code, session.analysis());
            for (int at = 0; at < parts.size();) {
                int statements = Parts.block(parts, at);
                if (statements > 1 && ranAsBlock(parts.subList(at, at + statements))) {
                    at += statements;
                    continue;
                }
                // A block that does not compile is run one by one, up to the part that is at fault.
                for (int end = at + Math.max(1, statements); at < end; at++) {
                    Snippet snippet = evaluate(parts.get(at));
                    if (at == parts.size() - 1 && hasResult(snippet, parts.get(at))) render();
                }
            }
        } catch (StackOverflowError | InternalError | IllegalStateException ofCompiler) {
            String message = "the compiler failed: " + ofCompiler.getMessage();
            throw new CellError("CompilationError", message, List.of("CompilationError: " + message));
        }
        noteUnresolved();
    }

    private boolean ranAsBlock(List<Part> parts) throws CellError {
        int from = parts.get(0).offset();
        Part last = parts.get(parts.size() - 1);
        String source = "{" + code.substring(from, last.offset()) + last.source() + "\n}";  // the lines stay the same
        SnippetEvent event = event(source, from);
        if (event == null || event.status() == Snippet.Status.REJECTED) return false;
        check(event);
        return true;
    }

    /** The event of the snippet itself. */
    private SnippetEvent event(String source, int offset) throws CellError {
        session.control().takeValue();
        session.control().takeFailure();
        SnippetEvent main = null;
        for (SnippetEvent event : session.evaluate(source, new Session.Place(number, line(offset))))
            if (event.causeSnippet() == null) main = event;
        if (thread.interrupted()) throw CellError.interrupted();
        return main;
    }

    private void check(SnippetEvent event) throws CellError {
        if (event.exception() != null) throw Traces.thrown(session, event.exception());
        Throwable failure = session.control().takeFailure();
        if (failure != null) throw Traces.notRun(failure);
    }

    private Snippet evaluate(Part part) throws CellError {
        SnippetEvent event = event(part.source(), part.offset());
        if (event == null) throw Diagnostics.rejected(session, null, this, part.offset());
        Snippet snippet = event.snippet();
        switch (event.status()) {
            case REJECTED:
                throw Diagnostics.rejected(session, snippet, this, part.offset());
            case RECOVERABLE_DEFINED:
            case RECOVERABLE_NOT_DEFINED:
                // Its initialiser was not run: what follows would go on with a variable that has no value.
                if (snippet.kind() == Snippet.Kind.VAR)
                    throw Diagnostics.unresolved(session, (DeclarationSnippet) snippet, this, part.offset());
                unresolved.add(snippet);
                break;
            default:
                break;
        }
        check(event);
        return snippet;
    }

    private static boolean hasResult(Snippet snippet, Part part) {
        if (part.isAssignment()) return false;
        switch (snippet.subKind()) {
            case VAR_VALUE_SUBKIND:
            case TEMP_VAR_EXPRESSION_SUBKIND:
            case OTHER_EXPRESSION_SUBKIND:
                return true;
            default:
                return false;
        }
    }

    private void render() throws CellError {
        Object value = session.control().takeValue();
        try {
            result = thread.call(() -> Representations.of(value));  // the user's toString() may do anything
        } catch (UserThread.Interrupted interrupted) {
            throw CellError.interrupted();
        } catch (Throwable thrown) {
            throw Traces.thrown(thrown);
        }
    }

    /** A later cell may declare what is missing, as jshell allows; a misspelt name would otherwise stay unseen. */
    private void noteUnresolved() {
        for (Snippet snippet : unresolved) {
            switch (session.shell().status(snippet)) {
                case RECOVERABLE_DEFINED:
                case RECOVERABLE_NOT_DEFINED:
                    DeclarationSnippet declaration = (DeclarationSnippet) snippet;
                    System.err.println("note: " + declaration.name() + " cannot be used until these are declared: "
                        + Diagnostics.missing(session, declaration));
                    break;
                default:
                    break;
            }
        }
    }
}
