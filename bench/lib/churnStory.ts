/**
 * A story of churn on one virtual node, and what its API server saw of it. The story is drawn from the seed alone, so nodes of two
 * commits live through the same one. Run by `bench/churn.ts`, for each commit: churnStory.ts CHECKOUT SEED MINUTES.
 */
import { simRng } from '@actorlet/world/src/rng.ts';
import type { cluster } from '../../test/integration/cluster/clusterPods.ts';
import type { pod } from '../../test/integration/virtualNode.ts';

/** What the API server saw; nothing in it hangs on times, UIDs and addresses. */
export interface Seen {
  pods: number;
  restarts: number;
  /** Writes by verb and path. */
  writes: Record<string, number>;
  /** By pod: its writes in their order, one in a row for equal ones. */
  life: Record<string, string[]>;
  /** By object: type, reason and message of its events. */
  events: Record<string, string[]>;
}

type Harness = typeof import('../../test/integration/cluster/clusterPods.ts');
type Shape = NonNullable<Parameters<typeof pod>[1]>;
type Node = Awaited<ReturnType<typeof cluster>>;

const STEP_MS = 5_000;
const MOST_PODS = 35;
const MANY_PODS = 25;
const SECRET_AFTER_MS = 30_000;

const execProbe = { exec: { command: ['look'] } };
/** Names tell what becomes of a pod. */
const shapes = (c: Harness): Record<string, (name: string) => Shape> => ({
  plain: () => ({}),
  token: () => c.withToken(),
  slow: () => ({ life: 'startDelay=2s' }),
  stubborn: () => ({ life: 'term=ignore', spec: { terminationGracePeriodSeconds: 5 } }),
  'crash-loop': () => ({ life: 'run=5s,exit=1' }),
  heals: () => ({ life: 'run=3s,exit=1;run=forever' }),
  completes: () => ({ life: 'run=20s,exit=0', spec: { restartPolicy: 'Never' } }),
  fails: () => ({ life: 'run=20s,exit=3', spec: { restartPolicy: 'Never' } }),
  'on-failure': () => ({ life: 'run=4s,exit=2;run=9s,exit=0', spec: { restartPolicy: 'OnFailure' } }),
  oom: () => ({ life: 'run=30s,exit=137,reason=OOMKilled;run=forever' }),
  inits: () => ({ inits: [{}, {}], lives: { 'init-0': 'run=2s', 'init-1': 'run=1s' } }),
  sidecar: () => ({ inits: [{ restartPolicy: 'Always' }], spec: { restartPolicy: 'Never' }, lives: { main: 'run=15s,exit=0' } }),
  'no-image': () => ({ life: 'pullError=not there', container: { image: 'gone:1' } }),
  readiness: () => ({ container: { readinessProbe: { httpGet: { port: 80 }, periodSeconds: 5 } } }),
  liveness: () => ({ life: 'exec=1;exec=0', container: { livenessProbe: { ...execProbe, periodSeconds: 5, failureThreshold: 2 } } }),
  startup: () => ({ container: { startupProbe: { ...execProbe, periodSeconds: 2 } } }),
  volume: () => ({ spec: { volumes: [{ name: 'v', emptyDir: {} }] }, container: { volumeMounts: [{ name: 'v', mountPath: '/v' }] } }),
  'late-secret': (name) => ({ container: { env: [c.fromSecret(name, 'key')] } }),
  'too-large': () => ({ container: { resources: { requests: { cpu: '99' } } } }),
  'no-start': () => ({ life: 'startError=no such file' }),
  'no-sandbox': () => ({ life: 'sandboxError=no network' }),
  deadline: () => ({ spec: { activeDeadlineSeconds: 40 } }),
  hook: () => ({ container: { lifecycle: { preStop: { exec: { command: ['stop'] } } } } }),
});

async function tell(c: Harness, seed: number, minutes: number): Promise<Seen> {
  const rng = simRng(`churn/${seed}`);
  await using h: Node = await c.cluster({ seed, config: { maxPods: 60, podsPerCore: 0 } });
  c.account(h);
  const all = Object.entries(shapes(c));
  const secrets: { name: string; atMs: number }[] = [];
  let live: string[] = [];
  let [pods, restarts] = [0, 0];
  for (let atMs = 0; atMs < minutes * 60_000; atMs += STEP_MS) {
    if (live.length < MOST_PODS && rng.chance(0.35)) {
      const [kind, shape] = all[pods % all.length] ?? ['plain', () => ({})];
      const name = `p${pods++}-${kind}`;
      c.create(h, name, shape(name));
      live.push(name);
      if (kind === 'late-secret') secrets.push({ name, atMs: atMs + SECRET_AFTER_MS });
    }
    while ((secrets[0]?.atMs ?? Number.POSITIVE_INFINITY) <= atMs) c.secret(h, secrets.shift()?.name ?? '', { key: 'value' });
    h.faults.away = rng.chance(0.01);
    // What happens to pods does not fall on the second at which one of their own times is up: there, chance would decide.
    await h.advance(STEP_MS * 0.67);
    h.faults.away = false;
    // Pods that ended by themselves are in the API still, until somebody deletes them.
    if (live.length > MANY_PODS && rng.chance(0.4)) {
      const name = rng.pick(live) ?? '';
      live = live.filter((other) => other !== name);
      c.drop(h, `pods/${name}`, rng.pick([30, 1, 5]));
    }
    const name = rng.pick(live);
    if (name !== undefined && rng.chance(0.05)) c.patch(h, `pods/${name}`, { metadata: { labels: { at: String(atMs) } } });
    if (name !== undefined && rng.chance(0.03)) {
      const [first] = c.inApi(h, name)?.spec.containers ?? [];
      c.patch(h, `pods/${name}`, { spec: { containers: [{ ...first, image: `busybox:${2 + (atMs % 3)}` }] } });
    }
    if (rng.chance(0.004)) {
      restarts += 1;
      await h.crash();
      await h.boot();
    }
    await h.advance(STEP_MS * 0.33);
  }
  for (const name of live) c.drop(h, `pods/${name}`, 1);
  await h.until('all pods are gone', () => live.every((name) => c.inApi(h, name) === undefined), 300_000);
  return { pods, restarts, ...seenBy(h) };
}

const WRITES = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);
const OF_THE_MOMENT = /Time|At$|resourceVersion|uid$|containerID|^metadata$/;

function seenBy(h: Node): Pick<Seen, 'writes' | 'life' | 'events'> {
  const writes: Seen['writes'] = {};
  const life: Seen['life'] = {};
  const events: Seen['events'] = {};
  for (const { request } of h.kube.calls) {
    const { verb, path, body, query } = request;
    if (!WRITES.has(verb)) continue;
    const kind = `${verb} ${path.replace(/\/(pods|events|serviceaccounts)\/[^/]+/, '/$1/NAME')}`;
    writes[kind] = (writes[kind] ?? 0) + 1;
    const [, name, part = ''] = /\/pods\/([^/]+)(\/status)?$/.exec(path) ?? [];
    if (name !== undefined) {
      life[name] ??= [];
      const write = `${verb}${part} ${JSON.stringify(lasting(body ?? query ?? null))}`;
      if (life[name].at(-1) !== write) life[name].push(write);
    }
    if (verb === 'POST' && path.endsWith('/events')) {
      const { type, reason, message, involvedObject } = body as Record<string, string> & { involvedObject: { name: string } };
      events[involvedObject.name] ??= [];
      events[involvedObject.name]?.push(`${type} ${reason} ${String(lasting(message))}`);
    }
  }
  return { writes, life, events };
}

/** Without what differs between two runs of one program: moments, UIDs, addresses, waits. */
function lasting(value: unknown): unknown {
  if (typeof value === 'string') {
    return value
      .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UID')
      .replace(/\b10\.\d+\.\d+\.\d+/g, 'IP')
      .replace(/back-off [\dms.]+/g, 'back-off');
  }
  if (Array.isArray(value)) return value.map(lasting);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).flatMap(([key, part]) => (OF_THE_MOMENT.test(key) ? [] : [[key, lasting(part)]])));
}

const [root, seed, minutes] = process.argv.slice(2);
const harness = (await import(`${root}/test/integration/cluster/clusterPods.ts`)) as Harness;
process.stdout.write(JSON.stringify(await tell(harness, Number(seed), Number(minutes))));
