/** The programs of the specs: `e2e.test` and `e2e_node.test`, run by `ginkgo`. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { OF_NODE_TESTS } from './groups.ts';
import type { Agent } from './node.ts';
import type { NodeTests } from './nodeTests.ts';
import { focusOf, namesOf, outcomesOf, type SpecOutcomes } from './outcomes.ts';

/** Of what a spec may take after its time: its namespace goes. */
const GRACE_S = 20;

export function asset(name: string): string {
  const found = optionalAsset(name);
  if (found === undefined) throw new Error(`${name} is not in KUBEBUILDER_ASSETS: build it of the release under test, beside its kubelet`);
  return found;
}

export function optionalAsset(name: string): string | undefined {
  const dirs = (process.env.KUBEBUILDER_ASSETS ?? '').split(delimiter).filter(Boolean);
  return dirs.map((dir) => join(dir, name)).find(existsSync);
}

export class SpecPrograms {
  readonly #dir: string;
  readonly #tests = asset('e2e.test');
  readonly #ginkgo = asset('ginkgo');

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** `1.36.2`. */
  async version(): Promise<string> {
    return (await ran(this.#tests, ['--version'])).out.trim().replace(/^v/, '');
  }

  /** With registry and version, as the specs name them. */
  async images(): Promise<string[]> {
    const { out } = await ran(this.#tests, ['--list-images']);
    return out.split('\n').filter((line) => /^\S+\/\S+:\S+$/.test(line));
  }

  /** The names of all specs of the release; those that `e2e_node.test` alone has begin with `e2e_node: `. */
  async names(): Promise<string[]> {
    const names = await this.#namesOf(this.#tests, ['--provider=skeleton']);
    const nodeTests = optionalAsset('e2e_node.test');
    if (nodeTests === undefined) return names;
    const known = new Set(names);
    const own = (await this.#namesOf(nodeTests, [])).filter((name) => !known.has(name));
    return [...names, ...own.map((name) => `${OF_NODE_TESTS}${name}`)];
  }

  async #namesOf(program: string, args: readonly string[]): Promise<string[]> {
    const file = join(this.#dir, 'all.xml');
    rmSync(file, { force: true });
    const flags = ['--ginkgo.dry-run', '--ginkgo.silence-skips', `--ginkgo.junit-report=${file}`, ...args];
    const { out } = await ran(program, flags, { cwd: this.#dir });
    if (!existsSync(file)) throw new Error(`${program} lists no specs: ${out.slice(-2_000)}`);
    return namesOf(readFileSync(file, 'utf8'));
  }

  /** What came of these within a time. `processes`: how many run at once. */
  async run(names: readonly string[], o: Run & { kubeconfig: string; missing: readonly string[] }): Promise<SpecOutcomes> {
    const args = [
      ...[`--kubeconfig=${o.kubeconfig}`, '--provider=skeleton', '--num-nodes=1', '--minStartupPods=0'],
      ...['--delete-namespace-on-failure=true', '--node-schedulable-timeout=2m', '--disable-log-dump=true'],
    ];
    return outcomesOf(await this.#report(names, { ...o, program: this.#tests, args, env: process.env }), o.missing);
  }

  /** The same, of specs of `e2e_node.test`, which starts the agent. */
  async runOfNode(names: readonly string[], o: Run & { node: NodeTests; agent: Agent }): Promise<SpecOutcomes> {
    const { program, env, missing } = o.node;
    const own = names.map((name) => name.replace(OF_NODE_TESTS, ''));
    const outcomes = outcomesOf(await this.#report(own, { ...o, program, args: o.node.args(o.agent), env }), missing);
    return Object.fromEntries(Object.entries(outcomes).map(([name, outcome]) => [`${OF_NODE_TESTS}${name}`, outcome]));
  }

  /** Of JUnit. */
  async #report(names: readonly string[], o: Run & { program: string; args: readonly string[]; env: NodeJS.ProcessEnv }): Promise<string> {
    const report = `${o.agent}.xml`;
    const file = join(this.#dir, report);
    rmSync(file, { force: true });
    const args = [
      ...[`--nodes=${Math.min(o.processes, names.length)}`, `--focus=${focusOf(names)}`, '--no-color', '--keep-going', '--silence-skips'],
      ...[`--timeout=${o.seconds}s`, `--grace-period=${GRACE_S}s`, '--output-interceptor-mode=none'],
      ...[`--output-dir=${this.#dir}`, `--junit-report=${report}`, o.program, '--', ...o.args],
    ];
    const { out } = await ran(this.#ginkgo, args, { env: o.env, cwd: this.#dir });
    if (!existsSync(file)) throw new Error(`the specs did not run: ${out.slice(-4_000)}`);
    return readFileSync(file, 'utf8');
  }
}

interface Run {
  agent: string;
  processes: number;
  seconds: number;
}

function ran(
  program: string,
  args: readonly string[],
  o: { env?: NodeJS.ProcessEnv; cwd?: string } = {},
): Promise<{ code: number | null; out: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], ...o });
    const chunks: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => void chunks.push(chunk));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, out: Buffer.concat(chunks).toString('utf8') }));
  });
}
