import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['vitest/**/*.test.ts'],
    // Waits of the fleet end by themselves, with an error that says more than the runner's.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
