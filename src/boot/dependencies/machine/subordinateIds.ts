/** Ids for user namespaces of pods, from what the machine says of its user `kubelet` (/etc/passwd, getsubids). */

import { readFile } from 'node:fs/promises';
import { readSubordinateIds, subordinateIdsRefusal } from '../../../machines/pods/workers/config/subordinateIds.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { Clock, SubordinateIds } from '../../../ports/ports.ts';
import { StartError } from '../../errors.ts';
import { NO_PROGRAM, runProgram } from '../program.ts';

const USER = 'kubelet';
const LIMIT_MS = 30_000;

export interface SubordinateOptions {
  clock: Clock;
  env: Readonly<Record<string, string | undefined>>;
  /** Default /etc/passwd. */
  passwd?: string;
  idsPerPod: number;
  maxPods: number;
}

/**
 * Null where there is no such user, or no program `getsubids`: pods then get ids from `idsPerPod` on.
 * @throws StartError where the user is there and the program gives no answer: its ids may come from a server that is away.
 */
export async function loadSubordinateIds(o: SubordinateOptions): Promise<SubordinateIds | null> {
  const users = await readFile(o.passwd ?? '/etc/passwd', 'utf8').catch(() => '');
  if (!users.split('\n').some((line) => line.startsWith(`${USER}:`))) return null;
  const ask = (...args: string[]) => runProgram({ command: 'getsubids', args, env: o.env }, { clock: o.clock, limitMs: LIMIT_MS });
  const fail = (what: string): never => {
    throw new StartError('the ids for user namespaces cannot be had', [{ where: `getsubids ${USER}`, what: `kubelet mappings: ${what}` }]);
  };
  let uids: string;
  try {
    uids = await ask(USER);
  } catch (error) {
    if (messageOf(error).startsWith(NO_PROGRAM)) return null;
    return fail(`error retrieving additional uids for user "${USER}": ${messageOf(error)}`);
  }
  const gids = await ask('-g', USER).catch(() => fail(`error retrieving additional gids for user "${USER}"`));
  if (uids !== gids) return fail(`mismatched subuids and subgids for user "${USER}"`);
  const read = readSubordinateIds(uids);
  if (!read.ok) return fail(read.message);
  const refusal = subordinateIdsRefusal(read.value, o);
  return refusal === null ? read.value : fail(refusal);
}
