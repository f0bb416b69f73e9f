/** The step that looks at which CPUs an earlier node agent allocated, and refuses to go on over another policy's ledger. */

import { open, rename } from 'node:fs/promises';
import { cpuPlaceOf } from '../../../actors/cpuPlace.ts';
import { CPU_STATE_BYTES_MAX, CPU_STATE_FILE, encodeCpuState, openCpuState } from '../../../machines/allocation/cpus/file.ts';
import type { CpuPlace } from '../../../machines/allocation/cpus/ledger.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import { readRegular } from '../../../process/regularFile.ts';
import { createHostFs } from '../../dependencies/fs.ts';
import { readCpus } from '../../dependencies/machine/cpuTopology.ts';
import { StartError } from '../../errors.ts';
import { type BootContext, need, type Step } from '../context.ts';

const FILE_MODE = 0o600;

/** Under policy none the file says just that, for whoever configures another one later; under static the CPU manager writes it. */
export const checkCpuState: Step = {
  name: 'check the state of the CPU manager',
  async run(ctx) {
    const { rootDir } = need(ctx, 'nodeConfig').flags;
    const file = `${rootDir}/${CPU_STATE_FILE}`;
    const place = placeOf(ctx);
    const opened = openCpuState(await textOf(file), { place, file });
    if (!opened.ok) throw refused(opened.message);
    if (place === null && opened.isNew) await putNone(ctx, { rootDir, file });
    return undefined;
  },
};

function placeOf(ctx: BootContext): CpuPlace | null {
  try {
    return cpuPlaceOf(need(ctx, 'nodeConfig'), { cpus: () => readCpus() });
  } catch (error) {
    throw refused(messageOf(error));
  }
}

async function textOf(file: string): Promise<string | null> {
  try {
    return (await readRegular(file, { own: true, bytesMax: CPU_STATE_BYTES_MAX })).toString('utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw refused(`${file} cannot be read: ${messageOf(error)}`);
  }
}

/** Nothing depends on it now: a disk that cannot be written holds nothing up. */
async function putNone(ctx: BootContext, { rootDir, file }: { rootDir: string; file: string }): Promise<void> {
  const aside = `${rootDir}/.${CPU_STATE_FILE}.tmp`;
  try {
    await createHostFs().writeFile(aside, encodeCpuState(null), { mode: FILE_MODE, fsync: true });
    await rename(aside, file);
    await using dir = await open(rootDir);
    await dir.sync();
  } catch (error) {
    const err = messageOf(error);
    need(ctx, 'log').warn({ file, err }, 'the empty record of allocated CPUs could not be written; tried again at the next start');
  }
}

function refused(what: string): StartError {
  return new StartError('the CPU manager cannot start', [{ where: 'cpuManagerPolicy (--cpu-manager-policy)', what }]);
}
