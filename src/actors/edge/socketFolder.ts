/** The folder of a socket that agents of this node mount: the socket is another one after each start. */
import { codeOf } from '../../machines/text/errors.ts';
import type { HostFs } from '../../ports/ports.ts';

/** Mode of the folder, from the reference. */
const FOLDER_MODE = 0o750;

/** The path of the socket, where nothing is. */
export async function freshSocket(fs: Pick<HostFs, 'mkdirp' | 'unlink'>, folder: string, name: string): Promise<string> {
  await fs.mkdirp(folder, FOLDER_MODE);
  const path = `${folder}/${name}`;
  try {
    // A daemon that was killed left it: one that runs has the root directory locked (boot/steps/prepare.ts).
    await fs.unlink(path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
  return path;
}
