/** Calls of iscsiadm, and the records of open-iscsi where a secret is told. */

import type { ToolAnswer } from '../../../../machines/services/volumes/devices/format.ts';
import {
  type Admin,
  admin,
  clonedFields,
  isNothingLeft,
  isRecordName,
  isThere,
  RECORD_HOMES,
  type Target,
  withFields,
} from '../../../../machines/services/volumes/devices/iscsi.ts';
import { codeOf } from '../../../../machines/text/errors.ts';
import { listIfThere } from '../../../../ports/ifThere.ts';
import { serverCall } from '../disk/limits.ts';
import { mounterOf, type VolumeTools } from '../kind.ts';

const RECORD_BYTES_MAX = 64 * 1024;
const RECORD_MODE = 0o600;
/** File of a record of a discovery: some versions keep it in a folder. */
const DISCOVERY_FILE = 'st_config';

/** What it printed. */
export async function iscsiadm(o: VolumeTools, args: Admin, signal: AbortSignal): Promise<string> {
  const answer = await call(o, args, signal);
  if (answer.code !== 0) throw failed(args, answer);
  return answer.out;
}

/** The same of a session, record or interface that may be gone already. */
export async function withoutFail(o: VolumeTools, args: Admin, signal: AbortSignal): Promise<void> {
  const answer = await call(o, args, signal);
  if (!isNothingLeft(answer)) throw failed(args, answer);
}

async function call(o: VolumeTools, args: Admin, signal: AbortSignal): Promise<ToolAnswer> {
  try {
    return await mounterOf(o).tool('iscsiadm', args, serverCall(signal));
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    throw new Error('this node has no iscsiadm (package open-iscsi or iscsi-initiator-utils)');
  }
}
function failed(args: Admin, { code, out, err }: ToolAnswer): Error {
  return new Error(`iscsiadm ${args.join(' ')} ended with ${code}: ${err.trim() || out.trim()}`);
}

/** An interface of the volume's own, with its initiator name. `shown`: of the one that it is a copy of. */
export async function cloneIface(o: VolumeTools, { target, shown }: { target: Target; shown: string }, signal: AbortSignal): Promise<void> {
  const args = admin.newIface(target.iface);
  const made = await call(o, args, signal);
  if (!isThere(made)) throw failed(args, made);
  for (const [name, value] of clonedFields(shown, target.initiatorName))
    await iscsiadm(o, admin.setIface(target.iface, name, value), signal);
}

/** Into the records themselves: on a command line everybody could read it. `names`: of folders and of the file at their end. */
export async function tellRecords(
  o: VolumeTools,
  of: { below: string; names: readonly string[]; fields: readonly (readonly [string, string])[] },
): Promise<void> {
  const { fs } = o.ports;
  let told = 0;
  for (const home of RECORD_HOMES) {
    for (const path of await recordsAt(o, `${home}/${of.below}`, of.names)) {
      const text = new TextDecoder().decode(await fs.readFile(path, { bytesMax: RECORD_BYTES_MAX }));
      const fresh = withFields(text, of.fields);
      if (fresh === null) throw new Error('the secret of an iSCSI disk has a line break in a value');
      await fs.writeFile(path, fresh, { mode: RECORD_MODE });
      told += 1;
    }
  }
  if (told === 0) throw new Error(`no record of open-iscsi below ${RECORD_HOMES.join(' or ')} for ${of.names.join(' ')}`);
}

async function recordsAt(o: VolumeTools, dir: string, [first, ...rest]: readonly string[]): Promise<string[]> {
  if (first === undefined) return [];
  const found: string[] = [];
  for (const name of (await listIfThere(o.ports.fs, dir)).filter((n) => isRecordName(n, first))) {
    const path = `${dir}/${name}`;
    if ((await o.ports.fs.lstat(path)).kind !== 'dir') found.push(path);
    else found.push(...(await recordsAt(o, path, rest.length === 0 ? [DISCOVERY_FILE] : rest)));
  }
  return found;
}
