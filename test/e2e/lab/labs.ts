/** Vitest's global set-up of e2e tests: ends what their workers shared, after the last file, also where a worker died. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mountsUnder, processesInCgroups, processesOf, removeBridge, removeCgroups, removeMounts } from './cleanup.ts';
import { until } from './ports.ts';

interface Lab {
  dir: string;
  bridge: string;
  cgroupParent: string;
}
const ENDED_TIMEOUT_MS = 20_000;

/** Whether somebody ends a shared instance. */
export const sharesLabs = (): boolean => process.env.ACTORLET_E2E_LABS !== undefined;

export function noteLab(lab: Lab): void {
  writeFileSync(join(process.env.ACTORLET_E2E_LABS ?? '', randomUUID()), JSON.stringify(lab));
}

/** Ends an instance that its file did not. Returns what is left of it. */
async function endLab({ dir, bridge, cgroupParent }: Lab): Promise<string[]> {
  const processes = () => [...processesOf(dir), ...processesInCgroups(cgroupParent)];
  const ended = () => {
    for (const pid of processes()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // Ended meanwhile.
      }
    }
    return processes().length === 0;
  };
  await until('shims and containers to end', ended, { timeoutMs: ENDED_TIMEOUT_MS }).catch(() => {});
  removeMounts(dir);
  removeBridge(bridge);
  const cgroups = removeCgroups(cgroupParent).map((path) => `cgroup ${path}`);
  const left = [...processes().map((pid) => `process ${pid}`), ...mountsUnder(dir).map((path) => `mount ${path}`), ...cgroups];
  if (left.length === 0) rmSync(dir, { recursive: true, force: true });
  return left;
}

export default function setup(): () => Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'actorlet-labs-'));
  process.env.ACTORLET_E2E_LABS = folder;
  return async () => {
    const left: string[] = [];
    for (const name of readdirSync(folder)) left.push(...(await endLab(JSON.parse(readFileSync(join(folder, name), 'utf8')) as Lab)));
    rmSync(folder, { recursive: true });
    if (left.length > 0) throw new Error(`e2e tests left behind: ${left.join(', ')}`);
  };
}
