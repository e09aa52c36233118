import { defineConfig } from 'vitest/config';

// Two editors at a time: each waits for itself more than it computes, and its limits leave room for the other.
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['e2e/**/*.test.ts'],
    reporters: ['verbose'],
    fileParallelism: true,
    maxWorkers: 2,
    testTimeout: 180_000,
    hookTimeout: 120_000,
    bail: 0,
  },
});
