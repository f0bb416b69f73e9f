/** `actorctl --recording FILE ui`: the inspection page of a node that was, with a slider through its time. */

import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { LIFE_FRAME } from '@actorlet/inspect/src/feed/podDetail.ts';
import { PastFeed } from '@actorlet/inspect/src/recording/pastFeed.ts';
import { PageServer, type Target } from '@actorlet/inspect/src/server/pageServer.ts';
import type { Logger } from '@actorlet/kubelet/ports/ports.ts';
import type { CtlIo } from '../../io.ts';
import { openBrowser } from '../inspect.ts';
import { openRecording } from './recording.ts';

const PORT_MAX = 65_535;

export interface RecordedUi {
  file: string;
  at: string;
  port: number;
  open: boolean;
}

/** Serves the page until Ctrl-C. */
export async function runRecordedUi(io: CtlIo, o: RecordedUi): Promise<number> {
  if (!(Number.isInteger(o.port) && o.port >= 0 && o.port <= PORT_MAX)) throw new CtlError(EXIT.usage, `--port takes 0 to ${PORT_MAX}.`);
  const { recording, atMs, remarks } = await openRecording(o.file, o.at);
  for (const remark of remarks) io.err(`${remark}\n`);
  return servePage(io, o, new PastFeed(recording, { startMs: atMs, life: LIFE_FRAME }));
}

/** Serves the page on a feed until Ctrl-C. */
export async function servePage(io: CtlIo, o: Pick<RecordedUi, 'port' | 'open'>, feed: Target): Promise<number> {
  const server = new PageServer({ log: pageLog(io), targets: { feed } });
  try {
    await server.listen({ host: '127.0.0.1', port: o.port, flag: '--port' }, (url) => {
      io.out(`${url}\n`);
      if (o.open) void openBrowser(io, url);
    });
    if (!io.signal.aborted) await new Promise<void>((resolve) => io.signal.addEventListener('abort', () => resolve(), { once: true }));
  } finally {
    server[Symbol.dispose]();
  }
  return EXIT.ok;
}

/** What a served page has to say to the person at the terminal. */
export function pageLog(io: Pick<CtlIo, 'err'>): Logger {
  const say = (about: object, text: string) => io.err(`${text}${Object.keys(about).length === 0 ? '' : ` ${JSON.stringify(about)}`}\n`);
  const log: Logger = { debug: () => {}, info: () => {}, warn: say, error: say, child: () => log };
  return log;
}
