/**
 * What a thousand idle pod workers cost: a node of the production tree on a hollow runtime, empty, and another one with
 * a thousand static pods of one container each, all running and at rest. The difference is more than the workers: the
 * ledger of pods, their statuses, the listings and the hollow runtime's own containers are in it. Each in a process of
 * its own under the daemon's V8 flags, so that neither has the other's garbage. Run with --expose-gc (scripts/bench.sh does).
 * Options: --pods=1000 --rounds=3 --out=FILE
 */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { podsView } from '../src/machines/pods/manager/messages.ts';

import { collected, putPods, startHollowNode } from './lib/hollowNode.ts';
import { numberOption, option, projectRoot, report, say, until } from './lib/report.ts';

interface Reading {
  workers: number;
  heapMiB: number;
  rssMiB: number;
}
/** The daemon's own: how much young garbage may grow before it is collected decides most of the resident size. */
const launcher = readFileSync(join(projectRoot, 'scripts/launch.sh'), 'utf8');
const BURST_FLAGS = /^burst_v8_flags='(.*)'$/m.exec(launcher)?.[1] ?? '';
const LAUNCHER_FLAGS = (/^v8_flags=\$\{ACTORLET_V8_FLAGS-(.*)\}$/m.exec(launcher)?.[1] ?? '')
  .replace('$burst_v8_flags', BURST_FLAGS)
  .split(' ');
const RSS_MIB_MAX = 64;
/** No worker has moved for this long: at rest. */
const QUIET_MS = 3_000;

async function measure(pods: number): Promise<Reading> {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-workers-'));
  try {
    putPods(
      dir,
      Array.from({ length: pods }, (_, i) => `pod-${i}`),
    );
    const { node, runtime } = await startHollowNode({ dir, name: 'node', maxPods: pods + 10 });
    const workers = () => node.tree.registry.read(podsView)?.value.records.size ?? 0;
    const running = () => runtime.dump().containers.filter((c) => c.state === 'CONTAINER_RUNNING').length;
    await until('every pod to run', async () => (workers() === pods && running() === pods ? true : undefined), {
      timeoutMs: 300_000,
      everyMs: 200,
    });
    let version = -1;
    let sinceMs = 0;
    await until(
      'every worker to rest',
      async () => {
        const now = node.tree.registry.read(podsView)?.version ?? -1;
        if (now !== version) {
          version = now;
          sinceMs = performance.now();
        }
        return performance.now() - sinceMs > QUIET_MS ? true : undefined;
      },
      { timeoutMs: 120_000, everyMs: 100 },
    );
    const reading = { workers: workers(), ...(await collected()) };
    await node.stop();
    runtime.close();
    return reading;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function inOwnProcess(pods: number): Reading {
  const args = [...LAUNCHER_FLAGS, '--expose-gc', '--disable-warning=ExperimentalWarning', import.meta.filename, `--measure=${pods}`];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })) as Reading;
}

const only = option('measure');
if (only !== undefined) {
  process.stdout.write(JSON.stringify(await measure(Number(only))));
} else {
  const pods = numberOption('pods', 1000);
  const rounds = numberOption('rounds', 3);
  const samples = Array.from({ length: rounds }, (_, i) => {
    say(`round ${i + 1} of ${rounds}: ${pods} idle pod workers`);
    const empty = inOwnProcess(0);
    const full = inOwnProcess(pods);
    const above = (key: 'heapMiB' | 'rssMiB') => Math.round((full[key] - empty[key]) * 10) / 10;
    return { empty, full, aboveEmpty: { heapMiB: above('heapMiB'), rssMiB: above('rssMiB') } };
  });
  const rss = samples.map((s) => s.aboveEmpty.rssMiB).sort((a, b) => a - b);
  await report('workers', {
    pods,
    targets: { rssMiB: RSS_MIB_MAX },
    rssMiBAboveEmpty: rss,
    met: (rss.at(-1) ?? Number.NaN) <= RSS_MIB_MAX,
    samples,
  });
}
