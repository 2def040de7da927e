package glovebox;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import jdk.jshell.DeclarationSnippet;
import jdk.jshell.JShellException;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis.Completeness;
import jdk.jshell.SourceCodeAnalysis.CompletionInfo;

/** One execution: the snippets of a cell one after another, up to the first that fails. */
final class Cell {
    private final Session session;
    private final UserThread thread;
    private final long number;
    private final List<Snippet> unresolved = new ArrayList<>();
    private Map<String, Object> result;

    Cell(Session session, UserThread thread, long number) {
        this.session = session;
        this.thread = thread;
        this.number = number;
    }

    /** Representations of the last expression's value; null when there is none. */
    Map<String, Object> result() {
        return result;
    }

    void run(String code) throws CellError {
        String rest = code;
        int line = 1;
        Snippet last = null;
        try {
            while (true) {
                CompletionInfo info = session.analysis().analyzeCompletion(rest);
                if (info.completeness() == Completeness.EMPTY) break;
                boolean incomplete = info.completeness() == Completeness.DEFINITELY_INCOMPLETE;
                String source = incomplete || info.source() == null ? rest : info.source();
                last = evaluate(source, line);
                if (incomplete || info.remaining() == null || info.remaining().length() >= rest.length()) break;
                line += lines(rest.substring(0, rest.length() - info.remaining().length()));
                rest = info.remaining();
            }
            if (last != null && hasResult(last)) render();
        } catch (StackOverflowError nested) {
            throw new CellError("CompilationError", "the code is nested too deeply",
                List.of("CompilationError: the code is nested too deeply"));
        }
        noteUnresolved();
    }

    private Snippet evaluate(String source, int line) throws CellError {
        session.control().takeValue();
        session.control().takeFailure();
        SnippetEvent main = null;
        for (SnippetEvent event : session.evaluate(source, new Session.Place(number, line)))
            if (event.causeSnippet() == null) main = event;
        if (thread.interrupted()) throw CellError.interrupted();
        if (main == null) throw Diagnostics.rejected(session, null, source, number, line);
        Snippet snippet = main.snippet();
        switch (main.status()) {
            case REJECTED:
                throw Diagnostics.rejected(session, snippet, source, number, line);
            case RECOVERABLE_DEFINED:
            case RECOVERABLE_NOT_DEFINED:
                // Its initialiser was not run: what follows would go on with a variable that has no value.
                if (snippet.kind() == Snippet.Kind.VAR)
                    throw Diagnostics.unresolved(session, (DeclarationSnippet) snippet, source, number, line);
                unresolved.add(snippet);
                break;
            default:
                break;
        }
        if (main.exception() != null) throw Traces.thrown(session, main.exception());
        Throwable failure = session.control().takeFailure();
        if (failure != null) throw Traces.notRun(failure);
        return snippet;
    }

    private static int lines(String text) {
        return (int) text.chars().filter(c -> c == '\n').count();
    }

    private static boolean hasResult(Snippet snippet) {
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
