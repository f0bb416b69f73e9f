/**
 * More than one connection in a turn of the event loop. libuv takes one of each listener and then looks at everything else
 * (libuv 1.45, "don't accept() connections in a loop"), so on a busy thread a thousand connections that say nothing hold up
 * the one behind them for half a minute.
 */
import type { Server } from 'node:net';
import koffi from 'koffi';
import { HANDSHAKE_TIMEOUT_MS } from './netConnections.ts';

/** Connections of one listener in a turn: each costs some 0.1 ms. */
export const ACCEPTS_MAX = 128;
/** `SOCK_NONBLOCK | SOCK_CLOEXEC` of Linux on every architecture that Node has. */
const FLAGS = 0o2_004_000;

/** Node's own handle of a socket, which its types do not name. */
interface Handle {
  fd: number;
  open(fd: number): number;
  close(): void;
  onconnection?(this: Handle, error: number, client: Handle): void;
  readonly constructor: new (kind: number) => Handle;
}
/** `TCPConstants.SOCKET` of Node. */
const SOCKET = 0;

/** `IPPROTO_TCP` and `TCP_DEFER_ACCEPT` of Linux. */
const TCP = 6;
const DEFER_ACCEPT = 9;
/** For so long the kernel keeps a connection that says nothing to itself: as long as a handshake may take. */
const SILENT_SECONDS = HANDSHAKE_TIMEOUT_MS / 1000;

interface Calls {
  accept(fd: number, address: null, length: null, flags: number): number;
  setOption(fd: number, level: number, name: number, value: readonly number[], bytes: number): number;
}
let calls: Calls | null | undefined;

/** accept4 and setsockopt of the C library. Null: this system has no such calls. */
function systemCalls(): Calls | null {
  if (process.platform !== 'linux') return null;
  try {
    const libc = koffi.load('libc.so.6');
    return {
      accept: libc.func('int accept4(int fd, void *address, void *length, int flags)'),
      setOption: libc.func('int setsockopt(int fd, int level, int name, const int *value, unsigned int bytes)'),
    };
  } catch {
    return null;
  }
}

/** Null: this system has none. Asked for ahead by a thread, which may not be ended while koffi loads (`loaded` of the watchdog). */
export function acceptCalls(): Calls | null {
  if (calls === undefined) calls = systemCalls();
  return calls;
}

function handleOf(server: Server): Handle | null {
  return Reflect.get(server, '_handle') as Handle | null;
}

/**
 * For a TCP server that listens and whose clients speak first: connections that say nothing stay in the kernel for a while, and
 * of the others each brings those behind it along.
 */
export function acceptMany(server: Server): void {
  const known = acceptCalls();
  if (known === null) return;
  const { accept, setOption } = known;
  // Refused: silent ones come as all others do.
  setOption(handleOf(server)?.fd ?? -1, TCP, DEFER_ACCEPT, [SILENT_SECONDS], 4);
  let inside = false;
  server.on('connection', () => {
    const handle = handleOf(server);
    if (inside || handle?.onconnection === undefined || handle.fd < 0) return;
    inside = true;
    try {
      for (let n = 1; n < ACCEPTS_MAX; n++) {
        const fd = accept(handle.fd, null, null, FLAGS);
        // Nobody waits; or no descriptors are left, which libuv meets next and tells.
        if (fd < 0) break;
        const client = new handle.constructor(SOCKET);
        client.open(fd);
        handle.onconnection(0, client);
        // Its listener closed the server.
        if (handleOf(server) !== handle) break;
      }
    } finally {
      inside = false;
    }
  });
}
