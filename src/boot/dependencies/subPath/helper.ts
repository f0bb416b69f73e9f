/** The caller's side of the helper: where its program is, how many run at once, and what it says. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MountCall, SubPathRequest, SubPathResult } from '../../../actors/kernel/mounter.ts';

/** Each is a process of some 45 MB for some 100 ms. */
const HELPERS_MAX = 4;

/** Beside this bundle in `dist/`, else the source. */
export function helperEntry(from: string = import.meta.url): string {
  const here = dirname(fileURLToPath(from));
  const candidates = [join(here, 'subpath.mjs'), join(here, '..', 'subpath.mjs'), join(here, 'main.ts')];
  const found = candidates.find((file) => existsSync(file));
  if (found === undefined) {
    throw new Error(`the program that binds parts of volumes is not there: looked for ${candidates.join(', ')}; run the build`);
  }
  return found;
}

function resultOf(text: string): SubPathResult {
  const value: unknown = JSON.parse(text);
  if (typeof value === 'object' && value !== null && 'kind' in value) {
    if (value.kind === 'bound') return { kind: 'bound' };
    if (value.kind === 'refused' && 'step' in value && 'why' in value) {
      return { kind: 'refused', step: value.step === 'create' ? 'create' : 'prepare', why: String(value.why) };
    }
  }
  throw new Error(`the helper that binds parts of volumes said ${JSON.stringify(text)}`);
}

export type RunHelper = (command: string, args: readonly string[], call: MountCall) => Promise<string>;

/** At most {@link HELPERS_MAX} at once, in the order of the asking; whoever is cancelled while it waits never runs. */
export class SubPathHelpers {
  readonly #run: RunHelper;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(run: RunHelper) {
    this.#run = run;
  }

  async bind({ volume, subPath, target }: SubPathRequest, call: MountCall): Promise<SubPathResult> {
    await this.#turn();
    try {
      const request = JSON.stringify({ volume, subPath, target });
      return resultOf(await this.#run(process.execPath, [helperEntry(), request], call));
    } finally {
      this.#running -= 1;
      this.#waiting.shift()?.();
    }
  }

  async #turn(): Promise<void> {
    while (this.#running >= HELPERS_MAX) await new Promise<void>((go) => this.#waiting.push(go));
    this.#running += 1;
  }
}
