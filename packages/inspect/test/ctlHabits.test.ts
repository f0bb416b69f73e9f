/** What a user of kubectl types first, and what follows the words on the command line, against a node on the hollow runtime. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { adminClient } from '@actorlet/admin/src/client.ts';
import { runCtl } from '@actorlet/ctl/src/cli.ts';
import { notStarted } from '@actorlet/ctl/src/exec/notStarted.ts';
import type { CtlIo, Terminal } from '@actorlet/ctl/src/io.ts';
import { labelSelector } from '@actorlet/ctl/src/labelSelector.ts';
import type { NodeExplained, PodExplained } from '@actorlet/shown/src/answers.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HollowNode, hollowNode, until } from '../../../test/integration/hollowNode.ts';
import { complaintsOf, validator } from '../../../test/schemas/rig.ts';

let h: HollowNode;
beforeAll(async () => {
  h = await hollowNode();
  const pod = (name: string, labels: object, containers: object[]) =>
    h.write(`${name}.json`, JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name, labels }, spec: { containers } }));
  const container = (name: string) => ({ name, image: 'example.test/app:1' });
  pod('web', { app: 'web', tier: 'front' }, [container('app'), container('side')]);
  pod('db', { app: 'db' }, [container('app')]);
  await until('both run', () => ['web', 'db'].every((name) => h.status(name)?.status.phase === 'Running'));
});
afterAll(() => h[Symbol.asyncDispose]());

type Given = Partial<Pick<CtlIo, 'columns' | 'stdin' | 'terminal' | 'signal' | 'env'>> & { onOut?: (all: string) => void };

async function ctlWith(given: Given, ...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  let out = '';
  let err = '';
  const { onOut, ...more } = given;
  const code = await runCtl({
    argv: argv[0]?.startsWith('--get') === true ? argv : ['--socket', join(h.dir, 'admin.sock'), ...argv],
    env: { ACTORLET_SOCKET: join(h.dir, 'admin.sock') },
    out: (text) => {
      out += text;
      onOut?.(out);
    },
    err: (text) => {
      err += text;
    },
    exists: () => false,
    columns: 0,
    nowMs: () => Date.now(),
    stdin: Readable.from([]),
    outBytes: () => undefined,
    errBytes: () => undefined,
    signal: new AbortController().signal,
    ...more,
  });
  return { code, out, err };
}
const ctl = (...argv: string[]) => ctlWith({}, ...argv);
const names = (out: string) =>
  out
    .split('\n')
    .slice(1, -1)
    .map((line) => line.split(/ +/)[1]);

describe('a label selector', () => {
  it.each([
    ['app=web', true],
    ['app==web,tier=front', true],
    ['app!=web', false],
    ['missing!=x', true],
    ['tier', true],
    ['!tier', false],
    ['app in (db, web),!canary', true],
    ['app notin (db,web)', false],
    ['canary in ()', false],
  ])('%s', (text, fits) => expect(labelSelector(text)({ app: 'web', tier: 'front' })).toBe(fits));
  it.each(['a=b=c', 'in (x)', '=x', 'app in (a', `${'a'.repeat(5_000)}(`])('refuses %s by name', (text) => {
    expect(() => labelSelector(text)).toThrow(/is no requirement on a label/);
  });
});

describe('the words of kubectl', () => {
  it('get, describe, -A and -l', async () => {
    expect(names((await ctl('get', 'pods')).out)).toEqual(['db-n1', 'web-n1']);
    expect(names((await ctl('get', 'po', '-A', '-l', 'app=web')).out)).toEqual(['web-n1']);
    expect(names((await ctl('pods', '-n', 'default', '-l', '!tier')).out)).toEqual(['db-n1']);
    expect(names((await ctl('get', 'pod/web')).out)).toEqual(['web-n1']);
    expect(names((await ctl('get', 'pod', 'db')).out)).toEqual(['db-n1']);
    expect((await ctl('describe', 'pod', 'web')).out).toMatch(/^Pod default\/web-n1 {2}uid /);
    expect((await ctl('describe', 'node')).out).toMatch(/^Node n1 /);
    expect((await ctl('get', 'events')).code).toBe(0);
    expect(await ctl('get', 'podz')).toMatchObject({ code: 2, err: expect.stringContaining('did you mean pods?') });
    expect(await ctl('get', 'deployments')).toMatchObject({ code: 2, err: expect.stringContaining('kubectl asks the API server') });
    expect((await ctl('-h')).out).toContain('actorctl <command>');
    expect((await ctl('get', '-h')).out).toContain('actorctl get <kind> [name]');
  });

  it('delete pod names the manifest of a static pod, and leaves the pod', async () => {
    const { code, err } = await ctl('delete', 'pod/db');
    expect([code, err]).toEqual([1, expect.stringMatching(/^actorctl: pod default\/db-n1 is a static pod.*\/db\.json out of that folder/)]);
    expect(names((await ctl('pods')).out)).toContain('db-n1');
  });

  it('restart pod waits until its containers have started again, and says what is left as it is', async () => {
    const app = { name: 'app', image: 'example.test/app:1' };
    const spec = { containers: [app, { ...app, name: 'side' }] };
    h.write('cart.json', JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'cart' }, spec }));
    await until('it runs', () => h.status('cart')?.status.phase === 'Running');
    const idsOf = () => h.status('cart')?.status.containerStatuses?.map((c) => c.containerID ?? '') ?? [];
    const before = idsOf();
    expect(await ctl('restart', 'pod/cart')).toEqual({ code: 0, out: 'pod "cart-n1" restarted in default namespace\n', err: '' });
    const after = idsOf();
    expect(after.map((id) => before.includes(id))).toEqual([false, false]);
    expect(await ctl('restart', 'pod', 'cart', '-c', 'side', '-n', 'default', '-o', 'name')).toMatchObject({
      code: 0,
      out: 'pod/cart-n1\n',
    });
    expect(idsOf().map((id) => after.includes(id))).toEqual([true, false]);
    expect((await ctl('events', 'cart')).out).toContain('Container side will be restarted: a person asked for it over the admin socket');
    expect((await ctl('why', 'cart')).out).toContain('a person asked for its restart over the admin socket');
    expect((await ctl('restart', 'pod', 'cart', '--no-wait')).out).toBe('pod "cart-n1" is restarting in default namespace\n');
    h.remove('cart.json');
    await until('it is gone', () => h.status('cart') === undefined);
  });

  it.each([
    [['pod', 'web', 'nobody'], 1, 'no pod called nobody on this node'],
    [['pod', 'web', '-c', 'sied'], 1, 'pod default/web-n1 is not restarted: it has no container sied, only app, side'],
    [['node', 'n1'], 2, 'only pods can be restarted'],
    [['pod'], 2, 'say which pod, for example: actorctl restart pod web'],
    [['pod', 'web', '-o', 'json'], 2, 'the only output format is -o name'],
    [['pod', 'web', '-l', 'app=web'], 2, 'kubectl rollout restart of their controller chooses by labels'],
    [['pod', 'web', '--timeout', 'soon'], 2, '--timeout is a number of seconds'],
  ])('restart %j is refused', async (words, code, text) => {
    expect(await ctl('restart', ...words)).toMatchObject({ code, out: '', err: expect.stringContaining(text) });
  });

  it.each([
    '',
    '{}',
    '[]',
    '{"pods":[]}',
    '{"pods":"web"}',
    '{"pods":[1]}',
    '{"pods":["web"],"container":{}}',
    `{"pods":[${'"x",'.repeat(1_000)}"x"]}`,
  ])('POST /restart of the admin socket takes no %.40s', async (text) => {
    const client = adminClient(join(h.dir, 'admin.sock'), AbortSignal.timeout(10_000));
    expect((await client.send('POST', '/restart', { type: 'application/json', text })).status).toBe(400);
    expect((await client.get('/restart')).status).toBe(405);
  });

  it('top: figures of pods, of containers, of the node', async () => {
    const node = await ctl('top', 'node');
    expect(node.out).toMatch(/^NODE +CPU\(cores\) +MEMORY\(bytes\)\nn1 /);
    const pods = JSON.parse((await ctl('top', '-l', 'app=web', '-o', 'json')).out) as { podRef: { name: string }; containers: unknown[] }[];
    expect(pods.map((p) => [p.podRef.name, p.containers.length])).toEqual([['web-n1', 2]]);
    expect((await ctl('top', '--containers', '-l', 'app=web')).out.split('\n')).toHaveLength(4);
  });

  it('logs: of every container, of pods by label, of the last minutes', async () => {
    const { pods } = JSON.parse((await ctl('pods', '--json')).out) as { pods: { name: string; uid: string }[] };
    const write = (name: string, container: string, lines: readonly [agoMs: number, text: string][]) => {
      const dir = join(h.dir, 'logs', 'pods', `default_${name}_${pods.find((p) => p.name === name)?.uid}`, container);
      mkdirSync(dir, { recursive: true });
      const text = lines.map(([ago, said]) => `${new Date(Date.now() - ago).toISOString()} stdout F ${said}\n`).join('');
      writeFileSync(join(dir, '0.log'), text);
    };
    write('web-n1', 'app', [
      [600_000, 'old'],
      [1_000, 'new'],
    ]);
    write('web-n1', 'side', [[1_000, 'beside']]);
    write('db-n1', 'app', [[1_000, 'data']]);
    const located = JSON.parse((await ctl('logs', 'web', '--all-containers', '--json')).out) as { path: string }[];
    expect(located.map((l) => l.path.split('/').slice(-2).join('/'))).toEqual(['app/0.log', 'side/0.log']);
    expect((await ctl('logs', 'web', '--all-containers')).out).toBe('old\nnew\nbeside\n');
    expect((await ctl('logs', 'web', '-c', 'app', '--since', '5m')).out).toBe('new\n');
    const labelled = await ctl('logs', '-l', 'app', '--prefix', '--since', '5m', '--all-containers');
    expect(labelled.out).toBe('[db-n1/app] data\n[web-n1/app] new\n[web-n1/side] beside\n');
    expect(await ctl('logs', '-l', 'app=none')).toMatchObject({
      code: 1,
      err: expect.stringContaining('no pod of this node has these labels'),
    });
  });
});

describe('what may follow', () => {
  const follows = async (...words: string[]) =>
    (await ctl('--get-yargs-completions', 'actorctl', ...words)).out.split('\n').filter((l) => l !== '');
  it('is a pod, a container of it, an actor, a kind', async () => {
    expect(await follows('why', '')).toEqual(['db-n1', 'web-n1', 'node']);
    expect(await follows('logs', 'w')).toEqual(['web-n1']);
    expect(await follows('exec', 'web-n1', '-c', '')).toEqual(['app', 'side']);
    expect(await follows('get', 'pods', 'd')).toEqual(['db-n1']);
    expect(await follows('delete', 'pod', '--grace-period', '5', 'd')).toEqual(['db-n1']);
    expect(await follows('restart', 'pod', 'we')).toEqual(['web-n1']);
    expect(await follows('restart', 'pod', 'web-n1', '-c', 's')).toEqual(['side']);
    expect(await follows('pods', '-n', '')).toEqual(['default']);
    expect(await follows('recorder', 'node/pods/podM')).toEqual(['node/pods/podManager']);
    expect(await follows('inject', 'kill', 'pod', 'd')).toEqual(['db-n1']);
    expect(await follows('pod')).toContain('pods');
    expect(await follows('logs', 'web-n1', '--ta')).toContain('--tail');
  });
  it('is nothing where no node answers, at once', async () => {
    const out = await ctlWith({ env: { ACTORLET_SOCKET: '/nonexistent.sock' } }, '--get-yargs-completions', 'actorctl', 'why', '');
    expect(out).toEqual({ code: 0, out: '', err: '' });
  });
});

describe('--watch on a terminal', () => {
  const terminal = (rows: number): { terminal: Terminal; modes: string[] } => {
    const modes: string[] = [];
    return {
      modes,
      terminal: {
        input: true,
        size: () => ({ columns: 120, rows }),
        raw: () => {
          modes.push('raw');
          return { [Symbol.dispose]: () => void modes.push('restored') };
        },
        onResize: () => ({ [Symbol.dispose]: () => undefined }),
      },
    };
  };
  it('is no higher than the terminal, and ends with q', async () => {
    const keys = new PassThrough();
    const t = terminal(10);
    const seen = await ctlWith({ columns: 120, stdin: keys, terminal: t.terminal, onOut: () => keys.write('q') }, 'tree', '-w');
    const picture = seen.out.split('\u001b[H\u001b[2J')[1] ?? '';
    expect(seen.code).toBe(0);
    expect(picture.split('\n').length).toBeLessThanOrEqual(10);
    expect(picture).toMatch(/… \d+ more lines; q ends\n$/);
    expect(t.modes).toEqual(['raw', 'restored']);
  });
});

describe('data', () => {
  it('is as schemas/actorctl.json says', async () => {
    const validate = validator('actorctl.json');
    for (const command of [['why', 'web'], ['why', 'node'], ['why', 'nobody'], ['healthz'], ['recorder', '--limit', '50']]) {
      const { out } = await ctl(...command, '-o', 'json');
      expect(complaintsOf(validate, JSON.parse(out)), command.join(' ')).toEqual([]);
    }
    expect(validate({ healthy: 'yes' })).toBe(false);
  });
  it('of why has what its lines say', async () => {
    const { pod } = JSON.parse((await ctl('why', 'web', '-o', 'json')).out) as { pod: PodExplained };
    expect(pod).toMatchObject({ name: 'web-n1', namespace: 'default', source: 'file', phase: 'Running', ready: true, runtime: [] });
    expect(pod.containers.map((c) => [c.name, c.state, c.restarts])).toEqual([
      ['app', 'running', 0],
      ['side', 'running', 0],
    ]);
    expect(pod.events.length).toBeGreaterThan(0);
    const { node } = JSON.parse((await ctl('why', 'node', '-o', 'json')).out) as { node: NodeExplained };
    expect(node).toMatchObject({ name: 'n1', ready: true, problems: [], pods: [], unwell: [] });
  });
  it('of healthz and the recorder has fields, not lines', async () => {
    const health = JSON.parse((await ctl('healthz', '-o', 'json')).out) as {
      healthy: boolean;
      actors: { path: string; name: string; ok: boolean }[];
    };
    expect(health.healthy).toBe(true);
    // A person knows a pod by its name.
    const workers = health.actors.filter(({ path }) => path.startsWith('node/pods/workers/'));
    expect(workers.map(({ name }) => name).sort()).toEqual(['node/pods/workers/db-n1', 'node/pods/workers/web-n1']);
    expect(health.actors.find((a) => a.path === 'node/runtime/cri')).toEqual({
      path: 'node/runtime/cri',
      name: 'node/runtime/cri',
      ok: true,
      reason: '',
      down: false,
    });
    const entries = JSON.parse((await ctl('recorder', 'node/pods/podManager', '--limit', '3', '-o', 'json')).out) as { path: string }[];
    expect(entries).toHaveLength(3);
    for (const entry of entries)
      expect(entry).toMatchObject({ n: expect.any(Number), atMs: expect.any(Number), path: 'node/pods/podManager' });
  });
});

describe('a command that did not start', () => {
  it.each([
    ['exec: "nosuch": executable file not found in $PATH', 'nosuch', 127],
    ['OCI runtime exec failed: unable to start container process: exec: "/x": stat /x: no such file or directory: unknown', '/x', 127],
    ['exec: "/etc/hosts": permission denied', '/etc/hosts', 126],
  ])('%s', (words, program, code) => expect(notStarted(words, program)?.exitCode).toBe(code));
  it('is not any other failure', () => {
    expect(notStarted('the connection broke: no such file or directory', 'sh')).toBeNull();
  });
});
