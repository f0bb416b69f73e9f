/** Reads and writes the kernel settings of a node, below /proc/sys. */
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { KERNEL_SETTINGS, type KernelReading, type KernelSetting } from '../../machines/host/kernelSettings.ts';
import { messageOf } from '../errors.ts';

export const PROC_SYS = '/proc/sys';
/** A number and a line break. */
const BYTES_MAX = 64;

/** By path. Never rejects. */
export async function readKernelSettings(root: string): Promise<Map<string, KernelReading>> {
  return new Map(await Promise.all(KERNEL_SETTINGS.map(async ({ path }) => [path, await read(join(root, path))] as const)));
}

async function read(file: string): Promise<KernelReading> {
  try {
    await using handle = await open(file);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(BYTES_MAX), 0, BYTES_MAX, 0);
    return { ok: true, text: buffer.toString('latin1', 0, bytesRead) };
  } catch (error) {
    return { ok: false, why: messageOf(error) };
  }
}

/** @throws as the kernel says: it is read-only, or this user has no right. */
export async function writeKernelSetting(root: string, { path, value }: KernelSetting): Promise<void> {
  await writeFile(join(root, path), String(value));
}
