/** Removes whatever a test node may have left: pods, the embedded runtime, mounts, files. Says what it could not. */

import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { CRI_LABELS } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { Charge } from './charge.ts';

const run = promisify(execFile);
/** Tests are over: nobody waits for the grace of their pods. */
const GRACE_SECONDS = 1;
const UMOUNT_TIMEOUT_MS = 10_000;
/** Removal races with files that dying processes still write. */
const REMOVE_RETRIES_MAX = 5;
const REMOVE_RETRY_MS = 100;

/** The daemon must have ended. Resolves with what is left, in words; empty when nothing is. */
export async function cleanUp(c: Charge): Promise<string[]> {
  const left: string[] = [];
  const attempt = async (what: string, fn: () => Promise<unknown>): Promise<void> => {
    try {
      await fn();
    } catch (error) {
      left.push(`${what}: ${messageOf(error)}`);
    }
  };
  if ((c.runtime === 'process' || c.runtime === 'oci') && existsSync(join(c.rootDir, 'sandbox'))) {
    // Loaded only here: a reaper lives as long as its node and needs CRI once.
    await attempt('the embedded runtime could not be emptied', async () => {
      const { stopAll } = await import('@actorlet/runtimes/src/process/admin.ts');
      const said: string[] = [];
      await stopAll(c.rootDir, {
        say: (line) => void said.push(line),
        execPath: process.execPath,
        entry: c.sandboxEntry,
        graceSecondsMax: GRACE_SECONDS,
        // Files of images belong to other ids, which only the runtime may remove.
        purge: c.runtime === 'oci' && !c.keep,
      });
    });
  }
  if (c.runtime === 'containerd') await attempt(`pods at ${c.socket} could not be removed`, () => removePods(c));
  await attempt(`mounts below ${c.dir} could not be removed, so its files were not either`, async () => {
    await unmountBelow(c.dir);
    if (!c.keep) await rm(c.dir, { recursive: true, force: true, maxRetries: REMOVE_RETRIES_MAX, retryDelay: REMOVE_RETRY_MS });
  });
  return left;
}

/** Pods whose names end with the node's: nobody else's are touched. */
export function isOwn(labels: Readonly<Record<string, string>>, nodeName: string): boolean {
  return (labels[CRI_LABELS.podName] ?? '').endsWith(`-${nodeName}`);
}

async function removePods(c: Charge): Promise<void> {
  const { connectTo } = await import('@actorlet/runtimes/src/process/admin.ts');
  const cri = connectTo(c.socket);
  try {
    const { items } = await cri.call('ListPodSandbox', {});
    const failed: string[] = [];
    await Promise.all(
      items
        .filter((s) => isOwn(s.labels, c.nodeName))
        .map(async (s) => {
          try {
            const { containers } = await cri.call('ListContainers', { filter: { podSandboxId: s.id } });
            await Promise.all(
              containers
                .filter((one) => one.state === 'CONTAINER_RUNNING')
                .map((one) => cri.call('StopContainer', { containerId: one.id, timeout: GRACE_SECONDS })),
            );
            await cri.call('StopPodSandbox', { podSandboxId: s.id });
            await cri.call('RemovePodSandbox', { podSandboxId: s.id });
          } catch (error) {
            failed.push(`${s.labels[CRI_LABELS.podName] ?? s.id} (${messageOf(error)})`);
          }
        }),
    );
    if (failed.length > 0) throw new Error(failed.join('; '));
  } finally {
    cri.close();
  }
}

/** Mount points below a folder, deepest first. */
export function mountsBelow(dir: string, mountinfo: string): string[] {
  const octal = (path: string): string => path.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
  return mountinfo
    .split('\n')
    .map((line) => octal(line.split(' ')[4] ?? ''))
    .filter((path) => path.startsWith(`${dir}/`))
    .sort((a, b) => b.length - a.length);
}

/** Files are never removed through a mount: what is mounted may be anybody's. */
async function unmountBelow(dir: string): Promise<void> {
  const present = (): string[] => mountsBelow(dir, readFileSync('/proc/self/mountinfo', 'utf8'));
  for (const path of present()) {
    // A failure shows in the list below.
    await run('umount', [path], { timeout: UMOUNT_TIMEOUT_MS }).catch(() => undefined);
  }
  const still = present();
  if (still.length > 0) throw new Error(still.join(', '));
}
