/**
 * A thread in a pod's network namespace. It enters for good: one that is not root could not come back. A socket stays in the
 * namespace where it was made, so its descriptor serves the other threads too.
 */
import { closeSync, openSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import koffi from 'koffi';
import type { Answer, Ask } from './dial.ts';

const CLONE_NEWNET = 0x40000000;
const AF_INET = 2;
const SOCK_STREAM_CLOEXEC = 1 | 0o2000000;
const SOL_SOCKET = 1;
const SO_SNDTIMEO = 21;
const CONNECT_WITHIN_S = 5n;

const libc = koffi.load('libc.so.6');
const setns = libc.func('int setns(int fd, int type)');
const socket = libc.func('int socket(int domain, int type, int protocol)');
const setsockopt = libc.func('int setsockopt(int fd, int level, int name, const void *value, uint32_t bytes)');
const connect = libc.func('int connect(int fd, const void *address, uint32_t bytes)');

function failed(call: string): Error {
  const errno = koffi.errno();
  const name = Object.entries(koffi.os.errno).find(([, n]) => n === errno)?.[0] ?? String(errno);
  return new Error(`${call}: ${name}`);
}

function enter(net: string): void {
  const fd = openSync(net, 'r');
  try {
    if (setns(fd, CLONE_NEWNET) !== 0) throw failed('setns');
  } finally {
    closeSync(fd);
  }
}

function dial({ address, port }: Ask): number {
  const fd = socket(AF_INET, SOCK_STREAM_CLOEXEC, 0) as number;
  if (fd < 0) throw failed('socket');
  const wait = new BigInt64Array([CONNECT_WITHIN_S, 0n]);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, wait, wait.byteLength);
  const at = Buffer.alloc(16);
  at.writeUInt16LE(AF_INET, 0);
  at.writeUInt16BE(port, 2);
  at.set(address.split('.').map(Number), 4);
  if (connect(fd, at, at.length) === 0) return fd;
  const error = failed('connect');
  closeSync(fd);
  throw error;
}

parentPort?.postMessage({ id: 0, fd: -1, error: '' } satisfies Answer);
const { net } = workerData as { net: string };
enter(net);
parentPort?.on('message', (ask: Ask) => {
  let answer: Answer;
  try {
    answer = { id: ask.id, fd: dial(ask), error: '' };
  } catch (error) {
    answer = { id: ask.id, fd: -1, error: (error as Error).message };
  }
  parentPort?.postMessage(answer);
});
