// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.util.concurrent.Callable;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import sun.misc.Signal;

/** Runs the user's code on threads that an interrupt can end. A cell is what lies between begin() and end(). */
final class UserThread {
    /** The code was interrupted. */
    static final class Interrupted extends Exception {
        private static final long serialVersionUID = 1;
    }

    private static final long STACK_BYTES = 8L << 20;
    // Code has this long to notice an interrupt by itself, and code that did has this long to end in order, before
    // an exception is forced on it.
    private static final int NOTICE_MS = 200;
    private static final int ORDERLY_END_MS = 3000;
    private static final int LOST_AFTER_MS = 2000;

    private static final int SIGNALS_MS = 1000;
    private static final Signal LATER = new Signal("URG");

    private final Semaphore laterSeen = new Semaphore(0);
    private boolean inCell;
    private boolean interrupted;
    private Task running;

    void interruptBySignal() {
        Signal.handle(new Signal("INT"), signal -> interrupt());
        Signal.handle(LATER, signal -> laterSeen.release());
    }

    synchronized void begin() {
        interrupted = false;
        inCell = true;
    }

    /** Whether an interrupt came in the meantime; a later one belongs to no cell and does nothing. */
    boolean end() {
        awaitArrivedSignals();
        synchronized (this) {
            inCell = false;
            return interrupted;
        }
    }

    /**
     * The JVM hands signals on by way of two threads, the lowest number first. One that has reached the process, and
     * may have ended a child of the cell's, must not pass by this cell and hit the next.
     */
    private void awaitArrivedSignals() {
        try {
            laterSeen.drainPermits();
            Signal.raise(LATER);
            if (!laterSeen.tryAcquire(SIGNALS_MS, TimeUnit.MILLISECONDS)) return;
            for (int waited = 0; waited < SIGNALS_MS && !interrupted() && handlerIsStarting(); waited++)
                Thread.sleep(1);
        } catch (InterruptedException notMeant) {
            return;
        }
    }

    private static boolean handlerIsStarting() {
        Thread[] threads = new Thread[Thread.activeCount() + 16];
        ThreadGroup group = Thread.currentThread().getThreadGroup();
        while (group.getParent() != null) group = group.getParent();
        int count = group.enumerate(threads);
        for (int i = 0; i < count; i++)
            if (threads[i].getName().equals("SIGINT handler")) return true;
        return false;
    }

    synchronized boolean interrupted() {
        return interrupted;
    }

    /** The value of `code`, or what it threw. Each call has a thread of its own: a late interrupt hits nobody else. */
    <T> T call(Callable<T> code) throws Throwable {
        Task task = new Task(code);
        synchronized (this) {
            if (interrupted) throw new Interrupted();
            running = task;
            task.start();
        }
        while (task.isAlive() && !task.lost) {
            try {
                task.join(500);
            } catch (InterruptedException notMeant) {
                continue;
            }
        }
        synchronized (this) {
            running = null;
            if (interrupted) throw new Interrupted();
        }
        if (task.failure != null) throw task.failure;
        @SuppressWarnings("unchecked")
        T value = (T) task.value;
        return value;
    }

    @SuppressWarnings("deprecation")
    private void interrupt() {
        Task task;
        synchronized (this) {
            if (!inCell) return;
            interrupted = true;
            task = running;
        }
        if (task == null) return;
        try {
            task.interrupt();
            task.join(NOTICE_MS);
            boolean noticed = !task.isInterrupted();  // an InterruptedException takes the mark away
            if (noticed) task.join(ORDERLY_END_MS);
            if (!task.isAlive()) return;
            task.stop();  // the only way to end a busy loop
            task.join(LOST_AFTER_MS);
            task.lost = task.isBeyondReach();
        } catch (InterruptedException notMeant) {
            return;
        }
    }

    private static final class Task extends Thread {
        private final Callable<?> code;
        private volatile Object value;
        private volatile Throwable failure;
        private volatile boolean lost;

        Task(Callable<?> code) {
            super(null, null, "main", STACK_BYTES);
            this.code = code;
        }

        @Override
        public void run() {
            try {
                value = code.call();
            } catch (Throwable thrown) {
                failure = thrown;
            }
        }

        /** Stays in a system call or waits for a monitor: nothing can be thrown there. It ends when it comes out. */
        boolean isBeyondReach() throws InterruptedException {
            for (int i = 0; i < 5; i++) {
                if (!isAlive()) return false;
                StackTraceElement[] stack = getStackTrace();
                boolean inNativeCode = stack.length > 0 && stack[0].isNativeMethod();
                if (!inNativeCode && getState() != State.BLOCKED) return false;
                sleep(20);
            }
            return true;
        }
    }
}
