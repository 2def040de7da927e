// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.lang.reflect.Field;
import java.lang.reflect.Method;

/** Members of the JDK that have no public door. The command line opens their packages (--add-opens). */
final class Internals {
    private Internals() {}

    static Field field(String className, String name) throws ReflectiveOperationException {
        Field field = Class.forName(className).getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }

    static Method method(String className, String name, Class<?>... parameters) throws ReflectiveOperationException {
        Method method = Class.forName(className).getDeclaredMethod(name, parameters);
        method.setAccessible(true);
        return method;
    }
}
