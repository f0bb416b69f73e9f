/** What is kept of containers and pods that end badly, are refused, or get stuck: a whole node in virtual time. */
import { type DeathBundle, readBundle } from '@actorlet/shown/src/deaths/bundle.ts';
import { deathHtml } from '@actorlet/shown/src/deaths/html.ts';
import { deathLines, withoutPrivate } from '@actorlet/shown/src/deaths/text.ts';
import { describe, expect } from 'vitest';
import { deathsDir, deathsView } from '../../../src/machines/reclaim/deaths/messages.ts';
import { complaintsOf, validator } from '../../schemas/rig.ts';
import { cluster, create, inApi, secret } from '../cluster/clusterPods.ts';
import { itWith } from '../onNode.ts';
import { MANIFESTS, pod, ROOT, type VirtualNode, type VirtualNodeOptions, virtualNode } from '../virtualNode.ts';

const DIR = deathsDir(ROOT);
const path = 'node/reclaim/deaths';
const node = (o: VirtualNodeOptions = {}) => virtualNode({ ...o, flags: { deathsMax: 50, ...o.flags } });
const it = itWith(node);
const heads = (h: VirtualNode) => h.tree.registry.read(deathsView)?.value ?? [];
const of = (h: VirtualNode, name: string) => heads(h).filter((d) => d.pod.name === `${name}-n1`);
const titles = (h: VirtualNode, name: string) => of(h, name).map((d) => d.title);
const files = (h: VirtualNode) => h.fs.below(DIR).filter((file) => file.endsWith('.json'));
const dead = (h: VirtualNode, name: string, n = 1) => h.until(`${n} deaths of ${name} are kept`, () => of(h, name).length >= n, 900_000);
function bundle(h: VirtualNode, name: string): DeathBundle {
  const read = readBundle(h.fs.textOf(`${DIR}/${of(h, name).at(-1)?.id}.json`) ?? '');
  if (read === null) throw new Error(`no bundle of ${name}`);
  return read;
}
const textOf = (h: VirtualNode, name: string) => deathLines(bundle(h, name)).join('\n');
const logOf = (h: VirtualNode, name: string, text: string, run = 0) => {
  const dir = `/var/log/actorlet/pods/default_${name}-n1_${h.uid(name)}/main`;
  h.fs.makeDir(dir);
  h.fs.put(`${dir}/${run}.log`, text.replaceAll(/^/gm, '2026-01-01T00:00:01.000000000Z stdout F '));
};

describe('a container that ends badly', () => {
  it('has a bundle: exit, log, calls of the runtime, states, events, causes, and what can be done', async ({ h }) => {
    h.write('web', pod('web', { life: 'run=3s,exit=1;run=forever' }));
    await h.until('it runs', () => h.running('web').length === 1);
    logOf(h, 'web', 'no route to db\ngiving up');
    await dead(h, 'web');
    expect(titles(h, 'web')).toEqual(['exited with code 1, 3s after its start']);
    const b = bundle(h, 'web');
    expect(b.death.end).toMatchObject({ exitCode: 1, reason: 'Error' });
    expect(b.log.lines.map((l) => l.text)).toEqual(['no route to db', 'giving up']);
    expect(b.calls.map((c) => c.method)).toEqual(expect.arrayContaining(['RunPodSandbox', 'CreateContainer', 'StartContainer']));
    expect(b.steps.at(-1)?.to).toBe('syncing.settled');
    expect(b.causes.map((c) => c.what)).toContain(`manifest ${MANIFESTS}/web.json appeared`);
    expect(textOf(h, 'web')).toContain('What to do');
    expect(h.fs.has(`${DIR}/${b.head.id}.json`)).toBe(true);
    expect((await h.fs.stat(`${DIR}/${b.head.id}.json`)).mode & 0o777).toBe(0o600);
    expect(await h.metrics.render()).toContain('actorlet_deaths_total{kind="exit"} 1');
    // What `actorctl deaths -o json` and `death ID -o json` print.
    const validate = validator('actorctl.json');
    for (const printed of [heads(h), b]) expect(complaintsOf(validate, JSON.parse(JSON.stringify(printed)))).toEqual([]);
    expect(validate([{ ...heads(h)[0], kind: 7 }])).toBe(false);
  });

  it('has none where it ended well, or the node was asked to end it', async ({ h }) => {
    h.write('job', pod('job', { life: 'run=1s,exit=0', spec: { restartPolicy: 'Never' } }));
    h.write('web', pod('web'));
    await h.until('both are there', () => h.phase('job') === 'Succeeded' && h.running('web').length === 1);
    h.remove('web');
    await h.until('it is gone', () => h.containers('web').length === 0 && h.record('web') === undefined, 120_000);
    await h.advance(30_000);
    expect(heads(h)).toEqual([]);
  });

  it('is told with its probe, where that failed and the node stopped it', async () => {
    await using h = await node({ hollow: { exec: () => ({ exitCode: 1, stdout: new TextEncoder().encode('queue is full') }) } });
    const livenessProbe = { exec: { command: ['check'] }, periodSeconds: 1, failureThreshold: 2 };
    h.write('web', pod('web', { container: { livenessProbe } }));
    await dead(h, 'web');
    expect(titles(h, 'web')[0]).toMatch(/^stopped by this node: its liveness probe failed \(queue is full\), \d+s after its start$/);
    expect(bundle(h, 'web').stopSaid).toBe('Container main failed liveness probe, will be restarted');
    h.write('hook', pod('hook', { container: { lifecycle: { postStart: { exec: { command: ['check'] } } } } }));
    await dead(h, 'hook');
    for (const name of ['web', 'hook']) expect(JSON.stringify(withoutPrivate(bundle(h, name)))).not.toContain('queue is full');
  });

  it('was killed by the kernel, where that is said before its bundle is written, or later', async () => {
    await using h = await node({ kernelLog: true });
    const killed = async (name: string) => {
      h.write(name, pod(name, { life: 'run=3s,exit=137;run=forever', container: { resources: { limits: { memory: '24Mi' } } } }));
      await h.until('it runs', () => h.running(name).length === 1);
      const [{ id } = { id: '' }] = h.running(name);
      const detail = `oom_memcg=/pod,task_memcg=/kubepods/pod/${id},task=app,pid=7,uid=0`;
      const oom = `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,${detail}`;
      return () => h.kernelLog.say(['app invoked oom-killer: order=0', oom, 'Memory cgroup out of memory: Killed process 7 (app)']);
    };
    const cause = 'killed by the kernel: it reached its memory limit of 24 MiB, 3s after its start';
    (await killed('soon'))();
    await dead(h, 'soon');
    expect(titles(h, 'soon')).toEqual([cause]);
    const late = await killed('late');
    await dead(h, 'late');
    expect(titles(h, 'late')).toEqual(['ended by signal 9 (SIGKILL), 3s after its start']);
    const [{ id = '' } = {}] = of(h, 'late');
    late();
    await h.until('its cause is told', () => titles(h, 'late')[0] === cause, 60_000);
    expect(of(h, 'late').map((d) => [d.id, d.kind])).toEqual([[id, 'oom']]);
    expect(textOf(h, 'late')).toMatch(/Raise resources.limits.memory[\s\S]*Killed process 7/);
    expect(files(h)).toHaveLength(2);
    expect(await h.metrics.render()).toContain('actorlet_deaths_total{kind="oom"} 2');
  });
});

describe('a pod that does not get on', () => {
  it('has a bundle when it was refused', async ({ h }) => {
    h.write('web', pod('web', { spec: { nodeSelector: { disk: 'fast' } } }));
    await dead(h, 'web');
    expect(titles(h, 'web')[0]).toMatch(/^refused by this node: NodeAffinity: .*nodeSelector asks for disk=fast/);
  });

  it('has one when it was evicted, with the pressure of the node, and none for each of its containers', async () => {
    await using h = await cluster({ flags: { deathsMax: 50 } });
    create(h, 'web');
    await h.until('it runs', () => inApi(h, 'web')?.status.phase === 'Running');
    h.memory.availableBytes = 10 * 1024 ** 2;
    await h.until('it is told', () => heads(h).length > 0, 120_000);
    await h.advance(30_000);
    expect(heads(h).map((d) => `${d.kind} ${d.container}: ${d.title}`)).toEqual([
      expect.stringMatching(/^evicted : ended by this node: Evicted: The node was low on resource: memory\. /),
    ]);
    const b = readBundle(h.fs.textOf(`${DIR}/${heads(h)[0]?.id}.json`) ?? '');
    expect(b?.node.pressures).toEqual(['MemoryPressure']);
    expect(b?.node.memory?.availableBytes).toBe(10 * 1024 ** 2);
  });

  it.each([
    ['pulling its image', 'PullImage', /^has been pulling its image for .*: busybox:1$/],
    ['its sandbox', 'RunPodSandbox', /^has been waiting for its sandbox and network for /],
    ['being created', 'CreateContainer', /^has been waiting to be created for /],
  ] as const)('has one bundle when it is stuck at %s, and a new one only the next time', async (_, method, said) => {
    await using h = await node();
    h.faults.latencyMs[method] = 100_000;
    h.faults.fault = (of, req) =>
      of === method && JSON.stringify(req).includes('ill') ? { kind: 'timeout', effect: false, afterMs: 600_000 } : undefined;
    h.write('ill', pod('ill', { container: { image: 'busybox:1' } }));
    await dead(h, 'ill');
    expect(titles(h, 'ill')[0]).toMatch(said);
    expect(bundle(h, 'ill').calls.find((c) => c.method === method)).toMatchObject({ endMs: null });
    await h.advance(120_000);
    expect(of(h, 'ill').filter((d) => d.kind === 'stuck')).toHaveLength(1);
  });

  it('has one when it takes longer to end than its grace period and a margin', async () => {
    await using h = await node({ flags: { deathsStuckAfter: 10_000 } });
    h.write('web', pod('web', { spec: { terminationGracePeriodSeconds: 20 } }));
    await h.until('it runs', () => h.running('web').length === 1);
    h.faults.fault = (of) => (of === 'StopContainer' ? { kind: 'timeout', effect: false, afterMs: 500_000 } : undefined);
    const atMs = h.time.clock.monoMs();
    h.remove('web');
    await dead(h, 'web');
    expect(h.time.clock.monoMs() - atMs).toBeGreaterThanOrEqual(30_000);
    expect(titles(h, 'web')[0]).toMatch(/^has been ending for .*, and its grace period is 20s$/);
  });
});

describe('what is kept', () => {
  it('is the first of a crash loop and its latest ones, also over a restart of the daemon, and of others what there is', async ({ h }) => {
    h.write('calm', pod('calm', { life: 'run=1s,exit=2;run=forever' }));
    h.write('loop', pod('loop', { life: 'run=1s,exit=1' }));
    await dead(h, 'calm');
    await dead(h, 'loop', 3);
    const [first] = of(h, 'loop');
    await h.advance(900_000);
    expect(of(h, 'loop')).toHaveLength(3);
    expect(of(h, 'loop')[0]).toEqual(first);
    expect(of(h, 'loop').at(-1)?.nth).toBeGreaterThan(5);
    const before = heads(h);
    await h.restart();
    await h.until('they are known again', () => heads(h).length >= before.length);
    expect(
      heads(h)
        .slice(0, before.length)
        .map((d) => d.id),
    ).toEqual(before.map((d) => d.id));
    expect(files(h)).toHaveLength(heads(h).length);
  });

  it('stays within its bounds when very many die at once, and the actor is killed over it', async () => {
    await using h = await node({ flags: { deathsMax: 10 }, config: { maxPods: 200 } });
    for (let i = 0; i < 26; i++) h.write(`web${i}`, pod(`web${i}`, { life: 'run=1s,exit=1' }));
    await h.until('there were too many at once', () => h.state(path) === 'pausing', 120_000);
    h.kill(path);
    await h.until('it goes on', () => h.state(path) === 'idle' && heads(h).length >= 10, 120_000);
    expect(heads(h).length).toBe(10);
    expect(files(h)).toHaveLength(10);
    expect(await h.metrics.render()).toMatch(/actorlet_deaths_lost_total\{why="too many"\} \d+/);
  });

  it('is no bundle on a full disk, or where the folder is a link; pods go on, and it is tried with the next', async ({ h }) => {
    h.fs.failing = (op, at) => (op === 'writeFile' && at.startsWith(DIR) ? 'ENOSPC' : undefined);
    h.write('web', pod('web', { life: 'run=1s,exit=1;run=1m,exit=1;run=forever' }));
    await h.until('it is said', () =>
      h.lines.some((l) => l.level === 'warn' && l.msg.includes('the facts about a death could not be kept')),
    );
    expect(h.actor(path)).toMatchObject({ lifecycle: 'running', reason: 'BundlesUnwritable' });
    expect(await h.metrics.render()).toContain('actorlet_deaths_lost_total{why="not written"} 1');
    expect(files(h)).toEqual([]);
    h.fs.failing = () => undefined;
    await dead(h, 'web');
    await h.until('it runs', () => h.running('web').length === 1);
    expect(h.actor(path)?.reason).toBe('Watching');
  });

  it('is written into no folder of somebody else', async () => {
    await using h = await node({
      before: (n) => {
        n.fs.makeDir('/etc/other');
        n.fs.makeDir(DIR.slice(0, DIR.lastIndexOf('/')));
        void n.fs.symlink('/etc/other', DIR);
      },
    });
    h.write('web', pod('web', { life: 'run=1s,exit=1;run=forever' }));
    await h.until('it is said', () => h.lines.some((l) => JSON.stringify(l).includes('is no folder but a symlink')));
    expect(h.fs.below('/etc/other')).toEqual([]);
  });

  it('has no secret of the pod in it, wherever that was said, and names of programs', async ({ h }) => {
    const [env, arg, header, query, torn] = [
      'env-hunter2-aa',
      'arg-hunter2-bb',
      'head-hunter2-cc',
      'query-hunter2-dd',
      `torn-hunter2-${'x'.repeat(6_000)}`,
    ];
    const container = {
      command: ['/bin/server', '-c', `run --key ${arg}`],
      readinessProbe: { exec: { command: ['Key-HUNTER2-ee'] }, periodSeconds: 3_600 },
      args: [arg, torn],
      env: [{ name: 'A', value: env }],
      livenessProbe: {
        httpGet: { path: `/health?k=${query}`, port: 80, httpHeaders: [{ name: 'X-Key', value: header }] },
        periodSeconds: 3_600,
      },
    };
    h.write('web', pod('web', { life: 'run=3s,exit=1;run=forever', container }));
    await h.until('it runs', () => h.running('web').length === 1);
    const others = [
      'password=plain-hunter2',
      'Authorization: Bearer abc.hunter2.def',
      'postgres://u:url-hunter2@db/x?k=hunter2',
      '-----BEGIN RSA PRIVATE KEY-----',
      'hunter2',
      '-----END RSA PRIVATE KEY-----',
    ];
    logOf(
      h,
      'web',
      [env, btoa(env), arg, header, query, `"${torn}"`, ...others, 'no Key-HUNTER2-ee', 'exec /bin/server failed'].join('\n'),
    );
    await dead(h, 'web');
    const b = bundle(h, 'web');
    const all = [JSON.stringify(b), textOf(h, 'web'), deathHtml(b), h.fs.textOf(`${DIR}/${b.head.id}.json`)].join('\n');
    expect(all).not.toMatch(/hunter2/i);
    expect(all).not.toContain(btoa(env).slice(0, 12));
    expect(textOf(h, 'web')).toContain('exec /bin/server failed');
    expect(textOf(h, 'web')).toContain('postgres://<masked>@db/x?<masked>');
  });

  it.each(['log', 'file'])(
    'has none of a Secret, of 1 to 7 bytes or more, that its %s ends with, started by an earlier daemon',
    async (door) => {
      await using h = await cluster({ flags: { deathsMax: 50 } });
      const utf8 = (text: string) => String.fromCharCode(...new TextEncoder().encode(text));
      const keys = { a: utf8('§'), b: 'q7', c: utf8('füße\n'), d: 'volume1', 'id.key': 'first-hunter2-line\nsecond-hunter2-line' };
      secret(h, 'keys', keys);
      const [env, arg] = ['s3cret', 'Z9'];
      const container = {
        ...{ command: ['/bin/server'], args: [arg], volumeMounts: [{ name: 'keys', mountPath: '/k' }] },
        ...{ env: [{ name: 'A', value: env }], terminationMessagePolicy: 'FallbackToLogsOnError' },
      };
      const volumes = [{ name: 'keys', secret: { secretName: 'keys' } }];
      const { uid } = create(h, 'web', { life: 'run=1m,exit=1', spec: { volumes }, container }).metadata;
      await h.until('it runs', () => inApi(h, 'web')?.status.phase === 'Running');
      const said = `${env}\n(${arg})\nq7!\n§\nfüße\nkey volume1, code 1\nI use second-hunter2-line now`;
      const dir = `/var/log/actorlet/pods/default_web_${uid}/main`;
      h.fs.makeDir(dir);
      if (door === 'file') h.fs.put(h.fs.below(`${ROOT}/pods/${uid}/containers/main`)[0] ?? '', said);
      else h.fs.put(`${dir}/0.log`, `${said}\n`.replaceAll(/^(?=.)/gm, '2026-01-01T00:00:01.000000000Z stdout F '));
      await h.restart();
      await h.until('it is told', () => heads(h).length > 0, 300_000);
      const text = h.fs.textOf(`${DIR}/${heads(h)[0]?.id}.json`) ?? '';
      for (const word of [env, arg, 'q7', '§', 'füße', 'volume1', 'hunter2']) expect(text).not.toContain(word);
      for (const word of ['code 1', 'I use <masked> now']) expect(text).toContain(word);
    },
  );
});
