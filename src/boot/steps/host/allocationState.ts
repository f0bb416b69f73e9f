/** The step that looks at what an earlier node agent allocated, and refuses to go on over the state of another policy. */

import { open, rename } from 'node:fs/promises';
import { readRegular } from '@actorlet/process/src/regularFile.ts';
import type { ProviderState, ProviderStateOpened } from '../../../actors/allocation/provider.ts';
import { PROVIDERS } from '../../../actors/allocation/providers.ts';
import type { NodeConfig } from '../../../machines/config/config.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import { createHostFs } from '../../dependencies/fs.ts';
import { readCpus, readNumaNodes } from '../../dependencies/machine/cpuTopology.ts';
import { StartError } from '../../errors.ts';
import { type BootContext, need, type Step } from '../context.ts';

const FILE_MODE = 0o600;

export const checkAllocationState: Step = {
  name: 'check what was allocated before',
  async run(ctx) {
    for (const { state } of PROVIDERS) if (state !== undefined) await check(ctx, state);
    return undefined;
  },
};

async function check(ctx: BootContext, state: ProviderState): Promise<void> {
  const config = need(ctx, 'nodeConfig');
  const { rootDir } = config.flags;
  let opened: ProviderStateOpened;
  try {
    opened = await openAllocationState(config, state);
  } catch (error) {
    throw refused(state, messageOf(error));
  }
  if (!opened.ok) throw refused(state, opened.message);
  if (opened.first !== null) await putFirst(ctx, { rootDir, state, text: opened.first });
}

/** Reads alone. @throws when the file cannot be read, or the policy cannot be had on this machine. */
export async function openAllocationState(config: NodeConfig, state: ProviderState): Promise<ProviderStateOpened> {
  const file = `${config.flags.rootDir}/${state.file}`;
  let text: string | null;
  try {
    text = (await readRegular(file, { own: true, bytesMax: state.bytesMax })).toString('utf8');
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw new Error(`${file} cannot be read: ${messageOf(error)}`);
    text = null;
  }
  return state.open(text, { config, host: { cpus: () => readCpus(), numaNodes: () => readNumaNodes() }, file });
}

/** Nothing depends on it now: a disk that cannot be written holds nothing up. */
async function putFirst(
  ctx: BootContext,
  { rootDir, state, text }: { rootDir: string; state: ProviderState; text: string },
): Promise<void> {
  const [file, aside] = [`${rootDir}/${state.file}`, `${rootDir}/.${state.file}.tmp`];
  try {
    await createHostFs().writeFile(aside, text, { mode: FILE_MODE, fsync: true });
    await rename(aside, file);
    await using dir = await open(rootDir);
    await dir.sync();
  } catch (error) {
    const err = messageOf(error);
    need(ctx, 'log').warn({ file, err }, `the empty state of ${state.owner} could not be written; tried again at the next start`);
  }
}

function refused({ owner, field }: ProviderState, what: string): StartError {
  return new StartError(`${owner} cannot start`, [{ where: field, what }]);
}
