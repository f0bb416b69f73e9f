/** The debugger thread: see `debugger.ts`. It goes on while the main thread stands at a breakpoint. */
import { createServer } from 'node:http';
import { Session } from 'node:inspector';
import { parentPort, workerData } from 'node:worker_threads';
import { type WebSocket, WebSocketServer } from 'ws';
import { beatFor } from '../../../actors/supervision/watchdog.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { DebuggerData } from './debugger.ts';

/** Nobody is connected: the tool was closed, or the command that asked for it was killed. */
const IDLE_MS = 60_000;
const BEAT_MS = 500;
/** The largest are scripts that a tool edits. */
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;

const { socketPath, path, heartbeat } = workerData as DebuggerData;
const server = createServer((_req, res) => res.writeHead(404).end());
const sockets = new WebSocketServer({ server, path, maxPayload: MESSAGE_BYTES_MAX });
let idle = setTimeout(end, IDLE_MS);

function end(): void {
  process.exit();
}

/** One tool. Its end lets the main thread go on. */
function attach(socket: WebSocket): void {
  clearTimeout(idle);
  const session = new Session();
  session.connectToMainThread();
  let paused: NodeJS.Timeout | undefined;
  const goOn = (): void => clearInterval(paused);
  session.on('inspectorNotification', ({ method, params }: { method: string; params?: unknown }) => {
    if (method === 'Debugger.paused') {
      goOn();
      paused = setInterval(() => beatFor(heartbeat), BEAT_MS);
    } else if (method === 'Debugger.resumed') goOn();
    socket.send(JSON.stringify({ method, params }));
  });
  socket.on('message', (data) => obey(session, String(data), (answer) => socket.send(JSON.stringify(answer))));
  socket.on('error', () => socket.terminate());
  socket.on('close', () => {
    goOn();
    session.disconnect();
    if (sockets.clients.size === 0) idle = setTimeout(end, IDLE_MS);
  });
}

function obey(session: Session, text: string, answer: (value: object) => void): void {
  let id: unknown;
  try {
    const asked = JSON.parse(text) as { id?: unknown; method?: unknown; params?: object };
    id = asked.id;
    session.post(String(asked.method), asked.params ?? {}, (error, result) =>
      answer(error === null ? { id, result: result ?? {} } : { id, error: { code: -32_000, message: messageOf(error) } }),
    );
  } catch (error) {
    answer({ id, error: { code: -32_600, message: messageOf(error) } });
  }
}

sockets.on('connection', attach);
server.listen(socketPath, () => parentPort?.postMessage('listening'));
