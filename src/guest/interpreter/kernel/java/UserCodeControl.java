// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.lang.reflect.Method;
import java.util.Map;
import jdk.jshell.execution.DirectExecutionControl;
import jdk.jshell.spi.ExecutionControl;
import jdk.jshell.spi.ExecutionControlProvider;
import jdk.jshell.spi.ExecutionEnv;

/** jshell's hand in this process: runs snippets on the user's thread and keeps their values as they are. */
final class UserCodeControl extends DirectExecutionControl {
    private final UserThread thread;
    private Object value;
    private Throwable failure;

    UserCodeControl(UserThread thread) {
        this.thread = thread;
    }

    /** What the last snippet evaluated to; forgotten here. */
    Object takeValue() {
        Object taken = value;
        value = null;
        return taken;
    }

    /** Why the last snippet could not be run at all, which jshell keeps to itself; null when it was run. */
    Throwable takeFailure() {
        Throwable taken = failure;
        failure = null;
        return taken;
    }

    @Override
    public String invoke(String className, String methodName)
            throws RunException, InternalException, EngineTerminationException {
        try {
            return super.invoke(className, methodName);
        } catch (InternalException internal) {
            failure = internal;
            throw internal;
        }
    }

    @Override
    protected String invoke(Method snippet) throws Exception {
        value = null;
        try {
            value = thread.call(() -> snippet.invoke(null));
        } catch (UserThread.Interrupted interrupted) {
            throw new StoppedException();
        } catch (Exception | Error thrown) {
            throw thrown;
        } catch (Throwable thrown) {
            throw new AssertionError(thrown);
        }
        return "";
    }

    /** Never computed: jshell would call the user's toString() for values that nobody sees. */
    @Override
    public String varValue(String className, String variable) {
        return "";
    }

    ExecutionControlProvider provider() {
        return new ExecutionControlProvider() {
            @Override
            public String name() {
                return "glovebox";
            }

            @Override
            public ExecutionControl generate(ExecutionEnv env, Map<String, String> parameters) {
                return UserCodeControl.this;
            }
        };
    }
}
