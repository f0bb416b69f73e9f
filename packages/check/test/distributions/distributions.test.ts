/** Kubelets of distributions (docs/cluster/distributions.md): what `--check` says of their flags and files, and that a node runs with them. */
import { chmodSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { selfSignedCertificate } from '@actorlet/kubelet/boot/process/selfSigned.ts';
import { describe, expect, it } from 'vitest';
import { fakeBoot, tempDir, until } from '../../../../test/boot/helpers.ts';
import { MANIFESTS, virtualNode } from '../../../../test/integration/virtualNode.ts';
import { rotating } from '../../../../test/rotation.ts';
import { check } from '../../src/check.ts';
import type { Finding } from '../../src/findings.ts';
import { readInvocation } from '../../src/invocation.ts';
import type { Distribution } from './parts.ts';
import { DISTRIBUTIONS } from './table.ts';

/** What a test's machine cannot have as a node has it. */
const here = (dir: string): string[] => [
  ...['--container-runtime-endpoint=embedded://hollow', `--root-dir=${dir}/root`, `--cert-dir=${dir}/pki`, '--fail-swap-on=false'],
  ...['--cgroups-per-qos=false', '--enforce-node-allocatable=', '--kube-reserved-cgroup=', '--system-reserved-cgroup='],
  ...['--fail-cgroupv1=false', '--node-ip=', '--healthz-port=0', '--read-only-port=0', '--enable-server=false'],
  ...['--kube-reserved=', '--system-reserved='],
];
/** What comes of those, of gates of the CI machine alone, and of programs and name servers that it does not have. */
const OF_HERE = /podPidsLimit .* has no effect|^warning resolvConf |aws-iam-authenticator cannot be run$/;
/** Folders that configurations name. */
const STATIC_PODS = [
  ...['/etc/kubernetes/manifests', '/etc/kubernetes/static-pods'],
  ...['/var/lib/rancher/k3s/agent/pod-manifests', '/var/lib/rancher/rke2/agent/pod-manifests'],
];
const WEB = {
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', uid: '1' } },
  spec: { containers: [{ name: 'c', image: 'web' }] },
};
/** The node in virtual time has neither logind nor the cgroup of its own process. */
const OF_HOST = { resolvConf: '', shutdownGracePeriod: 0, shutdownGracePeriodCriticalPods: 0, kubeletCgroups: '', systemCgroups: '' };
const authority = selfSignedCertificate('ca', Date.now());

/** Its files below a folder, the flags that its kubelet gets, and what reading them found. */
async function laidOut({ files, words }: Distribution, dir: ReturnType<typeof tempDir>): Promise<{ argv: string[]; found: string[] }> {
  const paths = ['/var/log/pods', ...STATIC_PODS, ...Object.keys(files)].sort((a, b) => b.length - a.length);
  const below = (text: string) =>
    paths.reduce((all, path) => all.replaceAll(new RegExp(`(?<![\\w/])${path}(?!\\w)`, 'g'), `${dir.path}${path}`), text);
  const { cert } = await authority;
  for (const [path, text] of Object.entries(files)) {
    const file = dir.write(path.slice(1), text === 'CA' ? cert.toString() : text.includes('KubeletConfiguration') ? below(text) : text);
    if (text.startsWith('#!')) chmodSync(file, 0o755);
  }
  for (const folder of STATIC_PODS) dir.write(`${folder.slice(1)}/web.yaml`, JSON.stringify(WEB));
  const { argv, findings } = await readInvocation(words === undefined ? [`--kubeadm=${dir.path}`] : [...words]);
  const folders = Object.keys(files).flatMap((path) => path.split('/').map((_, i, all) => all.slice(0, i).join('/')));
  const known = new Set([...Object.keys(files), ...folders].filter((path) => path !== ''));
  const placed = argv.map((word) => {
    const [, flag = '', path = ''] = /^(--[\w-]+=|)(\/.*)$/s.exec(word) ?? [];
    return known.has(path.replace(/\/$/, '')) ? `${flag}${dir.path}${path}` : word;
  });
  return { argv: placed, found: linesOf(findings) };
}

const linesOf = (findings: readonly Finding[]): string[] =>
  findings
    .filter(({ level, what }) => level !== 'note' || /no effect|not read|pod default\/web/.test(what))
    .map(({ level, where, what }) => `${level} ${where}: ${what}`);

async function findingsOf(argv: readonly string[]): Promise<string[]> {
  const out: string[] = [];
  const io = {
    stdout: { write: (text: string) => out.push(text) },
    stderr: { write: () => expect.unreachable('it says everything in its answer') },
    ...{ cwd: '/work-dir', pid: 1, uid: 0, exit: () => expect.unreachable('it ends by its answer'), again: () => {} },
    on: () => ({ [Symbol.dispose]: () => {} }),
  };
  await check(['--check', '-o', 'json', ...argv], { io, env: {} });
  return linesOf((JSON.parse(out.join('')) as { findings: Finding[] }).findings);
}

describe.each(rotating('distributions', DISTRIBUTIONS, 3).map((d) => [d.name, d] as const))('%s', (_, distribution) => {
  it('is checked: what has no effect, what is refused, and its static pods', async () => {
    using dir = tempDir();
    const { argv, found } = await laidOut(distribution, dir);
    const ofMachine = new Set(await findingsOf(here(dir.path)));
    const all = [...found, ...(await findingsOf([...argv, ...here(dir.path)]))].filter(
      (line) => !ofMachine.has(line) && !OF_HERE.test(line),
    );
    const pods = all.filter((line) => line.includes('pod default/web'));
    const expected = [...(distribution.error === undefined ? [] : [`error ${distribution.error}`]), ...distribution.said];
    expect(all.filter((line) => !pods.includes(line)).sort()).toEqual(
      [...expected].sort().map((start) => expect.stringMatching(new RegExp(`^${start.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`))),
    );
    const hasPods = Object.values(distribution.files).some((text) => text.includes('staticPodPath'));
    if (distribution.error === undefined) expect(pods).toHaveLength(hasPods ? 1 : 0);
  });

  it(distribution.error === undefined ? 'runs pods' : 'does not start, in words', async () => {
    using dir = tempDir();
    const { argv } = await laidOut(distribution, dir);
    const run = fakeBoot([...argv, ...here(dir.path)]);
    let ended = false;
    void run.code.then(() => {
      ended = true;
    });
    await until('it runs or ends', () => run.nodeConfig() !== undefined || ended);
    run.emit('SIGTERM');
    expect(await run.code).toBe(distribution.error === undefined ? 0 : 1);
    if (distribution.error !== undefined) expect(run.stderr()).toContain(distribution.error);
    const given = run.nodeConfig();
    if (given === undefined) return;
    expect(given.config).toMatchObject(distribution.config);
    await using node = await virtualNode({
      config: { ...given.config, staticPodPath: MANIFESTS, ...OF_HOST },
      flags: { ...given.flags, kubeconfig: '', bootstrapKubeconfig: '', rootDir: '/var/lib/kubelet' },
      manifests: { web: WEB },
    });
    await node.until('its pod to run', () => node.running().length === 1);
  });
});

it('are the table of the document', () => {
  const document = readFileSync(join(import.meta.dirname, '../../../../docs/cluster/distributions.md'), 'utf8');
  for (const { name, source, refused = [], error } of DISTRIBUTIONS) {
    const row = document.split('\n').find((line) => line.startsWith(`| ${name} |`)) ?? '';
    expect(row, name).toContain(source);
    for (const flag of refused) expect(row, name).toContain(`\`${flag}\``);
    expect(row.includes('does not start'), name).toBe(error !== undefined);
  }
});
