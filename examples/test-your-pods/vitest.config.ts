import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['vitest/**/*.test.ts'],
    // Installed from a checkout it is no file of node_modules. It is built already, and transforming it takes seconds.
    server: { deps: { external: [/\/dist\/lib\//] } },
    // Waits of the harness end by themselves, with an error that says more than the runner's.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
