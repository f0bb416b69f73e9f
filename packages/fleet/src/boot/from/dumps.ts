/** Dumps of a cluster: files, and folders of them, which `kubectl get -o yaml`, `-o json` and `kubectl cluster-info dump` write. */
import { constants } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Twin } from '../../from/twin.ts';
import { UsageError } from '../args.ts';
import { itemsIn } from './items.ts';

const NAMED = /\.(?:json|ya?ml)$/i;
const DEPTH_MAX = 4;
const FILES_MAX = 20_000;
const CHUNK_BYTES = 256 * 1024;

/** @throws UsageError that names the path that is not there, or holds no file. */
export async function readDumps(paths: readonly string[], twin: Twin, signal: AbortSignal): Promise<void> {
  for (const path of paths) {
    const files: string[] = [];
    await gather(path, files, 0).catch((error: unknown) => {
      throw error instanceof UsageError ? error : new UsageError(`${path} cannot be read: ${messageOf(error)}`);
    });
    if (files.length === 0) throw new UsageError(`${path} holds no file that ends in .json, .yaml or .yml`);
    for (const file of files) {
      if (signal.aborted) return;
      await readDump(file, twin).catch((error: unknown) => twin.unreadable(file, messageOf(error)));
    }
  }
}

/** Files below a folder in the order of their names; links to folders are not followed. */
async function gather(path: string, files: string[], depth: number): Promise<void> {
  if (depth === 0 && !(await stat(path)).isDirectory()) {
    files.push(path);
    return;
  }
  const entries = await readdir(path, { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const at = join(path, entry.name);
    if (entry.isDirectory()) {
      if (depth < DEPTH_MAX) await gather(at, files, depth + 1);
    } else if (NAMED.test(entry.name)) files.push(at);
    if (files.length > FILES_MAX) throw new UsageError(`${path} holds more than ${FILES_MAX} files`);
  }
}

async function readDump(file: string, twin: Twin): Promise<void> {
  // A FIFO would wait for a writer.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!(await handle.stat()).isFile()) throw new Error('it is no file');
    for await (const item of itemsIn(handle.createReadStream({ highWaterMark: CHUNK_BYTES, autoClose: false }) as AsyncIterable<Buffer>)) {
      if ('why' in item) twin.unreadable(file, item.why);
      else for (const object of objectsIn(item.object)) twin.add(object, file);
    }
  } finally {
    await handle.close();
  }
}

/** A list that stands on one line, as `items: [...]`. */
function objectsIn(object: unknown): unknown[] {
  return isRecord(object) && Array.isArray(object.items) && String(object.kind).endsWith('List') ? object.items : [object];
}
