/** The caller's side of the helper: where its program is, how many run at once, and what it says. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NODE_FLAGS } from '@actorlet/process/src/startProcess.ts';
import type { MountCall, SubPathRequest, SubPathResult } from '../../../ports/machine/mounter.ts';
import { AtOnce } from '../../../ports/turns.ts';
import { MountError } from '../mounts/mountError.ts';
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

/** `server`: what has to answer, as `serverOf` says. */
export type HelperCall = MountCall & { server: string };
export type RunHelper = (command: string, args: readonly string[], call: MountCall) => Promise<string>;

/** Helpers of one kind, at most {@link HELPERS_MAX} at once of one server. */
class Helpers {
  readonly #run: RunHelper;
  readonly #atOnce = new AtOnce(HELPERS_MAX);

  constructor(run: RunHelper) {
    this.#run = run;
  }

  /** The wait for a turn counts: behind those that hang until their deadline the next ones need not begin. */
  run(kind: 'bind' | 'group', request: object, { server, ...call }: HelperCall): Promise<string> {
    const { timeoutMs } = call;
    const askedMs = performance.now();
    return this.#atOnce.run(server, () => {
      const leftMs = timeoutMs - (performance.now() - askedMs);
      if (leftMs <= 0) throw new MountError('ETIMEDOUT', `${timeoutMs} ms went by behind calls that "${server}" does not answer`);
      return this.#run(process.execPath, [...NODE_FLAGS, helperEntry(), kind, JSON.stringify(request)], { ...call, timeoutMs: leftMs });
    });
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

  async bind({ volume, subPath, target }: SubPathRequest, call: HelperCall): Promise<SubPathResult> {
    return resultOf(await this.#binds.run('bind', { volume, subPath, target }, call));
  }

  /** What could not be changed, in lines. */
  async giveToGroup({ path, gid, onRootMismatch }: GroupRequest, call: HelperCall): Promise<string> {
    return (await this.#groups.run('group', { path, gid, onRootMismatch }, call)).trim();
  }
}
