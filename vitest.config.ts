import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { recordedCosts } from './scripts/tests/costs.ts';

// A daemon that a test starts leaves the kernel settings of this machine alone.
process.env.ACTORLET_PROC_SYS ??= join(import.meta.dirname, 'test/e2e/lab/procSys');

// Types of the sources are stripped once for all workers; `perFile.ts` keeps it from the programs that tests start.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '.cache/compiled');

/** Seconds that a file took when costs were last recorded. A long file that starts last leaves cores idle. */
const { slow } = recordedCosts();
const wallOf = ({ moduleId }: TestSpecification): number => slow[relative(import.meta.dirname, moduleId)]?.wall ?? 0;

/** Files that this `npm test` has run already. */
const done = process.env.ACTORLET_TESTS_DONE?.split('\n').filter(Boolean) ?? [];

/** What an `expect.poll` may wait for: a machine that is busy with other things is no failure. Below each project's `testTimeout`. */
const poll = { timeout: 50_000 };
/** Counts what each file costs. */
const setupFiles = ['scripts/tests/perFile.ts'];
/** Node loads tests and sources as it loads the programs. Vite's module runner takes more processor time for each module and for each call. */
const experimental = { viteModuleRunner: false, nodeLoader: false };

/** Vitest's order is by size, where nothing is known of an earlier run. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort((a, b) => wallOf(b) - wallOf(a));
  }
}

/**
 * `unit`: everything that needs no root and no host runtime. `e2e`: real containerd. `cluster`: a real control plane.
 * `nightly`: what `npm run nightly` alone runs (see CONTRIBUTING.md).
 */
export default defineConfig({
  test: {
    sequence: { sequencer: LongFirst },
    projects: [
      {
        test: {
          name: 'unit',
          experimental,
          // The warnings of xstate.
          execArgv: ['--conditions=development'],
          env: { ACTORLET_PROGRAMS: 'built' },
          include: ['{test,packages/*/test}/**/*.test.ts'],
          exclude: ['test/e2e/**', 'test/cluster/**', ...done],
          // Wide: a machine that is busy with other things is no failure.
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: { poll },
          setupFiles,
          pool: 'forks',
          // Starting a process for each file and loading the sources there costs more than most files do.
          isolate: false,
          // The default leaves one core idle.
          maxWorkers: availableParallelism(),
        },
      },
      {
        test: {
          name: 'e2e',
          experimental,
          env: { ACTORLET_PROGRAMS: 'built' },
          include: ['test/e2e/**/*.test.ts'],
          // Several waits of up to 90 s.
          testTimeout: 240_000,
          hookTimeout: 240_000,
          expect: { poll },
          setupFiles,
          pool: 'forks',
          // Files of one worker share a containerd, and load the sources once.
          isolate: false,
          globalSetup: ['test/e2e/lab/labs.ts'],
          // These mostly wait.
          maxWorkers: 4,
          // Vitest wants projects with different numbers of workers one after the other.
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'cluster',
          include: ['test/cluster/**/*.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          expect: { poll },
          setupFiles,
          pool: 'forks',
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'nightly',
          include: ['{test,packages/*/test}/**/*.nightly.ts'],
          testTimeout: 900_000,
          hookTimeout: 600_000,
          expect: { poll },
          setupFiles,
          pool: 'forks',
          fileParallelism: false,
        },
      },
    ],
  },
});
