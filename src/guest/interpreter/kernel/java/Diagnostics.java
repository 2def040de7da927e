package glovebox;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import jdk.jshell.DeclarationSnippet;
import jdk.jshell.Diag;
import jdk.jshell.Snippet;

/** What the compiler objects to, with the line of the cell and a marker below it. */
final class Diagnostics {
    private static final int MOST_SHOWN = 20;

    private Diagnostics() {}

    static CellError rejected(Session session, Snippet snippet, String source, long cell, int firstLine) {
        List<Diag> errors = new ArrayList<>();
        if (snippet != null) session.shell().diagnostics(snippet).filter(Diag::isError).forEach(errors::add);
        if (errors.isEmpty()) return error("the code is not complete", List.of());
        List<String> lines = new ArrayList<>();
        for (Diag diag : errors.subList(0, Math.min(errors.size(), MOST_SHOWN)))
            lines.addAll(marked(diag, source, cell, firstLine));
        return error(message(errors.get(0)), lines);
    }

    static CellError unresolved(Session session, DeclarationSnippet snippet, String source, long cell, int firstLine) {
        List<Diag> errors = session.shell().diagnostics(snippet).filter(Diag::isError).collect(Collectors.toList());
        if (!errors.isEmpty()) return rejected(session, snippet, source, cell, firstLine);
        return error(snippet.name() + " needs what is not declared: " + missing(session, snippet), List.of());
    }

    /** Such as "method f(int), class C". */
    static String missing(Session session, DeclarationSnippet snippet) {
        String names = session.shell().unresolvedDependencies(snippet).collect(Collectors.joining(", "));
        if (!names.isEmpty()) return names;
        return session.shell().diagnostics(snippet).filter(Diag::isError).map(Diagnostics::message)
            .collect(Collectors.joining("; "));
    }

    private static CellError error(String message, List<String> lines) {
        return new CellError("CompilationError", message,
            lines.isEmpty() ? List.of("CompilationError: " + message) : lines);
    }

    /** Without the place, which is a class that jshell wraps around the code. */
    private static String message(Diag diag) {
        return diag.getMessage(Locale.ENGLISH).lines().filter(line -> !line.strip().startsWith("location:"))
            .collect(Collectors.joining("\n"));
    }

    private static List<String> marked(Diag diag, String source, long cell, int firstLine) {
        int at = (int) Math.max(0, Math.min(diag.getPosition(), source.length()));
        int begin = source.lastIndexOf('\n', at - 1) + 1;
        int newline = source.indexOf('\n', at);
        String text = source.substring(begin, newline < 0 ? source.length() : newline);
        int from = (int) Math.max(begin, Math.min(diag.getStartPosition(), at));
        int to = (int) Math.min(begin + text.length(), Math.max(diag.getEndPosition(), at + 1));
        StringBuilder marker = new StringBuilder();
        for (int i = begin; i < Math.max(to, at + 1); i++)
            marker.append(i == at ? '^' : i >= from ? '-' : text.charAt(i - begin) == '\t' ? '\t' : ' ');
        long line = firstLine + source.substring(0, at).chars().filter(c -> c == '\n').count();
        return List.of("cell " + cell + ", line " + line + ": error: " + message(diag), "    " + text, "    " + marker);
    }
}
