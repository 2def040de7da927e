// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.util.List;
import java.util.Map;

/** How a cell failed: the content of an `error` answer. */
final class CellError extends Exception {
    private static final long serialVersionUID = 1;

    private final String name;
    private final String value;
    private final List<String> traceback;

    CellError(String name, String value, List<String> traceback) {
        super(name + ": " + value, null, false, false);
        this.name = name;
        this.value = value;
        this.traceback = traceback;
    }

    static CellError interrupted() {
        return new CellError("KeyboardInterrupt", "", List.of("KeyboardInterrupt"));
    }

    static CellError exited(int status) {
        return new CellError("ExitCode", Integer.toString(status), List.of("System.exit(" + status + ")"));
    }

    Map<String, Object> content() {
        return Map.of("ename", name, "evalue", value, "traceback", traceback);
    }
}
