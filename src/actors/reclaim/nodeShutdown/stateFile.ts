/** Reads and writes the state file of the node shutdown manager. Neither fails: a shutdown waits for no file. */

import {
  decodeState,
  encodeState,
  NO_SHUTDOWN,
  type ShutdownState,
  STATE_BYTES_MAX,
  STATE_FILE,
} from '../../../machines/reclaim/nodeShutdown/stateFile.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { ActorCtx } from '../../supervision/types.ts';

const MODE = 0o644;

interface Place {
  rootDir: string;
  recorded: boolean;
}

function pathOf({ rootDir }: Place): string {
  return `${rootDir.replace(/\/+$/, '')}/${STATE_FILE}`;
}

export async function loadState({ ports, log }: ActorCtx, place: Place): Promise<ShutdownState> {
  if (!place.recorded) return NO_SHUTDOWN;
  const path = pathOf(place);
  try {
    return decodeState(new TextDecoder().decode(await ports.fs.readFile(path, { bytesMax: STATE_BYTES_MAX, own: true })));
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return NO_SHUTDOWN;
    log.warn({ path, err: messageOf(error) }, 'the state of the last shutdown of this node cannot be read; it is taken as none');
    return NO_SHUTDOWN;
  }
}

export async function storeState({ ports, log }: ActorCtx, place: Place, state: ShutdownState): Promise<void> {
  if (!place.recorded) return;
  const path = pathOf(place);
  const fresh = `${path}.tmp`;
  try {
    await ports.fs.writeFile(fresh, encodeState(state), { mode: MODE, fsync: true });
    await ports.fs.rename(fresh, path);
    await ports.fs.fsyncDir(place.rootDir);
  } catch (error) {
    log.warn({ path, err: messageOf(error) }, 'the state of this shutdown cannot be written; the shutdown goes on');
  }
}
