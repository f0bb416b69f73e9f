/** `actorctl debugger`: the daemon's debugger on a loopback port of this process, for a tool of this machine, until Ctrl-C. */
import { connect, createServer, type Socket } from 'node:net';
import { adminClient, EXIT } from '@actorlet/admin/src/client.ts';
import { type Asked, printData, wantsData } from '../asked.ts';

/** A tool has one or two. Every user of the machine can connect; without the path of the address the daemon answers 400. */
const CONNECTIONS_MAX = 16;

interface Door {
  socketPath: string;
  path: string;
}

export async function runDebugger(asked: Asked): Promise<number> {
  const { io, client } = asked;
  const door = (await client.post('/debugger', {})) as Door;
  const open = new Set<Socket>();
  const relay = createServer((near) => {
    const far = connect(door.socketPath);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from);
      from.pipe(to);
      from.on('error', () => to.destroy());
      from.on('close', () => {
        open.delete(from);
        to.destroy();
      });
    }
  });
  relay.maxConnections = CONNECTIONS_MAX;
  try {
    const port = await new Promise<number>((resolve, reject) => {
      relay.once('error', reject);
      relay.listen(0, '127.0.0.1', () => resolve((relay.address() as { port: number }).port));
    });
    const at = `127.0.0.1:${port}${door.path}`;
    const tool = `devtools://devtools/bundled/js_app.html?v8only=true&ws=${at}`;
    if (wantsData(asked.format)) printData(asked, { webSocketDebuggerUrl: `ws://${at}`, devtoolsFrontendUrl: tool });
    else io.out(`ws://${at}\n\nOpen in Chrome:\n${tool}\n\nWho has this address runs code as the daemon. Ctrl-C closes it.\n`);
    if (!io.signal.aborted) await new Promise<void>((resolve) => io.signal.addEventListener('abort', () => resolve(), { once: true }));
  } finally {
    relay.close();
    for (const socket of open) socket.destroy();
    // Ctrl-C has ended the other client's questions.
    await adminClient(client.socketPath, new AbortController().signal).send('DELETE', '/debugger');
  }
  return EXIT.ok;
}
