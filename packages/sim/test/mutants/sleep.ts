/** Mutants of sleep: what sleeps with work, is woken twice, or forgets. */
import type { Mutant } from './mutants.ts';

export const SLEEP_MUTANTS: readonly Mutant[] = [
  {
    id: 'a worker that slept begins anew',
    file: 'src/actors/pods/workers/workers.ts',
    find: 'if (woken === undefined) return { logic, input, keep };',
    replace: 'if (woken?.dueAtMonoMs !== -1) return { logic, input, keep };',
  },
  {
    id: 'a sleeper is woken twice',
    file: 'src/actors/supervision/nodes/dynamicChild.ts',
    find: '    this.#slept = null;\n    this.begins(this.incarnation + 1);',
    replace: '    this.begins(this.incarnation + 1);',
  },
  {
    id: 'a worker sleeps with work',
    file: 'src/machines/pods/workers/regions/asleep.ts',
    find: "if (!quiet || (value as { syncing?: unknown }).syncing !== 'settled' || end.kill !== null) return null;",
    replace: 'if (end.kill === null) return { context, containers: new Map() };',
  },
];
