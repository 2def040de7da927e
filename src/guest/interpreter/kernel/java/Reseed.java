// SPDX-License-Identifier: Apache-2.0
package glovebox;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Gives the JDK's random number generators seeds that no other restored copy of this machine has. What can be
 * reached is looked up before the snapshot is taken: a restored machine has no time for it.
 */
final class Reseed {
    // Each counts the seeds that it has given to new generators.
    private static final String[][] COUNTERS = {
        {"java.util.Random", "seedUniquifier"},
        {"java.util.SplittableRandom", "defaultGen"},
        {"java.util.concurrent.ThreadLocalRandom", "seeder"},
        {"jdk.random.L32X64MixRandom", "defaultGen"},
        {"jdk.random.L64X128MixRandom", "defaultGen"},
        {"jdk.random.L64X128StarStarRandom", "defaultGen"},
        {"jdk.random.L64X256MixRandom", "defaultGen"},
        {"jdk.random.L64X1024MixRandom", "defaultGen"},
        {"jdk.random.L128X128MixRandom", "defaultGen"},
        {"jdk.random.L128X256MixRandom", "defaultGen"},
        {"jdk.random.L128X1024MixRandom", "defaultGen"},
        {"jdk.random.Xoroshiro128PlusPlus", "defaultGen"},
        {"jdk.random.Xoshiro256PlusPlus", "DEFAULT_GEN"},
    };

    private interface Step {
        void run() throws ReflectiveOperationException;
    }

    private final SecureRandom source = new SecureRandom();
    private final List<Step> steps = new ArrayList<>();

    Reseed() {
        source.nextLong();
        // First: bytes from the operating system that were read before the snapshot are not to be given out after it.
        prepare(() -> {
            Object shared = Internals.field("sun.security.provider.NativePRNG", "INSTANCE").get(null);
            Field buffered = Internals.field("sun.security.provider.NativePRNG$RandomIO", "buffered");
            return () -> buffered.setInt(shared, 0);
        });
        for (String[] counter : COUNTERS) {
            prepare(() -> {
                AtomicLong seeds = (AtomicLong) Internals.field(counter[0], counter[1]).get(null);
                return () -> seeds.set(source.nextLong());
            });
        }
        prepare(() -> {
            Random ofMath = (Random) Internals.field("java.lang.Math$RandomNumberGeneratorHolder",
                "randomNumberGenerator").get(null);
            return () -> ofMath.setSeed(source.nextLong());
        });
        prepare(() -> {
            Field ofShuffle = Internals.field("java.util.Collections", "r");
            return () -> ofShuffle.set(null, null);  // made anew at the next use
        });
        prepare(() -> {
            Field ofThread = Internals.field("java.lang.Thread", "threadLocalRandomSeed");
            Method threads = Internals.method("java.lang.Thread", "getThreads");
            return () -> {
                for (Thread thread : (Thread[]) threads.invoke(null)) ofThread.setLong(thread, source.nextLong());
            };
        });
    }

    void reseed() {
        for (Step step : steps) {
            try {
                step.run();
            } catch (ReflectiveOperationException | RuntimeException failed) {
                System.err.println("kernel: a random number generator keeps its seed: " + failed);
            }
        }
    }

    private interface Preparation {
        Step step() throws ReflectiveOperationException;
    }

    private void prepare(Preparation preparation) {
        try {
            steps.add(preparation.step());
        } catch (ReflectiveOperationException | RuntimeException unreachable) {
            System.err.println("kernel: a random number generator cannot be reseeded: " + unreachable);
        }
    }
}
