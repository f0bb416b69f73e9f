/** `actorlet fleet` as a person starts it, in a fresh folder, with the API server of its own process. */
import { once } from 'node:events';
import { existsSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { adminClient } from '@actorlet/admin/src/client.ts';
import { afterAll, describe, expect, it } from 'vitest';
import { parsed, UsageError } from '../src/boot/args.ts';
import { inputsOf } from '../src/boot/inputs.ts';
import { endPrograms, startProgram } from './process.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const dir = mkdtempSync(join(tmpdir(), 'actorlet-fleet-cli-'));

function started(program: string, ...args: string[]) {
  const it = startProgram(join(ROOT, program), args, { cwd: dir, env: { ...process.env, KUBECONFIG: '' } });
  return { ...it, says: (text: string | RegExp) => expect.poll(it.text).toMatch(text) };
}
const fleet = (...args: string[]) => started('bin/actorlet', 'fleet', ...args);
const file = (name: string, text: string): string => {
  writeFileSync(join(dir, name), text);
  return name;
};

afterAll(() => {
  endPrograms();
  rmSync(dir, { recursive: true, force: true });
});

describe('actorlet fleet', { timeout: 150_000 }, () => {
  it('says what to choose where its socket, port or page is taken, before it changes anything', async () => {
    const first = fleet('--nodes=2', '--api=embedded');
    await first.says('nodes 2/2 Ready');
    const kubeconfig = readFileSync(join(dir, '.actorlet/fleet.kubeconfig'), 'utf8');
    const second = fleet('--nodes=2', '--api=embedded');
    // A node names the file that leads to its API server.
    const node = adminClient(join(dir, '.actorlet/fleet.sock'), AbortSignal.timeout(20_000), 'fleet-0');
    expect(await node.json('/node')).toMatchObject({ kubeconfig: join(dir, '.actorlet/fleet.kubeconfig') });
    expect(await second.ended).toBe(1);
    expect(second.text()).toContain(
      'cannot listen on .actorlet/fleet.sock: another process is listening on it; give each fleet a --socket',
    );
    expect(second.text()).not.toMatch(/^ +at /m);
    expect(readFileSync(join(dir, '.actorlet/fleet.kubeconfig'), 'utf8')).toBe(kubeconfig);
    // Somebody else made a link, and a file that anybody may read, where the kubeconfigs go.
    const elsewhere = file('elsewhere', 'is not ours');
    symlinkSync(join(dir, elsewhere), join(dir, '.actorlet/other.kubeconfig'));
    const beside = fleet('--nodes=1', '--api=embedded', '--socket=.actorlet/other.sock');
    await beside.says('kubectl --kubeconfig .actorlet/other.kubeconfig get nodes');
    expect(readFileSync(join(dir, elsewhere), 'utf8')).toBe('is not ours');
    const { mode, nlink } = lstatSync(join(dir, '.actorlet/other.kubeconfig'));
    expect([mode & 0o170777, nlink]).toEqual([0o100600, 1]);
    beside.child.kill('SIGINT');
    await beside.ended;
    expect(existsSync(join(dir, '.actorlet/other.kubeconfig'))).toBe(false);
    expect(readFileSync(join(dir, '.actorlet/fleet.kubeconfig'), 'utf8')).toBe(kubeconfig);
    const without = fleet('--nodes=1', '--api=embedded', '--socket=');
    await without.says(/kubectl --kubeconfig \.actorlet\/fleet-\d+\.kubeconfig get nodes/);
    without.child.kill('SIGINT');
    await without.ended;
    expect(readFileSync(join(dir, '.actorlet/fleet.kubeconfig'), 'utf8')).toBe(kubeconfig);
    first.child.kill('SIGINT');
    expect(await first.ended).toBe(0);
    expect(first.text()).toContain('stopping 2 nodes');
    expect(existsSync(join(dir, '.actorlet/fleet.kubeconfig'))).toBe(false);
    await using taken = createServer();
    await new Promise<void>((done) => taken.listen(0, '127.0.0.1', done));
    const at = taken.address();
    const port = at !== null && typeof at === 'object' ? at.port : 0;
    const third = fleet('--nodes=2', '--api=embedded', `--page=${port}`);
    expect(await third.ended).toBe(1);
    expect(third.text()).toContain(`cannot listen on 127.0.0.1:${port}: the address is already in use; choose another --page`);
    expect(readdirSync(join(dir, '.actorlet'))).toEqual([]);
  });

  it('starts in the folder where one was killed', async () => {
    const killed = fleet('--nodes=2', '--api=embedded');
    await killed.says('nodes 2/2 Ready');
    killed.child.kill('SIGKILL');
    await killed.ended;
    expect(existsSync(join(dir, '.actorlet/fleet.sock'))).toBe(true);
    const again = fleet('--nodes=2', '--api=embedded', '--cleanup');
    await again.says('nodes 2/2 Ready');
    again.child.kill('SIGTERM');
    expect(await again.ended).toBe(0);
    expect(again.text()).toContain('removed 2 nodes from the API');
    expect(existsSync(join(dir, '.actorlet/fleet.sock'))).toBe(false);
  });

  it('ends at Ctrl-C while it waits for an API server that is silent', async () => {
    await using silent = createServer((socket) => socket.resume());
    await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done));
    const at = silent.address();
    const server = `https://127.0.0.1:${at !== null && typeof at === 'object' ? at.port : 0}`;
    const of = { 'current-context': 'a', contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }] };
    const users = [{ name: 'a', user: { token: 'x' } }];
    const kubeconfig = file('silent.json', JSON.stringify({ ...of, clusters: [{ name: 'a', cluster: { server } }], users }));
    const connected = once(silent, 'connection');
    const mine = fleet('--nodes=2', `--kubeconfig=${kubeconfig}`, '--socket=', '--port=0');
    await connected;
    mine.child.kill('SIGINT');
    expect(await mine.ended).toBe(130);
    const refused = fleet('--nodes=2', '--kubeconfig=nowhere.json');
    expect(await refused.ended).toBe(1);
    expect(refused.text()).toBe(
      "actorlet fleet: kubeconfig nowhere.json: cannot be read: ENOENT: no such file or directory, open 'nowhere.json'\n",
    );
  });

  it('is reached by actorctl fleet run, too, and leaves by the code of its expectations', async () => {
    const spec =
      'groups: [{ name: a, count: 2 }], steps: [{ at: 100ms, do: restart }], expect: [{ nodesReady: 2, within: 30s }, { podsReady: 1, within: 1s }]';
    file('f.yaml', `apiVersion: actorlet.dev/v1alpha1\nkind: Fleet\nmetadata: { name: x }\nspec: { ${spec} }\n`);
    const run = started('bin/actorctl', 'fleet', 'run', 'f.yaml', '--api=embedded', '--socket=');
    expect(await run.ended, run.text()).toBe(1);
    expect(run.text()).toMatch(/at least 2 nodes Ready within 30 s +2 +met after/);
    expect(run.text()).toContain('NOT MET');
    expect(run.text()).toContain('exit code 1: 1 expectation not met');
  });

  it('says which step failed, and of Ctrl-C that it came before all was decided', async () => {
    const of = (spec: string) =>
      `apiVersion: actorlet.dev/v1alpha1\nkind: Fleet\nmetadata: { name: x }\nspec: { groups: [{ name: a, count: 1 }], ${spec} }\n`;
    const object = '{ apiVersion: v1, kind: Nothing, metadata: { name: p } }';
    const met = 'expect: [{ nodesReady: 1, within: 30s }]';
    file('step.yaml', of(`steps: [{ at: 1s, do: apply, objects: [${object}] }], ${met}`));
    const failed = fleet('step.yaml', '--api=embedded', '--socket=');
    expect(await failed.ended, failed.text()).toBe(1);
    expect(failed.text()).toContain('exit code 1: step apply failed on 1 object\n');
    file('late.yaml', of('expect: [{ nodesReady: 1, within: 30s }, { podsReady: 1, within: 10m }]'));
    const cut = fleet('late.yaml', '--api=embedded', '--socket=', '--json');
    await cut.says('nodes 1/1 Ready');
    cut.child.kill('SIGINT');
    expect(await cut.ended, cut.text()).toBe(130);
    expect(cut.text()).toMatch(/at least 1 node Ready within 30 s +1 +met after[\s\S]*at least 1 pod Ready within 600 s +0 +not decided/);
    expect(cut.text()).toContain('exit code 130: interrupted before 1 expectation could be decided');
    expect(cut.text()).toMatch(/"running": 1,\s+"ready": 1/);
  });

  it('names each file that is missing, by line and field', async () => {
    const steps = '  steps:\n    - { at: 1s, do: apply, manifests: [a.yaml, b.yaml] }\n    - { at: 2s, do: inject, scenario: c.yaml }\n';
    const groups = '  groups: [{ name: a, count: 1 }]\n';
    const text = `apiVersion: actorlet.dev/v1alpha1\nkind: Fleet\nmetadata: { name: x }\nspec:\n${groups}  stages: d.yaml\n${steps}`;
    const path = join(dir, file('lacks.yaml', text));
    const args = await parsed([path, '--api=embedded']);
    if (args === null) throw new Error('help was shown');
    const told: unknown = await inputsOf(args).catch((error: unknown) => error);
    const at = (line: number, field: string, name: string) => `${path}:${line}: spec.${field}: ${name} cannot be read: ENOENT`;
    for (const missing of [
      at(6, 'stages', 'd.yaml'),
      at(8, 'steps[0].manifests', 'a.yaml'),
      at(8, 'steps[0].manifests', 'b.yaml'),
      at(9, 'steps[1].scenario', 'c.yaml'),
    ])
      expect(String(told)).toContain(missing);
  });

  it('refuses a manifest without objects', async () => {
    file('nothing.yaml', '# later\n');
    const steps = '  groups: [{ name: a, count: 1 }]\n  steps:\n    - { at: 1s, do: apply, manifests: [nothing.yaml] }\n';
    const text = `apiVersion: actorlet.dev/v1alpha1\nkind: Fleet\nmetadata: { name: x }\nspec:\n${steps}`;
    const args = await parsed([join(dir, file('idle.yaml', text)), '--api=embedded']);
    if (args === null) throw new Error('help was shown');
    await expect(inputsOf(args)).rejects.toThrow(`${join(dir, 'nothing.yaml')} holds no object`);
  });

  it.each([
    [[], 'give a FILE or --nodes N'],
    [['--nodes=abc', '--api=embedded'], '--nodes must be a whole number from 1 to 20000, is NaN'],
    [['--nodes=2'], 'without a cluster take --api local or --api embedded'],
    [['--nodes=2', '--api=embedded', '--share-watches'], 'with --api embedded they have no effect'],
    [['nowhere.yaml', '--api=embedded'], 'the fleet file nowhere.yaml cannot be read: ENOENT'],
    [['.', '--api=embedded'], 'the fleet file . cannot be read: EISDIR'],
    [['--nodes=2', '--api=embedded', '--prefix=My_Nodes'], '--prefix "My_Nodes" must be lower-case letters'],
    [['--nodes=2', '--api=embedded', '--seed=-1'], '--seed must be a whole number'],
    [['x.yaml', '--api=embedded', '--seed=2', '--name=x'], '--name, --seed: a fleet file says that itself'],
    [['--nodes=2', '--api=embedded', '--cuont=3'], 'Unknown argument: cuont'],
    [['--nodes=2', '--api=embedded', '--port=20300'], '--port and --address: with --api embedded nodes have no port'],
    [['--nodes=2', '--api=embedded', '--address=10.0.0.1'], '--port and --address: with --api embedded nodes have no port'],
    [['a.yaml', 'b.yaml'], 'one FILE at most; b.yaml is another one'],
    [['--nodes=2', '--api=embedded', '--shard=2/2'], '--shard must be I/N with I from 0 to N-1'],
  ])('refuses %j with a word of what is wrong', async (argv, why) => {
    const read = async () => {
      const args = await parsed(argv);
      if (args !== null) await inputsOf(args);
    };
    await expect(read()).rejects.toThrow(UsageError);
    await expect(read()).rejects.toThrow(why);
  });
});

describe('--seeds with the controller of examples/test-your-controller/seeds', { timeout: 1_800_000 }, () => {
  const example = join(ROOT, 'examples/test-your-controller/seeds');
  const seeds = (count: number, controller: string) =>
    fleet(join(example, 'fleet.yaml'), '--api=embedded', `--seeds=${count}`, '--json', '--', join(ROOT, 'scripts/node'), controller);

  it('finds the lost update, and shrinks it to the stale read', async () => {
    const run = seeds(50, join(example, 'mirror.ts'));
    expect(await run.ended).toBe(1);
    expect(run.text()).toContain('breaks: the copy is up to date');
    const faults = run.text().match(/^ {2}- \{ at: .*$/gm) ?? [];
    expect(faults.length).toBeLessThanOrEqual(3);
    expect(faults.join('\n')).toContain('fault: stale-reads');
  });

  it('is green once it is mended', async () => {
    const mended = join(example, `mended-${process.pid}.ts`);
    const text = readFileSync(join(example, 'mirror.ts'), 'utf8');
    writeFileSync(mended, text.replace('return seen;', 'return listed;'));
    try {
      const run = seeds(10, mended);
      expect(await run.ended, run.text()).toBe(0);
    } finally {
      rmSync(mended);
    }
  });
});
