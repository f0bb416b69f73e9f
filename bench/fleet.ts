/**
 * A fleet against a real control plane on the same machine (scripts/setup/control-plane-setup.sh, or KUBEBUILDER_ASSETS): nodes
 * Ready, at rest, pods bound and Ready, at rest with them. Of each phase the processor time of the fleet and of each component,
 * so it shows who is the bottleneck; and the age of the oldest lease. The controller manager and the scheduler have their own limits
 * of requests lifted. At rest is a fleet some time after its last change ("settle").
 * --pod-seconds=N: the pods have so long, and as many count as are Ready by then.
 * Options: --nodes=1000 --pods=10000 --pod-seconds=0 --watches=own|shared --shards=1 (processes) --settle-seconds=60 --rest-seconds=60 --out=FILE
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ControlPlane, startControlPlane } from '../test/e2e/lab/cluster/controlPlane.ts';
import { cleanUpOnce } from './lib/cleanUp.ts';
import { tenths, UNLIMITED, usageIn } from './lib/onPlane.ts';
import { numberOption, option, projectRoot, report, say, sleep, summary, until } from './lib/report.ts';

const nodesWanted = numberOption('nodes', 1000);
const podsWanted = numberOption('pods', 10_000);
const podSeconds = Number(option('pod-seconds') ?? 0);
const restSeconds = numberOption('rest-seconds', 60);
const settleSeconds = numberOption('settle-seconds', 60);
const watches = option('watches') ?? 'own';
const shards = numberOption('shards', 1);
const PORT = 20_250;
const LOOK_MS = 1_000;
const LEASES_MS = 10_000;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const LONG_MS = 3_600_000;
const REPLICAS_MAX = 1_000;
/** In what fleets print every two seconds. */
const PROGRESS = { nodes: /(?<=nodes )\d+\/\d+(?= Ready)/g, pods: /(?<=pods )\d+\/\d+(?= Ready)/g };
/** Of what fleets print: its end. */
const SAID_CHARS_MAX = 10_000;
/** Kinds of requests of a phase: the most frequent. */
const REQUESTS_SHOWN = 12;

interface Condition {
  type: string;
  status: string;
  lastTransitionTime: string;
}
interface Item {
  status: { conditions?: Condition[] };
}

class Bench {
  readonly plane: ControlPlane;
  readonly fleets: readonly ChildProcess[];
  /** The end of what each printed. */
  readonly #said: string[] = [];

  constructor(plane: ControlPlane) {
    this.plane = plane;
    this.fleets = Array.from({ length: shards }, (_, shard) => this.#shard(shard));
  }

  #shard(shard: number): ChildProcess {
    const args = [
      'fleet',
      `--nodes=${nodesWanted}`,
      `--kubeconfig=${this.plane.adminKubeconfig}`,
      ...(watches === 'shared' ? ['--share-watches'] : []),
      ...(shards === 1 ? [] : [`--shard=${shard}/${shards}`, `--port=${PORT + shard}`, `--socket=${join(scratch, `${shard}.sock`)}`]),
    ];
    // As it is started by hand, with the flags for V8 that it gets there.
    const fleet = spawn(join(projectRoot, 'bin', 'actorlet'), args, { stdio: ['ignore', 'ignore', 'pipe'] });
    fleet.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#said[shard] = ((this.#said[shard] ?? '') + text).slice(-SAID_CHARS_MAX);
    });
    return fleet;
  }

  async ready(path: string): Promise<Condition[]> {
    const { body } = await this.plane.request('GET', `${path}?resourceVersion=0`, { timeoutMs: 60_000 });
    return (body as { items: Item[] }).items.flatMap(
      (i) => i.status.conditions?.find((c) => c.type === 'Ready' && c.status === 'True') ?? [],
    );
  }

  /** Requests that the API server has answered so far, of everybody, by verb and resource. */
  async requests(): Promise<Map<string, number>> {
    const { body } = await this.plane.request('GET', '/metrics', { timeoutMs: 60_000 });
    const counts = new Map<string, number>();
    for (const line of String(body).split('\n')) {
      const { labels = '', count } = /^apiserver_request_total\{(?<labels>.*)\} (?<count>[0-9.e+]+)$/.exec(line)?.groups ?? {};
      if (count === undefined) continue;
      const of = (name: string): string => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? '';
      const kind = `${of('verb')} ${of('resource')}${of('subresource') === '' ? '' : `/${of('subresource')}`}`;
      counts.set(kind, (counts.get(kind) ?? 0) + Number(count));
    }
    return counts;
  }

  /** What a phase took: its time, and of each process the share of one core. */
  async phase(what: string, act: () => Promise<void>): Promise<object> {
    const asked = await this.requests();
    let leaseAgeMaxSeconds = 0;
    const own = { fleet: this.fleets.map(({ pid }) => pid) };
    const usage = await usageIn(this.plane, own, async () => {
      leaseAgeMaxSeconds = await this.#oldestLease(act);
    });
    // What other programs took shows in it, too.
    const loadAverage = tenths(loadavg()[0] ?? 0);
    const more = [...(await this.requests())].map(([kind, count]) => [kind, count - (asked.get(kind) ?? 0)] as const);
    const requests = Object.fromEntries(more.sort(([, a], [, b]) => b - a).slice(0, REQUESTS_SHOWN));
    const took = { ...usage, loadAverage, ...this.memory(), leaseAgeMaxSeconds, requests };
    say(`${what}: ${JSON.stringify(took)}`);
    return took;
  }

  #sum(of: (fleet: ChildProcess) => number): number {
    return this.fleets.reduce((sum, fleet) => sum + of(fleet), 0);
  }

  memory(): object {
    const mib = (field: string): number =>
      this.#sum(({ pid }) => {
        const status = readFileSync(`/proc/${pid}/status`, 'utf8');
        return Math.round(Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024);
      });
    return { residentMiB: mib('VmRSS'), residentPeakMiB: mib('VmHWM') };
  }

  /** So many Ready, by what the fleets print, and then by the API server: to ask it all the time would cost it more than the pods. */
  async reach(what: 'nodes' | 'pods', count: number): Promise<void> {
    const hasEnded = () => this.fleets.some((f) => f.exitCode !== null || f.signalCode !== null);
    const printed = () => this.#said.reduce((sum, text) => sum + Number(text.match(PROGRESS[what])?.at(-1)?.split('/')[0] ?? 0), 0);
    const reached = async () => {
      if (hasEnded()) return 'ended';
      return printed() >= count && (await this.ready(`/api/v1/${what}`)).length >= count ? 'reached' : undefined;
    };
    if ((await until(what, reached, { timeoutMs: LONG_MS, everyMs: LOOK_MS })) === 'ended')
      throw new Error(`the fleet ended: ${this.#said.join('\n')}`);
  }

  /** Once it has settled. */
  async rest(what: string): Promise<object> {
    await sleep(settleSeconds * 1000);
    return this.phase(what, () => sleep(restSeconds * 1000));
  }

  /** While `act` goes on: seconds since the lease that waits longest was renewed, at most. */
  async #oldestLease(act: () => Promise<void>): Promise<number> {
    let [oldest, ended] = [0, false];
    const acting = act().finally(() => {
      ended = true;
    });
    const looking = async (): Promise<void> => {
      while (!ended) {
        oldest = Math.max(oldest, await this.#leaseAge());
        await Promise.race([sleep(LEASES_MS), acting]);
      }
    };
    await Promise.all([acting, looking()]);
    return oldest;
  }

  async #leaseAge(): Promise<number> {
    const { body } = await this.plane.request('GET', LEASES, { timeoutMs: 60_000 });
    const { items } = body as { items: { spec: { renewTime: string } }[] };
    return tenths(Math.max(0, ...items.map((l) => Date.now() - Date.parse(l.spec.renewTime))) / 1000);
  }

  async deployments(): Promise<void> {
    for (let left = podsWanted, i = 0; left > 0; left -= REPLICAS_MAX, i++) {
      const name = `web-${i}`;
      const body = {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name },
        spec: {
          replicas: Math.min(left, REPLICAS_MAX),
          selector: { matchLabels: { app: name } },
          template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'main', image: 'fleet/web:1' }] } },
        },
      };
      const { status } = await this.plane.request('POST', '/apis/apps/v1/namespaces/default/deployments', { body });
      if (status !== 201) throw new Error(`the deployment ${name} was answered with ${status}`);
    }
  }

  async run(): Promise<object> {
    const joined = await this.phase('nodes Ready', () => this.reach('nodes', nodesWanted));
    const idle = await this.rest('rest without pods');
    const beganMs = Date.now();
    const bound = await this.phase('pods Ready', async () => {
      await this.deployments();
      await (podSeconds === 0 ? this.reach('pods', podsWanted) : sleep(podSeconds * 1000));
    });
    const steps = await this.steps(beganMs);
    const podsReady = steps.readyAfterSeconds.count;
    say(`${podsReady} pods Ready`);
    const rest = podSeconds === 0 ? await this.rest('rest with pods') : null;
    const ready = (await this.ready('/api/v1/nodes')).length;
    return {
      joined,
      idle,
      bound: { ...bound, ...steps, podsReady, podsASecond: tenths(podsReady / steps.readyAfterSeconds.max) },
      rest,
      nodesReadyAtEnd: ready,
      nodesCalledNotReady: await this.notReady(),
    };
  }

  /** Events of nodes that the cluster called NotReady, all together. */
  async notReady(): Promise<number> {
    const path = '/api/v1/events?fieldSelector=reason%3DNodeNotReady%2CinvolvedObject.kind%3DNode';
    const { body } = await this.plane.request('GET', path, { timeoutMs: 60_000 });
    return (body as { items: { count?: number }[] }).items.reduce((sum, { count = 1 }) => sum + count, 0);
  }

  /** Seconds after the beginning at which pods were made, bound and Ready, by the API server's whole seconds. */
  async steps(beganMs: number) {
    const { body } = await this.plane.request('GET', '/api/v1/pods?resourceVersion=0', { timeoutMs: 60_000 });
    const { items } = body as { items: (Item & { metadata: { creationTimestamp: string } })[] };
    const after = (time: string | undefined): number => (Date.parse(time ?? '') - beganMs) / 1000;
    // One that is not so far yet has no time, or the time of `False`.
    const reached = (type: string) =>
      summary(
        items.flatMap((i) => {
          const time = i.status.conditions?.find((c) => c.type === type && c.status === 'True')?.lastTransitionTime;
          return time === undefined ? [] : [after(time)];
        }),
      );
    return {
      createdAfterSeconds: summary(items.map((i) => after(i.metadata.creationTimestamp))),
      boundAfterSeconds: reached('PodScheduled'),
      readyAfterSeconds: reached('Ready'),
    };
  }

  async end(): Promise<void> {
    for (const fleet of this.fleets) {
      if (fleet.exitCode !== null) continue;
      const ended = once(fleet, 'close');
      fleet.kill('SIGKILL');
      await ended;
    }
  }
}

const scratch = mkdtempSync(join(tmpdir(), 'actorlet-bench-fleet-'));
const plane = await startControlPlane({
  controllerManager: true,
  scheduler: true,
  flags: UNLIMITED,
});
const bench = new Bench(plane);
const cleanUp = cleanUpOnce(async () => {
  await bench.end();
  await plane.stop();
  rmSync(scratch, { recursive: true, force: true });
  return [];
});
try {
  await report('fleet', { nodes: nodesWanted, pods: podsWanted, watches, shards, ...(await bench.run()) });
} finally {
  await cleanUp();
}
