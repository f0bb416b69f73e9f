/** The programs of the specs: `e2e.test`, run by `ginkgo`. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
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

  /** The names of all specs of the release. */
  async names(): Promise<string[]> {
    const file = join(this.#dir, 'all.xml');
    const { out } = await ran(this.#tests, [
      '--ginkgo.dry-run',
      '--ginkgo.silence-skips',
      `--ginkgo.junit-report=${file}`,
      '--provider=skeleton',
    ]);
    if (!existsSync(file)) throw new Error(`${this.#tests} lists no specs: ${out.slice(-2_000)}`);
    return namesOf(readFileSync(file, 'utf8'));
  }

  /** What came of these within a time. `processes`: how many run at once. */
  async run(
    names: readonly string[],
    o: { agent: string; processes: number; seconds: number; kubeconfig: string; missing: readonly string[] },
  ): Promise<SpecOutcomes> {
    const report = `${o.agent}.xml`;
    const args = [
      ...[`--nodes=${Math.min(o.processes, names.length)}`, `--focus=${focusOf(names)}`, '--no-color', '--keep-going', '--silence-skips'],
      ...[`--timeout=${o.seconds}s`, `--grace-period=${GRACE_S}s`, '--output-interceptor-mode=none'],
      ...[`--output-dir=${this.#dir}`, `--junit-report=${report}`, this.#tests, '--'],
      ...[`--kubeconfig=${o.kubeconfig}`, '--provider=skeleton', '--num-nodes=1', '--minStartupPods=0'],
      ...['--delete-namespace-on-failure=true', '--node-schedulable-timeout=2m', '--disable-log-dump=true'],
    ];
    const { out } = await ran(this.#ginkgo, args);
    const file = join(this.#dir, report);
    if (!existsSync(file)) throw new Error(`the specs did not run: ${out.slice(-4_000)}`);
    return outcomesOf(readFileSync(file, 'utf8'), o.missing);
  }
}

function ran(program: string, args: readonly string[]): Promise<{ code: number | null; out: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const chunks: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => void chunks.push(chunk));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, out: Buffer.concat(chunks).toString('utf8') }));
  });
}
