// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/**
 * Environment variables laid over the process's own. Code sees them as system properties, by System.getenv and in
 * child processes.
 */
final class Environment {
    // What the JVM says of itself, such as java.home: variables of these names must not change it.
    private final Set<String> ofJvm = Set.copyOf(System.getProperties().stringPropertyNames());
    private final Map<String, String> variables = writable();
    private final NativeEnvironment ofChildren = reachable();
    private final Overlay sandbox = new Overlay();
    private final Overlay call = new Overlay();

    /** Lays the sandbox's variables, in place of those it laid before. */
    void ofSandbox(Map<String, Object> laid) {
        sandbox.lay(laid);
        passToChildren();
    }

    /** Lays variables of one execution; an empty map takes them back. */
    void ofCall(Map<String, Object> laid) {
        call.lay(laid);
        passToChildren();
    }

    private void passToChildren() {
        if (ofChildren == null) return;
        try {
            ofChildren.set(variables);
        } catch (ReflectiveOperationException | RuntimeException failed) {
            System.err.println("kernel: child processes see other variables: " + failed);
        }
    }

    private static NativeEnvironment reachable() {
        try {
            return new NativeEnvironment();
        } catch (ReflectiveOperationException | RuntimeException unreachable) {
            System.err.println("kernel: child processes see no variables of the sandbox: " + unreachable);
            return null;
        }
    }

    /** The map behind System.getenv(); where it cannot be reached, one that nobody sees: properties remain. */
    @SuppressWarnings("unchecked")
    private static Map<String, String> writable() {
        try {
            Object view = Internals.field("java.lang.ProcessEnvironment", "theUnmodifiableEnvironment").get(null);
            return (Map<String, String>) Internals.field("java.util.Collections$UnmodifiableMap", "m").get(view);
        } catch (ReflectiveOperationException | RuntimeException unreachable) {
            System.err.println("kernel: System.getenv shows no variables of the sandbox: " + unreachable);
            return new HashMap<>();
        }
    }

    private final class Overlay {
        private final Map<String, String> variablesBefore = new LinkedHashMap<>();
        private final Map<String, String> propertiesBefore = new LinkedHashMap<>();

        void lay(Map<String, Object> laid) {
            variablesBefore.forEach((name, value) -> {
                if (value == null) variables.remove(name);
                else variables.put(name, value);
            });
            propertiesBefore.forEach((name, value) -> {
                if (value == null) System.clearProperty(name);
                else System.setProperty(name, value);
            });
            variablesBefore.clear();
            propertiesBefore.clear();
            laid.forEach((name, value) -> {
                try {
                    set(name, String.valueOf(value));
                } catch (RuntimeException impossible) {  // a name or value that no process can have
                    System.err.println("environment variable " + name + " not set: " + impossible.getMessage());
                }
            });
        }

        private void set(String name, String value) {
            if (name.isEmpty()) throw new IllegalArgumentException("the name is empty");
            String before = variables.get(name);
            variables.put(name, value);
            variablesBefore.put(name, before);
            if (ofJvm.contains(name)) return;
            String property = System.getProperty(name);
            System.setProperty(name, value);
            propertiesBefore.put(name, property);
        }
    }
}
