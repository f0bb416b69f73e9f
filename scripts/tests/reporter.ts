/** Vitest's reporter: writes what each test file of a run cost (`perFile.ts`) into the file that ACTORLET_COST names. */
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';
import type { Cost } from './costs.ts';

export default class CostReporter implements Reporter {
  readonly #costs: Record<string, Cost> = {};

  onTestModuleEnd(module: TestModule): void {
    const { cost } = module.meta() as { cost?: Cost };
    if (cost !== undefined) this.#costs[relative(process.cwd(), module.moduleId)] = cost;
  }

  onTestRunEnd(): void {
    if (process.env.ACTORLET_COST !== undefined) writeFileSync(process.env.ACTORLET_COST, JSON.stringify(this.#costs));
  }
}
