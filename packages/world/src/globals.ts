/**
 * The only place where the simulation reaches the process it runs in: letting promises settle, hashes, and errors that nobody
 * caught. Nothing here can be seen by the simulated node, so it makes no run differ from another.
 */
import { createHash } from 'node:crypto';
import process from 'node:process';
import { setImmediate } from 'node:timers';

/** Resolves when every promise that can settle without time has settled. */
export function drain(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

export function md5Hex(text: string | Uint8Array): string {
  return createHash('md5').update(text).digest('hex');
}
export function sha256Hex(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Real milliseconds, for speed figures only. */
export function realMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

/** Errors that escaped the node: in a real daemon each would end the process. Replaces nothing that others listen to. */
export function onUncaught(fn: (error: Error) => void): Disposable {
  const heard = (thrown: unknown) => fn(thrown instanceof Error ? thrown : new Error(String(thrown)));
  process.on('unhandledRejection', heard);
  process.on('uncaughtException', heard);
  return {
    [Symbol.dispose]() {
      process.off('unhandledRejection', heard);
      process.off('uncaughtException', heard);
    },
  };
}
