import { defineConfig } from 'vitest/config';

/** `unit`: everything that needs no root and no host runtime. `e2e`: real containerd (see CONTRIBUTING.md). */
export default defineConfig({
  test: {
    projects: [
      {
        resolve: { conditions: ['development'] },
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/e2e/**'],
          testTimeout: 20_000,
          pool: 'forks',
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          pool: 'forks',
          fileParallelism: false,
        },
      },
    ],
  },
});
