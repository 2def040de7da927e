// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import jdk.jshell.SourceCodeAnalysis;
import jdk.jshell.SourceCodeAnalysis.Completeness;
import jdk.jshell.SourceCodeAnalysis.CompletionInfo;

/**
 * A cell cut into what jshell takes one at a time. jshell compiles each by itself, which is most of what a cell of
 * plain statements costs; so statements in a row are offered as one block, too.
 */
final class Parts {
    private static final int LONGEST_BLOCK = 16_000;  // a method of the JVM has 64 KiB of code at most
    private static final String QUALIFIED = "[\\w$]+(\\s*\\.\\s*[\\w$]+)*";

    // Statements without doubt: anything that could declare something is not among them.
    private static final Pattern STATEMENT = Pattern.compile("(for|while|if|try|synchronized)\\b.*|\\{.*|" + QUALIFIED
        + "\\s*(\\(.*|\\+\\+;|--;)", Pattern.DOTALL);
    // Such as "a[i] += 1": jshell calls it an expression like any other.
    private static final Pattern ASSIGNMENT = Pattern.compile(QUALIFIED
        + "(\\[([^\\[\\]\"']|\\[[^\\[\\]\"']*\\])*\\])*\\s*([-+*/%&|^]|<<|>>>?)?=(?!=)");

    /** A snippet, which begins at `offset` of the code. */
    record Part(String source, int offset) {
        boolean isAssignment() {
            return ASSIGNMENT.matcher(source).lookingAt();
        }

        private boolean isStatement() {
            return STATEMENT.matcher(source).matches() || isAssignment();
        }

        private int end() {
            return offset + source.length();
        }
    }

    private Parts() {}

    static List<Part> of(String code, SourceCodeAnalysis analysis) {
        List<Part> parts = new ArrayList<>();
        int at = 0;
        while (true) {
            // jshell counts a snippet's lines from its first that is not blank.
            while (at < code.length() && Character.isWhitespace(code.charAt(at))) at++;
            String rest = code.substring(at);
            CompletionInfo info = analysis.analyzeCompletion(rest);
            if (info.completeness() == Completeness.EMPTY) return parts;
            boolean whole = info.completeness() == Completeness.DEFINITELY_INCOMPLETE || info.source() == null;
            parts.add(new Part(whole ? rest : info.source(), at));
            int remaining = whole || info.remaining() == null ? 0 : info.remaining().length();
            if (remaining == rest.length()) return parts;  // nothing was taken: it would be so for ever
            at = code.length() - remaining;
        }
    }

    /**
     * How many parts from the one at `first` on are statements that may be one block. The last part, which may be the
     * cell's result, is never among them.
     */
    static int block(List<Part> parts, int first) {
        int end = first;
        while (end < parts.size() - 1 && parts.get(end).isStatement()
            && parts.get(end).end() - parts.get(first).offset() < LONGEST_BLOCK) end++;
        return end - first;
    }
}
