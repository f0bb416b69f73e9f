/** `actorctl record`: switches the recording of inputs of a running daemon on and off. */
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import type { InputsRecorded } from '@actorlet/kubelet/ports/machine/inputRecorder.ts';
import { type Asked, printData, wantsData } from '../../asked.ts';

/** The daemon ends in order and starts anew: less than a second on a quiet machine. */
const BEGINS_WITHIN_MS = 60_000;
const LOOK_EVERY_MS = 100;
const MIB = 1024 * 1024;

type Answer = { recorded: InputsRecorded | null };

export async function runRecord(
  asked: Asked,
  what: 'start' | 'stop' | 'show',
  o: { folder: string; maxMib: number; private: boolean },
): Promise<number> {
  const { client } = asked;
  if (what === 'stop') {
    const { status, body } = await client.send('DELETE', '/record');
    if (status !== 200) throw new CtlError(EXIT.no, body.trim(), status);
    return shown(asked, JSON.parse(body) as Answer);
  }
  const before = (await client.json('/record')) as Answer;
  if (what === 'show') return shown(asked, before);
  await client.post('/record', { folder: resolve(o.folder), maxMib: o.maxMib, isPrivate: o.private });
  return shown(asked, await begun(asked, before.recorded?.file));
}

async function begun({ client, io }: Asked, before: string | undefined): Promise<Answer> {
  const deadline = performance.now() + BEGINS_WITHIN_MS;
  for (;;) {
    const answer = await client.json('/record').catch((error: unknown) => {
      // Nobody listens while the daemon starts anew.
      if (error instanceof CtlError && (error.exitCode === EXIT.noDaemon || error.exitCode === EXIT.failed)) return { recorded: null };
      throw error;
    });
    const { recorded } = answer as Answer;
    if (recorded !== null && recorded.file !== before) return { recorded };
    if (performance.now() > deadline)
      throw new CtlError(EXIT.failed, 'The daemon does not record a minute later. Its log says why; actorctl record shows the state.');
    await sleep(LOOK_EVERY_MS, undefined, { signal: io.signal });
  }
}

function shown(asked: Asked, { recorded }: Answer): number {
  if (wantsData(asked.format)) printData(asked, { recorded });
  else if (recorded === null) asked.io.out('Nothing is recorded.\n');
  else {
    const { file, bytes, maxMib, ended } = recorded;
    const size = `${(bytes / MIB).toFixed(1)} MiB of ${maxMib} MiB`;
    asked.io.out(ended === '' ? `${file}: is written, ${size}\n` : `${file}: ended (${ended}), ${size}\n`);
  }
  return EXIT.ok;
}
