import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { root: import.meta.dirname, include: ['unit/**/*.test.ts'], reporters: ['default'] },
});
