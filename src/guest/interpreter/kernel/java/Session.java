// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadPoolExecutor;
import jdk.jshell.JShell;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis;

/** One jshell with its definitions, and where in which cell each came from. */
final class Session {
    private static final String[] IMPORTS = {
        "java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.util.*", "java.util.concurrent.*",
        "java.util.function.*", "java.util.prefs.*", "java.util.regex.*", "java.util.stream.*", "glovebox.*",
    };

    // One of each kind of thing that cells do: the first real cell then finds the compiler loaded and warm.
    private static final String WARM_UP = """
        int warm$count = 0;
        record Warm$Pair(String name, int size) {}
        class Warm$Class { private final List<String> names = new ArrayList<>(); int size() { return names.size(); } }
        String warm$method(int x) { return String.format("%d %s", x, "warm"); }
        for (int i = 0; i < 3; i++) { warm$count += warm$method(i).length(); }
        var warm$map = new HashMap<String, List<Integer>>(Map.of("a", List.of(1)));
        System.out.print("");
        if (warm$count < 0) { System.err.println(new Warm$Class().size()); }
        Stream.of("b", "a").sorted().map(s -> new Warm$Pair(s, s.length())).collect(Collectors.toList())
        """;

    private final UserThread thread;
    private final UserCodeControl control;
    private final JShell shell;
    private final SourceCodeAnalysis analysis;
    private final Map<String, Place> places = new HashMap<>();

    /** Where a snippet begins: the cell's number and the line in it, from 1. */
    static final class Place {
        final long cell;
        final int line;

        Place(long cell, int line) {
            this.cell = cell;
            this.line = line;
        }
    }

    Session(UserThread thread) {
        this.thread = thread;
        control = new UserCodeControl(thread);
        shell = JShell.builder()
            .executionEngine(control.provider(), Map.of())
            .compilerOptions("-proc:none")
            .build();
        leaveOutCompletionIndex();
        analysis = shell.sourceCodeAnalysis();
        for (String name : IMPORTS) shell.eval("import " + name + ";");
    }

    JShell shell() {
        return shell;
    }

    SourceCodeAnalysis analysis() {
        return analysis;
    }

    UserCodeControl control() {
        return control;
    }

    /** The events of one snippet that begins at `place`. */
    List<SnippetEvent> evaluate(String source, Place place) {
        List<SnippetEvent> events = shell.eval(source);
        for (SnippetEvent event : events)
            if (event.causeSnippet() == null) places.put(event.snippet().id(), place);
        return events;
    }

    /** Null for a snippet that no cell holds. */
    Place place(String snippetId) {
        return places.get(snippetId);
    }

    void warmUp() {
        List<Snippet> before = List.of(shell.snippets().toArray(Snippet[]::new));
        thread.begin();
        try {
            new Cell(this, thread, 0, WARM_UP).run();
        } catch (CellError unexpected) {
            System.err.println("kernel: not warmed up: " + unexpected.getMessage());
        } finally {
            thread.end();
        }
        try {
            new Cell(this, thread, 0, "warm$unknown()").run();
        } catch (CellError expected) {
            // Diagnostics are warm too.
        }
        for (Snippet snippet : List.of(shell.snippets().toArray(Snippet[]::new)))
            if (!before.contains(snippet)) shell.drop(snippet);
        places.clear();
    }

    /** Completion is never asked for, and its index of every class of the JDK costs seconds and memory. */
    private static void leaveOutCompletionIndex() {
        try {
            Field field = Internals.field("jdk.jshell.SourceCodeAnalysisImpl", "INDEXER");
            ThreadPoolExecutor indexer = (ThreadPoolExecutor) field.get(null);
            indexer.setRejectedExecutionHandler(new ThreadPoolExecutor.DiscardPolicy());
            indexer.shutdown();
        } catch (ReflectiveOperationException | RuntimeException builtDifferently) {
            System.err.println("kernel: completion is indexed: " + builtDifferently);
        }
    }
}
