// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * System.out and System.err. What is printed is written at once, so that it is in order with what child processes
 * print, until a loop prints so much that system calls would be the cost of it; from then on a tick of the clock
 * writes what has gathered.
 */
final class Output {
    private static final int BUFFER_BYTES = 1 << 16;
    private static final int WRITES_PER_TICK = 64;
    private static final int TICK_MS = 10;

    private final Object lock = new Object();
    private int writesLeft = WRITES_PER_TICK;
    private boolean ticking;
    private final Pipe out = new Pipe(FileDescriptor.out);
    private final Pipe err = new Pipe(FileDescriptor.err);
    private PrintStream outPrinter;
    private PrintStream errPrinter;

    Output() {
        out.other = err;
        err.other = out;
        renew();
        Thread ticker = new Thread(this::tick, "output");
        ticker.setDaemon(true);
        ticker.start();
    }

    /** A program that closes its output, as many do at their end, must not silence those after it. */
    void renew() {
        if (outPrinter == null || out.closed) outPrinter = replaced(outPrinter, System.out, out);
        if (errPrinter == null || err.closed) errPrinter = replaced(errPrinter, System.err, err);
    }

    private PrintStream replaced(PrintStream before, PrintStream current, Pipe pipe) {
        pipe.closed = false;
        PrintStream printer = new PrintStream(pipe, false, StandardCharsets.UTF_8);
        if (before != null && before != current) return printer;  // redirected by the user
        if (pipe == out) System.setOut(printer);
        else System.setErr(printer);
        return printer;
    }

    /** Everything printed so far is in the pipes when this returns. */
    void flush() {
        System.out.flush();
        System.err.flush();
        out.flush();
        err.flush();
    }

    private void tick() {
        while (true) {
            try {
                synchronized (lock) {
                    while (!ticking) lock.wait();
                }
                Thread.sleep(TICK_MS);
            } catch (InterruptedException notMeant) {
                continue;
            }
            synchronized (lock) {
                out.flush();
                err.flush();
                writesLeft = WRITES_PER_TICK;
                ticking = false;
            }
        }
    }

    private final class Pipe extends OutputStream {
        private final FileOutputStream file;
        private final byte[] buffer = new byte[BUFFER_BYTES];
        private int used;
        private Pipe other;
        private volatile boolean closed;

        Pipe(FileDescriptor descriptor) {
            file = new FileOutputStream(descriptor);
        }

        @Override
        public void write(int b) {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) {
            synchronized (lock) {
                other.flush();  // the order between the two is kept
                while (length > 0) {
                    int part = Math.min(length, BUFFER_BYTES - used);
                    System.arraycopy(bytes, offset, buffer, used, part);
                    used += part;
                    offset += part;
                    length -= part;
                    if (used == BUFFER_BYTES) flush();
                }
                if (!ticking) {
                    ticking = true;
                    lock.notify();
                }
                if (writesLeft > 0) {
                    writesLeft--;
                    flush();
                }
            }
        }

        @Override
        public void flush() {
            synchronized (lock) {
                int length = used;
                used = 0;
                try {
                    if (length > 0) file.write(buffer, 0, length);
                } catch (IOException readerIsGone) {
                    closed = true;
                }
            }
        }

        @Override
        public void close() {
            flush();
            closed = true;
        }
    }
}
