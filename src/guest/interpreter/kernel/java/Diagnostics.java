// SPDX-License-Identifier: Apache-2.0
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
    private static final int MOST_COLUMNS = 150;  // on either side of the fault

    private Diagnostics() {}

    /** `snippet` is null when there is none; its text begins at `offset` of the cell's code. */
    static CellError rejected(Session session, Snippet snippet, Cell cell, int offset) {
        List<Diag> errors = new ArrayList<>();
        if (snippet != null) session.shell().diagnostics(snippet).filter(Diag::isError).forEach(errors::add);
        if (errors.isEmpty()) return error("the code is not complete", List.of());
        List<String> lines = new ArrayList<>();
        for (Diag diag : errors.subList(0, Math.min(errors.size(), MOST_SHOWN)))
            lines.addAll(marked(diag, cell, offset));
        return error(message(errors.get(0)), lines);
    }

    static CellError unresolved(Session session, DeclarationSnippet snippet, Cell cell, int offset) {
        if (session.shell().diagnostics(snippet).anyMatch(Diag::isError))
            return rejected(session, snippet, cell, offset);
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
        return Names.plain(diag.getMessage(Locale.ENGLISH)).lines()
            .filter(line -> !line.strip().startsWith("location:"))
            .collect(Collectors.joining("\n"));
    }

    private static List<String> marked(Diag diag, Cell cell, int offset) {
        String code = cell.code();
        int at = (int) Math.min(code.length(), offset + Math.max(0, diag.getPosition()));
        int begin = code.lastIndexOf('\n', at - 1) + 1;
        int newline = code.indexOf('\n', at);
        int end = newline < 0 ? code.length() : newline;
        begin = Math.max(begin, at - MOST_COLUMNS);
        end = Math.min(end, at + MOST_COLUMNS);
        long from = Math.max(begin, Math.min(offset + diag.getStartPosition(), at));
        long to = Math.max(at + 1, Math.min(offset + diag.getEndPosition(), end));
        StringBuilder marker = new StringBuilder();
        for (int i = begin; i < to; i++)
            marker.append(i == at ? '^' : i >= from ? '-' : code.charAt(i) == '\t' ? '\t' : ' ');
        return List.of("cell " + cell.number() + ", line " + cell.line(at) + ": error: " + message(diag),
            "    " + code.substring(begin, end), "    " + marker);
    }
}
