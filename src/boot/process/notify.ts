/** Telling systemd (boot-and-node 10.5): datagrams to NOTIFY_SOCKET, and the watchdog's timing. */
import type { Libc } from './libc.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Sends one state (`READY=1`); false when there is no socket to send to. Throws when sending fails. */
export type Notify = (state: string) => boolean;

/** `libc` is asked for only when there is a socket. */
export function createNotify(env: Env, libc: () => Libc): Notify {
  const socket = env.NOTIFY_SOCKET ?? '';
  if (socket === '') return () => false;
  const path = socket.startsWith('@') ? `\0${socket.slice(1)}` : socket;
  return (state) => {
    const c = libc();
    const fd = c.datagramSocket();
    try {
      c.sendUnix(fd, path, new TextEncoder().encode(state));
    } finally {
      c.close(fd);
    }
    return true;
  };
}

/** Milliseconds between two `WATCHDOG=1`; undefined = not wanted of this process. Throws on a malformed variable. */
export function watchdogIntervalMs(env: Env, pid: number): number | undefined {
  const usec = env.WATCHDOG_USEC ?? '';
  if (usec === '' || usec === '0') return undefined;
  if (!/^\d{1,15}$/.test(usec)) throw new Error(`WATCHDOG_USEC=${JSON.stringify(usec)} is not a number of microseconds`);
  const wanted = env.WATCHDOG_PID ?? '';
  if (wanted !== '' && !/^\d+$/.test(wanted)) throw new Error(`WATCHDOG_PID=${JSON.stringify(wanted)} is not a process id`);
  if (wanted !== '' && Number(wanted) !== pid) return undefined;
  return Number(usec) / 1_000 / 2;
}
