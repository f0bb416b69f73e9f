/**
 * What the reference kubelet says later in its start of a configuration that it has read: it is started on a real containerd,
 * until it has started its loops, and a second more. As root, on a machine on which no node agent works.
 */
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { TUNABLES } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { startContainerd } from '../../e2e/lab/containerd.ts';
import { until } from '../../e2e/lab/ports.ts';
import { freePort } from '../../freePort.ts';
import type { Variant } from '../variants/variantParts.ts';
import { written } from './configurationAnswers.ts';

const START_LIMIT_MS = 15_000;
const AFTER_START_MS = 1_200;
const WORDS_MAX = 160;

/** By name, why it ends; those that run are not in it. */
export async function laterAnswers(kubelet: string, asked: ReadonlyMap<string, Variant>): Promise<Record<string, string>> {
  const tunables = TUNABLES.map((name) => `/proc/sys/${name}`).map((path) => [path, readFileSync(path, 'utf8')] as const);
  const lab = await startContainerd();
  const out: Record<string, string> = {};
  try {
    for (const [name, variant] of asked) {
      const ended = await started(kubelet, variant, await flagsOf(name, lab.socket));
      console.log(`${name.replaceAll('\n', ' ')}: ${ended ?? 'it runs'}`);
      if (ended !== null) out[name] = ended.slice(0, WORDS_MAX);
    }
  } finally {
    for (const [path, value] of tunables) writeFileSync(path, value);
    await lab.stop();
  }
  return out;
}

/** What makes a node of its own of it; what the variant is about stays. */
async function flagsOf(name: string, socket: string): Promise<string[]> {
  const about = (pattern: RegExp): boolean => pattern.test(name);
  return [
    ...(about(/containerRuntimeEndpoint/) ? [] : [`--container-runtime-endpoint=unix://${socket}`]),
    ...(about(/authorization/) ? [] : ['--anonymous-auth=true', '--authorization-mode=AlwaysAllow']),
    ...(about(/systemCgroups/)
      ? []
      : ['--cgroups-per-qos=false', '--enforce-node-allocatable=', '--kube-reserved-cgroup=', '--system-reserved-cgroup=']),
    ...['--authentication-token-webhook=false', '--client-ca-file=', '--read-only-port=0', '--fail-swap-on=false', '--hostname-override=n'],
    ...['--protect-kernel-defaults=false', '--make-iptables-util-chains=false', '--resolv-conf=/etc/resolv.conf'],
    ...[`--port=${await freePort()}`, `--healthz-port=${await freePort()}`],
  ];
}

/** Null: it runs. */
async function started(kubelet: string, variant: Variant, flags: readonly string[]): Promise<string | null> {
  using files = written(variant);
  const child = spawn(kubelet, [...files.args, ...flags], { cwd: files.dir, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const isOver = (): boolean => child.exitCode !== null || child.signalCode !== null;
  await until('the kubelet to start or end', async () => isOver() || log.includes('"Started kubelet"'), { timeoutMs: START_LIMIT_MS });
  await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, AFTER_START_MS))]);
  const runs = !isOver();
  child.kill('SIGKILL');
  await closed;
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n').reverse()) {
    const at = line.split(' ')[4] ?? '';
    if (at.startsWith(`${files.dir}/`)) execFileSync('umount', ['-l', at]);
  }
  if (runs) return null;
  const errors = [...log.matchAll(/ err="((?:[^"\\]|\\.)*)"/g)].map((m) => m[1] ?? '');
  return files.hide((errors.at(-1) ?? log.slice(-WORDS_MAX)).replaceAll('\\"', '"'));
}
