// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.util.regex.Pattern;

/** Names of the user's classes as the user wrote them: jshell wraps each into a class of its own. */
final class Names {
    private static final Pattern WRAPPER = Pattern.compile("\\bREPL\\.\\$JShell\\$\\w+?[$.]");

    private Names() {}

    static String plain(String text) {
        return text == null || !text.contains("REPL.$JShell$") ? text : WRAPPER.matcher(text).replaceAll("");
    }
}
