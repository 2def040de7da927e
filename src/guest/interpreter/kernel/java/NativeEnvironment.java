// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import sun.misc.Unsafe;

/**
 * The C library's `environ`, which child processes get from a ProcessBuilder whose own map was not touched. Java has
 * no setenv(3): the array is built here and the variable pointed at it.
 */
final class NativeEnvironment {
    private final Unsafe memory;
    private final Method block;
    private final long environ;
    private long array;  // in use
    private long text;
    private long arrayBefore;  // a thread that starts a process may still read it
    private long textBefore;

    NativeEnvironment() throws ReflectiveOperationException {
        memory = (Unsafe) Internals.field("sun.misc.Unsafe", "theUnsafe").get(null);
        block = Internals.method("java.lang.ProcessEnvironment", "toEnvironmentBlock", Map.class, int[].class);
        environ = symbol("environ");
        if (environ == 0) throw new NoSuchFieldException("environ");
    }

    /** `variables` is the map behind System.getenv(). */
    void set(Map<String, String> variables) throws ReflectiveOperationException {
        byte[] bytes = (byte[]) block.invoke(null, variables, new int[1]);  // each entry ends in a zero
        int entries = variables.size();
        long newText = memory.allocateMemory(bytes.length + 1L);
        long newArray = memory.allocateMemory((entries + 1L) * Unsafe.ADDRESS_SIZE);
        int entry = 0;
        boolean begins = true;
        for (int i = 0; i < bytes.length; i++) {
            if (begins && entry < entries)
                memory.putAddress(newArray + (long) entry++ * Unsafe.ADDRESS_SIZE, newText + i);
            memory.putByte(newText + i, bytes[i]);
            begins = bytes[i] == 0;
        }
        memory.putAddress(newArray + (long) entry * Unsafe.ADDRESS_SIZE, 0);
        memory.fullFence();
        memory.putAddress(environ, newArray);
        if (arrayBefore != 0) memory.freeMemory(arrayBefore);
        if (textBefore != 0) memory.freeMemory(textBefore);
        arrayBefore = array;
        textBefore = text;
        array = newArray;
        text = newText;
    }

    /** The address of a symbol of the process: what dlsym(RTLD_DEFAULT, name) gives, RTLD_DEFAULT being handle 0. */
    private static long symbol(String name) throws ReflectiveOperationException {
        Class<?> library = Class.forName("jdk.internal.loader.NativeLibraries$NativeLibraryImpl");
        Constructor<?> constructor = library.getDeclaredConstructors()[0];
        constructor.setAccessible(true);
        Object whole = constructor.newInstance(NativeEnvironment.class, "", true, false);
        Field handle = Internals.field(library.getName(), "handle");
        handle.setLong(whole, 0);
        return (long) Internals.method("jdk.internal.loader.NativeLibraries", "findEntry0", library, String.class)
            .invoke(null, whole, name);
    }
}
