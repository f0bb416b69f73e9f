/** The step that looks at what an earlier node agent handed out of the CPUs, and refuses to go on over another policy's book. */
import { readCpuState } from '../../actors/allocation/cpus/cpus.ts';
import { cpuPlaceOf } from '../../actors/cpuPlace.ts';
import { CPU_STATE_FILE, encodeCpuState, openCpuState } from '../../machines/allocation/cpus/file.ts';
import { messageOf, StartError } from '../errors.ts';
import { type BootContext, need, type Step } from './context.ts';

const FILE_MODE = 0o600;
const POLICY = 'cpuManagerPolicy (--cpu-manager-policy)';

/** Under policy none the file says just that, for whoever configures another one later; under static the CPU manager writes it. */
export const checkCpuState: Step = {
  name: 'check the state of the CPU manager',
  async run(ctx) {
    const config = need(ctx, 'nodeConfig');
    const { fs, host } = need(ctx, 'ports');
    const file = `${config.flags.rootDir}/${CPU_STATE_FILE}`;
    const place = (() => {
      try {
        return cpuPlaceOf(config, host);
      } catch (error) {
        throw refused(messageOf(error));
      }
    })();
    const text = await readCpuState(fs, file).catch((error: unknown) => {
      throw refused(`${file} cannot be read: ${messageOf(error)}`);
    });
    const opened = openCpuState(text, { place, file });
    if (!opened.ok) throw refused(opened.message);
    if (place === null && opened.isNew) await putNone(ctx, file);
    return undefined;
  },
};

/** Nothing depends on it now: a disk that cannot be written holds nothing up. */
async function putNone(ctx: BootContext, file: string): Promise<void> {
  const { fs } = need(ctx, 'ports');
  const dir = file.slice(0, file.lastIndexOf('/'));
  const aside = `${dir}/.${CPU_STATE_FILE}.tmp`;
  try {
    await fs.writeFile(aside, encodeCpuState(null), { mode: FILE_MODE, fsync: true });
    await fs.rename(aside, file);
    await fs.fsyncDir(dir);
  } catch (error) {
    need(ctx, 'log').warn(
      { file, err: messageOf(error) },
      'that no CPUs are handed out could not be written; tried again at the next start',
    );
  }
}

function refused(what: string): StartError {
  return new StartError('the CPU manager cannot start', [{ where: POLICY, what }]);
}
