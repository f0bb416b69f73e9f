/**
 * A fleet whose API server goes away and comes back (KUBEBUILDER_ASSETS, or scripts/setup/control-plane-setup.sh): how long leases were
 * not renewed, by when all are renewed again, and how many nodes the controller manager called NotReady.
 * `--api=local`: that of `actorlet fleet --api local`. `--api=other`: one that the fleet is given a kubeconfig of.
 * `--how=kill`: the API server is killed, again and again, and then left to its supervisor. `freeze`: it is stopped and goes on, so
 * connections hang. `--leader-elect=false`: the controller manager has no leader lease, so it does not end without an API server.
 * Options: --nodes=100 --away-seconds=20 --api=local|other --how=kill|freeze --leader-elect=true|false --rounds=3 --out=FILE
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OfFleet, OtherCluster } from './lib/awayCluster.ts';
import { cleanUpOnce } from './lib/cleanUp.ts';
import { LEASES, type Lease, type Node } from './lib/heartbeats.ts';
import { tenths, UNLIMITED } from './lib/onPlane.ts';
import { numberOption, option, projectRoot, report, say, sleep, summary, until } from './lib/report.ts';

const nodes = numberOption('nodes', 100);
const awaySeconds = numberOption('away-seconds', 20);
const rounds = numberOption('rounds', 3);
const how = option('how') === 'freeze' ? 'freeze' : 'kill';
const api = option('api') ?? 'local';
const leaderElect = option('leader-elect') ?? 'true';
const LONG = { timeoutMs: 600_000, everyMs: 1_000 };
const LOOK_MS = 500;
/** The grace of a node, and the period of the controller manager, with room. */
const JUDGED_MS = 75_000;

interface Event {
  reason: string;
  involvedObject: { kind: string; name: string };
  lastTimestamp: string;
}

const scratch = mkdtempSync(join(tmpdir(), 'actorlet-bench-away-'));
const data = join(scratch, 'plane');
const elect = `--leader-elect=${leaderElect}`;
const cluster = api === 'local' ? new OfFleet(data) : await OtherCluster.start([...UNLIMITED['kube-controller-manager'], elect]);
const fleet: ChildProcess = spawn(
  join(projectRoot, 'bin', 'actorlet'),
  ['fleet', `--nodes=${nodes}`, ...cluster.flags(elect), '--port=0', `--socket=${join(scratch, 'fleet.sock')}`],
  { stdio: ['ignore', 'ignore', 'inherit'] },
);

async function items<T>(path: string): Promise<T[]> {
  return ((await cluster.get(path)) as { items: T[] }).items;
}
const readyOf = (all: readonly Node[]): string[] =>
  all.filter((n) => n.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True')).map((n) => n.metadata.name);
const renewedMs = async (): Promise<Map<string, number>> =>
  new Map((await items<Lease>(LEASES)).map((l) => [l.metadata.name, Date.parse(l.spec.renewTime)]));

async function round() {
  const before = await renewedMs();
  const fromMs = Date.now();
  await cluster.away(how, awaySeconds * 1000);
  const gapsMs = new Map<string, number>();
  let [answeredAfterMs, allRenewedAfterMs] = [0, 0];
  const notReady = new Map<string, number>();
  while (Date.now() - fromMs < awaySeconds * 1000 + JUDGED_MS) {
    await sleep(LOOK_MS);
    const [leases, all] = await Promise.all([renewedMs(), items<Node>('/api/v1/nodes')]).catch(() => [undefined, []] as const);
    if (leases === undefined) continue;
    answeredAfterMs ||= Date.now() - fromMs;
    for (const [name, atMs] of leases) {
      const last = before.get(name) ?? atMs;
      if (atMs <= fromMs) before.set(name, atMs);
      else if (!gapsMs.has(name)) gapsMs.set(name, atMs - last);
    }
    if (gapsMs.size >= nodes) allRenewedAfterMs ||= Date.now() - fromMs;
    const ready = new Set(readyOf(all));
    for (const { metadata } of all)
      if (!ready.has(metadata.name) && !notReady.has(metadata.name)) notReady.set(metadata.name, Date.now() - fromMs);
  }
  const events = (await items<Event>('/api/v1/events?fieldSelector=reason%3DNodeNotReady')).filter(
    (e) => Date.parse(e.lastTimestamp) >= fromMs - 1_000,
  );
  const leaseGapsOfNotReady = [...notReady.keys()].map((name) => (gapsMs.get(name) ?? 0) / 1000);
  const took = {
    apiAnsweredAfterSeconds: tenths(answeredAfterMs / 1000),
    allRenewedAfterSeconds: tenths(allRenewedAfterMs / 1000),
    leaseGapMaxSeconds: tenths(Math.max(...gapsMs.values()) / 1000),
    notReadyEvents: events.length,
    notReadyNodes: notReady.size,
    ...(notReady.size === 0
      ? {}
      : {
          notReadyAfterSeconds: summary([...notReady.values()].map((ms) => ms / 1000)),
          leaseGapOfNotReadySeconds: summary(leaseGapsOfNotReady),
        }),
  };
  say(`round: ${JSON.stringify(took)}`);
  return took;
}

const cleanUp = cleanUpOnce(async () => {
  if (fleet.exitCode === null && fleet.signalCode === null) {
    const ended = once(fleet, 'close');
    fleet.kill('SIGKILL');
    await ended;
  }
  await cluster.stop();
  rmSync(scratch, { recursive: true, force: true });
  return [];
});
try {
  await until('all nodes Ready', async () => readyOf(await items<Node>('/api/v1/nodes')).length >= nodes || undefined, LONG);
  await sleep(15_000);
  const all = [];
  for (let i = 0; i < rounds; i++) all.push(await round());
  await report('fleetAway', { nodes, awaySeconds, api, how, leaderElect, rounds: all });
} finally {
  await cleanUp();
}
