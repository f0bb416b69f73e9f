import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

// A daemon that a test starts leaves the kernel settings of this machine alone.
process.env.ACTORLET_PROC_SYS ??= join(import.meta.dirname, 'test/e2e/lab/procSys');

/** What took longest in runs of the whole suite. A long file that starts last leaves cores idle. */
const LONG = [
  'test/e2e/runtime/daemonKill.test.ts',
  'test/e2e/node/flood.test.ts',
  'test/e2e/tools/inspectPage.test.ts',
  'test/sim/mutants/even.test.ts',
  'test/sim/mutants/odd.test.ts',
  'test/integration/kill/killEveryActor.test.ts',
  'test/sim/seeds/fixedSeeds.test.ts',
  'test/integration/kill/killSteady.test.ts',
  'test/fuzz/fuzz.test.ts',
  'test/sim/seeds/freshSeeds.test.ts',
].map((file) => join(import.meta.dirname, file));

/** What an `expect.poll` may wait for: a machine that is busy with other things is no failure. Below each project's `testTimeout`. */
const poll = { timeout: 50_000 };

/** Vitest's order is by size, where nothing is known of an earlier run. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => LONG.indexOf(moduleId) + 1 || LONG.length + 1;
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
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
        resolve: { conditions: ['development'] },
        test: {
          name: 'unit',
          env: { ACTORLET_PROGRAMS: 'built' },
          include: ['test/**/*.test.ts'],
          exclude: ['test/e2e/**', 'test/cluster/**'],
          // Wide: a machine that is busy with other things is no failure.
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: { poll },
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
          env: { ACTORLET_PROGRAMS: 'built' },
          include: ['test/e2e/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          expect: { poll },
          pool: 'forks',
          // These mostly wait, and each file has a lab of its own.
          maxWorkers: 3,
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
          pool: 'forks',
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'nightly',
          include: ['test/**/*.nightly.ts'],
          testTimeout: 900_000,
          hookTimeout: 600_000,
          expect: { poll },
          pool: 'forks',
          fileParallelism: false,
        },
      },
    ],
  },
});
