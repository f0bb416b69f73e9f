/**
 * The package as others get it: packed, installed into a project of theirs, type-checked, run; and the worked example of
 * examples/test-your-pods on it, so that it stays true.
 */
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { cleanEnv } from '../src/reaper/client.ts';

const project = join(import.meta.dirname, '..', '..', '..');
const modules = join(project, 'node_modules');
const run = promisify(execFile);
let home = '';
let example = '';
let controller = '';
let packedBytes = 0;
/** What a user fetches, and what lies on the disk afterwards. */
const PACKED_BYTES_MAX = 3_000_000;
const INSTALLED_BYTES_MAX = 150_000_000;
/** Of what must not be packed. */
const LEFT_BYTES = 1_000_000;

/** Of all files below a folder, without the packages that stand in it. */
function bytesBelow(folder: string): number {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.name !== 'node_modules')
    .reduce((sum, entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return sum + bytesBelow(path);
      return entry.isFile() ? sum + statSync(path).size : sum;
    }, 0);
}

/** Resolves with both outputs and the exit code, whatever it is. */
async function outcome(file: string, args: string[], cwd: string): Promise<{ code: number; output: string }> {
  // The runner of these tests must not be taken for a part of those that run within.
  const env = Object.fromEntries(Object.entries(cleanEnv(process.env)).filter(([name]) => !/^(VITEST|NODE_ENV|CI$)/.test(name)));
  // The package brings no Node of its own: the user's stands first on PATH.
  env.PATH = `${dirname(process.execPath)}:${env.PATH ?? ''}`;
  try {
    const { stdout, stderr } = await run(file, args, { cwd, env, maxBuffer: 1 << 24 });
    return { code: 0, output: stdout + stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, output: `${stdout}${stderr}` };
  }
}
const node = (args: string[], cwd = home) => outcome(process.execPath, args, cwd);

beforeAll(async () => {
  for (const script of ['scripts/build.mjs', 'scripts/build/build-types.mjs', 'scripts/man/main.ts']) {
    expect(await node([script], project)).toMatchObject({ code: 0 });
  }
  home = mkdtempSync(join(tmpdir(), 'actorlet-package-'));
  // What `npm run deb` and `npm install` of the example leave in a checkout.
  const left = ['dist/deb/actorlet-node.deb', 'examples/test-your-pods/node_modules/left/index.js'].map((path) => join(project, path));
  const mine = left.filter((path) => !existsSync(path));
  for (const path of mine) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, randomBytes(LEFT_BYTES));
  }
  const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', home], { cwd: project });
  for (const path of mine) rmSync(path);
  const packed = JSON.parse(stdout) as unknown;
  // npm 12 answers with an object by name, earlier ones with a list.
  const [entry] = (Array.isArray(packed) ? packed : Object.values(packed as object)) as { filename: string; size: number }[];
  packedBytes = entry?.size ?? Number.POSITIVE_INFINITY;
  mkdirSync(join(home, 'node_modules'));
  await run('tar', ['-xzf', join(home, entry?.filename ?? ''), '-C', join(home, 'node_modules')]);
  cpSync(join(home, 'node_modules/package'), join(home, 'node_modules/actorlet'), { recursive: true });
  rmSync(join(home, 'node_modules/package'), { recursive: true });
  // What installing would fetch, from where it is already.
  const { dependencies } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as { dependencies: Record<string, string> };
  for (const name of [...Object.keys(dependencies), 'vitest', 'typescript', '@types/node']) {
    const link = join(home, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(modules, name), link);
  }
  example = join(home, 'example');
  cpSync(join(project, 'examples/test-your-pods'), example, { recursive: true });
  controller = join(home, 'controller');
  cpSync(join(project, 'examples/test-your-controller'), controller, { recursive: true });
}, 240_000);
afterAll(() => {
  if (home !== '') rmSync(home, { recursive: true, force: true });
});

describe('the package', { timeout: 240_000 }, () => {
  it('holds what it needs and nothing of the sources', () => {
    const top = readdirSync(join(home, 'node_modules/actorlet')).sort();
    expect(top).toEqual([
      'LICENSE',
      'README.md',
      'bin',
      'dist',
      'docs',
      'examples',
      'package.json',
      'packaging',
      'proto',
      'schemas',
      'scripts',
    ]);
    expect(readdirSync(join(home, 'node_modules/actorlet/scripts'))).toEqual(['launch.sh']);
    const { man } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as { man: string[] };
    for (const page of man) expect(readFileSync(join(home, 'node_modules/actorlet', page), 'utf8')).toMatch(/^\.TH ACTOR/);
    for (const left of ['dist/deb', 'examples/test-your-pods/node_modules'])
      expect(existsSync(join(home, 'node_modules/actorlet', left))).toBe(false);
  });

  it('is small, also with all that it installs', () => {
    expect(packedBytes).toBeLessThanOrEqual(PACKED_BYTES_MAX);
    const lock = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { dev?: boolean; devOptional?: boolean; link?: boolean }>;
    };
    const installed = Object.entries(lock.packages)
      .filter(
        ([path, entry]) => path.startsWith('node_modules/') && entry.dev !== true && entry.devOptional !== true && entry.link !== true,
      )
      .map(([path]) => join(project, path))
      .filter((path) => existsSync(path));
    expect(installed.length).toBeGreaterThan(6);
    const total = [join(home, 'node_modules/actorlet'), ...installed].reduce((sum, path) => sum + bytesBelow(path), 0);
    expect(total).toBeLessThanOrEqual(INSTALLED_BYTES_MAX);
    // The user's own `node` is not hidden by one of ours.
    expect(installed.filter((path) => /node_modules\/node(-|$)/.test(path))).toEqual([]);
  });

  it('type-checks in a strict project, declarations included', async () => {
    writeFileSync(join(home, 'package.json'), JSON.stringify({ type: 'module' }));
    writeFileSync(
      join(home, 'consumer.ts'),
      `import { type NodeOptions, type PodHandle, startNode, type TestNode, type Timings, WaitError } from 'actorlet/harness';
import { type FleetOverview, type NodeOverview, type RunningFleet, startFleet, type StartFleetOptions } from 'actorlet/fleet';
import { type Fault, runSim, type SimOptions, type SimResult, summary } from 'actorlet/sim';
export async function g(o: StartFleetOptions): Promise<[number, NodeOverview['state'][], Record<string, number>]> {
  await using fleet: RunningFleet = await startFleet({ nodes: 3, asNodes: true, ...o });
  await fleet.ready(1_000);
  // @ts-expect-error names of nodes
  await fleet.restart([1]);
  const { nodes }: FleetOverview = fleet.overview();
  return [nodes.ready, fleet.nodes().map((n) => n.state), fleet.calls()];
}
export async function f(o: NodeOptions): Promise<[Timings, number, string]> {
  await using node: TestNode = await startNode(o);
  const pod: PodHandle = await node.apply('pod.yaml');
  const status = await pod.phase(['Running', 'Succeeded'], { timeoutMs: 1_000 });
  // @ts-expect-error a phase is one of five
  await pod.phase('Runing');
  const options: SimOptions = { seed: 1 };
  const result: SimResult = await runSim(options);
  const faults: readonly Fault[] = result.schedule;
  return [await pod.timings(), faults.length, \`\${status.phase ?? ''} \${WaitError.name} \${summary.length}\`];
}
`,
    );
    const compilerOptions = {
      target: 'ES2024',
      lib: ['ES2024', 'ESNext.Disposable'],
      module: 'NodeNext',
      types: ['node'],
      strict: true,
      noEmit: true,
    };
    writeFileSync(
      join(home, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: { ...compilerOptions, skipLibCheck: false }, files: ['consumer.ts'] }),
    );
    const tsc = join(modules, '.bin/tsc');
    expect(await outcome(tsc, ['-p', home, '--pretty', 'false'], home)).toEqual({ code: 0, output: '' });
    expect(await outcome(tsc, ['-p', example, '--pretty', 'false'], example)).toEqual({ code: 0, output: '' });
    expect(await outcome(tsc, ['-p', controller, '--pretty', 'false'], controller)).toEqual({ code: 0, output: '' });
  });

  it('simulates, brings up nodes and tries manifests from where it is installed', async () => {
    writeFileSync(
      join(home, 'consumer.mjs'),
      `import { startNode } from 'actorlet/harness';
import { runSim } from 'actorlet/sim';
const { violation, steps } = await runSim({ seed: 7, minutes: 0.2, pods: 2 });
console.log('simulated', violation, steps > 100);
const node = await startNode({ runtime: 'hollow' });
const pod = await node.apply({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: { containers: [{ name: 'app', image: 'x' }] } });
console.log((await pod.phase('Running')).phase);
await node.dispose();
`,
    );
    expect(await node(['consumer.mjs'])).toEqual({ code: 0, output: 'simulated null true\nRunning\n' });
    // As the examples for CI services do it.
    const [command = '', other] = ['github-actions', 'gitlab-ci'].map((name) => {
      const text = readFileSync(join(example, 'ci', `${name}.yaml`), 'utf8');
      expect(parse(text)).toBeTypeOf('object');
      return /npx --no-install (actorctl try .*)$/m.exec(text)?.[1];
    });
    expect(command).toBe(other);
    const tried = await outcome('sh', ['-c', `../node_modules/actorlet/bin/${command}`], example);
    expect(tried).toMatchObject({ code: 0, output: expect.stringMatching(/^held {6}shop {2}shop restarts=0/m) });
    expect(readFileSync(join(example, 'junit.xml'), 'utf8')).toContain('tests="2" failures="0"');
  });

  it('brings up a fleet against the API server of another process', async () => {
    const server = spawn(process.execPath, ['node_modules/actorlet/dist/actorlet.mjs', 'fleet', '--nodes=1', '--api=embedded'], {
      ...{ cwd: home, stdio: ['ignore', 'ignore', 'pipe'] },
    });
    try {
      let said = '';
      server.stderr.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
      await expect.poll(() => said).toContain('1/1 Ready');
      writeFileSync(
        join(home, 'fleet.mjs'),
        `import { startFleet } from 'actorlet/fleet';
const options = { nodes: 2, prefix: 'mine', kubeconfig: '.actorlet/fleet.kubeconfig' };
{
  await using fleet = await startFleet(options);
  await fleet.ready();
  await fleet.restart(['mine-1']);
  await fleet.ready();
  console.log(fleet.overview().nodes, fleet.calls()['POST nodes'], fleet.nodes().map((n) => n.name));
}
await startFleet({ ...options, prefix: 'fleet', name: 'other', nodes: 1 }).catch((error) => console.log(error.message));
await startFleet({ ...options, nodes: undefined }).catch((error) => console.log(error.message));
`,
      );
      expect(await node(['fleet.mjs'])).toEqual({
        code: 0,
        output: `{ total: 2, running: 2, ready: 2 } 2 [ 'mine-0', 'mine-1' ]
1 node is there that the fleet other did not make: fleet-0; choose other names of nodes
startFleet: give nodes or file
`,
      });
    } finally {
      server.kill('SIGKILL');
    }
  });
});

describe('examples/test-your-pods', { timeout: 240_000 }, () => {
  it('passes with vitest', async () => {
    const result = await node([join(modules, 'vitest/vitest.mjs'), 'run', '--reporter=verbose'], example);
    expect(result).toMatchObject({ code: 0, output: expect.stringMatching(/4 passed/) });
  });
  it('passes with node:test', async () => {
    const result = await node(
      ['--disable-warning=ExperimentalWarning', '--test', '--test-reporter=tap', 'node-test/flaky.test.ts'],
      example,
    );
    expect(result).toMatchObject({ code: 0, output: expect.stringMatching(/^# pass 2$/m) });
  });
});
