import { defineConfig } from 'vitest/config';

// One editor at a time: the machine that runs these has two cores, and an export wants both.
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['e2e/**/*.test.ts'],
    reporters: ['verbose'],
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 120_000,
    bail: 0,
  },
});
