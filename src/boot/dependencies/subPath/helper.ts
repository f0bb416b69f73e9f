/** The caller's side of the helper: where its program is, how many run at once, and what it says. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MountCall, SubPathRequest, SubPathResult } from '../../../ports/machine/mounter.ts';
import { NODE_FLAGS } from '../../../process/startProcess.ts';
import type { GroupRequest } from './group.ts';

/** Each is a process of some 45 MB for some 100 ms. */
const HELPERS_MAX = 4;

/** Beside this bundle in `dist/`, else the source. */
function helperEntry(from: string = import.meta.url): string {
  const here = dirname(fileURLToPath(from));
  const candidates = [join(here, 'subpath.mjs'), join(here, '..', 'subpath.mjs'), join(here, 'main.ts')];
  const found = candidates.find((file) => existsSync(file));
  if (found === undefined) {
    throw new Error(`the program that touches volumes is not there: looked for ${candidates.join(', ')}; run the build`);
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

/** Helpers of one kind: at most {@link HELPERS_MAX} at once, in the order of the asking; a helper that is cancelled while it waits never runs. */
class Helpers {
  readonly #run: RunHelper;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(run: RunHelper) {
    this.#run = run;
  }

  async run(kind: 'bind' | 'group', request: object, call: MountCall): Promise<string> {
    while (this.#running >= HELPERS_MAX) await new Promise<void>((go) => this.#waiting.push(go));
    this.#running += 1;
    try {
      return await this.#run(process.execPath, [...NODE_FLAGS, helperEntry(), kind, JSON.stringify(request)], call);
    } finally {
      this.#running -= 1;
      this.#waiting.shift()?.();
    }
  }
}

/** Volumes of others. A walk through a large one holds up other walks, and no bind. */
export class SubPathHelpers {
  readonly #binds: Helpers;
  readonly #groups: Helpers;

  constructor(run: RunHelper) {
    this.#binds = new Helpers(run);
    this.#groups = new Helpers(run);
  }

  async bind({ volume, subPath, target }: SubPathRequest, call: MountCall): Promise<SubPathResult> {
    return resultOf(await this.#binds.run('bind', { volume, subPath, target }, call));
  }

  /** What could not be changed, in lines. */
  async giveToGroup({ path, gid, onRootMismatch }: GroupRequest, call: MountCall): Promise<string> {
    return (await this.#groups.run('group', { path, gid, onRootMismatch }, call)).trim();
  }
}
