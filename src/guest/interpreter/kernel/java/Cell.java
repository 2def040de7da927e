package glovebox;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import jdk.jshell.DeclarationSnippet;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis.Completeness;
import jdk.jshell.SourceCodeAnalysis.CompletionInfo;

/** One execution: the snippets of a cell one after another, up to the first that fails. */
final class Cell {
    // Such as "a[i] += 1": jshell calls it an expression like any other.
    private static final Pattern ASSIGNMENT =
        Pattern.compile("[\\w.$]+(\\[([^\\[\\]\"']|\\[[^\\[\\]\"']*\\])*\\])*\\s*([-+*/%&|^]|<<|>>>?)?=(?!=)");

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
        Snippet last = null;
        try {
            int at = 0;
            while (true) {
                // jshell counts a snippet's lines from its first that is not blank.
                while (at < code.length() && Character.isWhitespace(code.charAt(at))) at++;
                String rest = code.substring(at);
                CompletionInfo info = session.analysis().analyzeCompletion(rest);
                if (info.completeness() == Completeness.EMPTY) break;
                boolean whole = info.completeness() == Completeness.DEFINITELY_INCOMPLETE || info.source() == null;
                last = evaluate(whole ? rest : info.source(), at);
                int remaining = whole || info.remaining() == null ? 0 : info.remaining().length();
                if (remaining == rest.length()) break;  // nothing was taken: it would be so for ever
                at = code.length() - remaining;
            }
            if (last != null && hasResult(last)) render();
        } catch (StackOverflowError nested) {
            throw new CellError("CompilationError", "the code is nested too deeply",
                List.of("CompilationError: the code is nested too deeply"));
        }
        noteUnresolved();
    }

    private Snippet evaluate(String source, int offset) throws CellError {
        session.control().takeValue();
        session.control().takeFailure();
        SnippetEvent main = null;
        for (SnippetEvent event : session.evaluate(source, new Session.Place(number, line(offset))))
            if (event.causeSnippet() == null) main = event;
        if (thread.interrupted()) throw CellError.interrupted();
        if (main == null) throw Diagnostics.rejected(session, null, this, offset);
        Snippet snippet = main.snippet();
        switch (main.status()) {
            case REJECTED:
                throw Diagnostics.rejected(session, snippet, this, offset);
            case RECOVERABLE_DEFINED:
            case RECOVERABLE_NOT_DEFINED:
                // Its initialiser was not run: what follows would go on with a variable that has no value.
                if (snippet.kind() == Snippet.Kind.VAR)
                    throw Diagnostics.unresolved(session, (DeclarationSnippet) snippet, this, offset);
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

    private static boolean hasResult(Snippet snippet) {
        if (ASSIGNMENT.matcher(snippet.source().strip()).lookingAt()) return false;
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
