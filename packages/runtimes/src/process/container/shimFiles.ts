/** The files in which the shim of one container reports, and the FIFO that releases it. */
import { closeSync, constants, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { readRegularSync } from '@actorlet/process/src/regularFile.ts';
import type { Layout } from '../store/store.ts';
import type { ShimPaths } from './shim.ts';

const WORD_BYTES_MAX = 64;

export class ShimFiles {
  readonly paths: ShimPaths;
  #ackFd: number | null = null;

  constructor(layout: Layout, id: string) {
    this.paths = {
      shim: layout.shim,
      init: layout.init,
      exit: layout.exit(id),
      ready: layout.ready(id),
      ack: layout.container(id, 'ack'),
    };
  }

  /** The code the shim wrote; undefined while it is not there or not complete. */
  exit(): { code: number; atMs: number } | undefined {
    const { exit } = this.paths;
    try {
      const text = readRegularSync(exit, { own: true, bytesMax: WORD_BYTES_MAX }).toString('latin1');
      return text.endsWith('\n') ? { code: Number.parseInt(text, 10), atMs: statSync(exit).mtimeMs } : undefined;
    } catch {
      return undefined;
    }
  }

  isReady(): boolean {
    return statSync(this.paths.ready, { throwIfNoEntry: false }) !== undefined;
  }

  dropReady(): void {
    rmSync(this.paths.ready, { force: true });
  }

  /** Releases a shim that waits after the command's end. */
  acknowledge(): void {
    // Opened both ways: the word stays in the FIFO even if the shim is not yet there to read it.
    this.#ackFd ??= openSync(this.paths.ack, constants.O_RDWR | constants.O_NONBLOCK);
    writeSync(this.#ackFd, '\n');
  }

  close(): void {
    if (this.#ackFd !== null) closeSync(this.#ackFd);
    this.#ackFd = null;
  }
}
