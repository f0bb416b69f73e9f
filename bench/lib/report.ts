/** What every benchmark prints: one JSON object with the machine, the commit, all samples and their quantiles. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cpu, fsSize, mem, osInfo } from 'systeminformation';

export const projectRoot = join(import.meta.dirname, '..', '..');

function firstLine(file: string, args: string[], cwd?: string): string {
  try {
    return execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], ...(cwd ? { cwd } : {}) }).trim();
  } catch {
    return 'unknown';
  }
}

/** `commit` ends in `+changes` when the work tree differs from it: such a figure is no evidence. */
export async function machine(): Promise<Record<string, string | number>> {
  const changed = firstLine(
    'git',
    ['status', '--porcelain', '--untracked-files=no', '--', 'src', 'bin', 'proto', 'package-lock.json'],
    projectRoot,
  );
  const [processor, memory, os, disks] = await Promise.all([cpu(), mem(), osInfo(), fsSize()]);
  return {
    at: new Date().toISOString(),
    commit: firstLine('git', ['rev-parse', 'HEAD'], projectRoot) + (changed === '' ? '' : '+changes'),
    cpu: `${processor.manufacturer} ${processor.brand}`,
    cores: processor.cores,
    memoryMiB: Math.round(memory.total / 2 ** 20),
    disk: disks.find((d) => d.mount === '/')?.type ?? 'unknown',
    os: `${os.distro} ${os.release}, Linux ${os.kernel}, ${os.arch}`,
    node: process.version,
    containerd: firstLine('containerd', ['--version']).split(' ')[2] ?? 'unknown',
  };
}

export interface Summary {
  count: number;
  min: number;
  p50: number;
  p90: number;
  p99: number;
  max: number;
}

/** Nearest-rank quantiles, rounded to 0.01. Throws without samples. */
export function summary(samples: readonly number[]): Summary {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (q: number): number => {
    const value = sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))];
    if (value === undefined) throw new Error('no samples');
    return Math.round(value * 100) / 100;
  };
  return { count: sorted.length, min: at(0), p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) };
}

/** Prints the report; with `--out=FILE` also writes it. */
export async function report(name: string, results: object): Promise<void> {
  const text = `${JSON.stringify({ benchmark: name, machine: await machine(), results }, null, 2)}\n`;
  const out = option('out');
  if (out !== undefined) writeFileSync(out, text);
  process.stdout.write(text);
}

/** Value of `--name=value` on the command line. */
/** Only `--name=value`; a stray word would silently run something else than was asked for. */
export function option(name: string): string | undefined {
  const stray = process.argv.slice(2).find((arg) => !/^--[a-z-]+=/.test(arg));
  if (stray !== undefined) throw new Error(`argument ${stray}: options are written --name=value`);
  return process.argv.find((arg) => arg.startsWith(`--${name}=`))?.slice(name.length + 3);
}
export function numberOption(name: string, fallback: number): number {
  const text = option(name);
  const value = text === undefined ? fallback : Number(text);
  if (!Number.isFinite(value) || value <= 0) throw new Error(`--${name}=${text ?? ''}: a number above 0 is wanted`);
  return value;
}

/** Progress, on stderr: stdout is the JSON alone. */
export function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Polls until `probe` answers something other than undefined; throws with `what` at the deadline. */
export async function until<T>(what: string, probe: () => Promise<T | undefined>, o: { timeoutMs: number; everyMs: number }): Promise<T> {
  const deadline = performance.now() + o.timeoutMs;
  let last = '';
  for (;;) {
    try {
      const value = await probe();
      if (value !== undefined) return value;
    } catch (error) {
      last = `; last error: ${error instanceof Error ? error.message : String(error)}`;
    }
    if (performance.now() > deadline) throw new Error(`waited ${o.timeoutMs} ms for ${what}${last}`);
    await sleep(o.everyMs);
  }
}
