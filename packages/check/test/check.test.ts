/** `actorlet --check`: what it finds in flags, files, the host and the runtime, and that it changes nothing. */
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { selfSignedCertificate } from '@actorlet/kubelet/boot/process/selfSigned.ts';
import { defaultNodeConfig } from '@actorlet/kubelet/machines/config/defaults.ts';
import { type Cri, CriError } from '@actorlet/kubelet/ports/ports.ts';
import { describe, expect, it } from 'vitest';
import { HEADER, tempDir } from '../../../test/boot/helpers.ts';
import { DAEMON } from '../../../test/programs.ts';
import { check } from '../src/check.ts';
import { exitCodeOf, type Finding, jsonOf, textOf } from '../src/findings.ts';
import { listeningPorts } from '../src/host.ts';
import { kubeadmFiles } from '../src/invocation.ts';
import { checkRuntime } from '../src/runtime.ts';
import { agentWords, readUnit, variablesOf } from '../src/unit.ts';
import { expandedWords } from '../src/unitWords.ts';
import { CASES, type UnitCase } from './unit/cases.ts';

const project = join(import.meta.dirname, '../../..');
const CALM = 'failSwapOn: false\nfailCgroupV1: false\ncgroupsPerQOS: false\nenforceNodeAllocatable: []\n';

async function run(argv: readonly string[]): Promise<{ code: number; out: string; findings: Finding[] }> {
  const out: string[] = [];
  const io = {
    stdout: { write: (text: string) => out.push(text) },
    stderr: { write: () => expect.unreachable('it says everything in its answer') },
    ...{ cwd: '/work-dir', pid: 1, uid: 0, exit: () => expect.unreachable('it ends by its answer'), again: () => {} },
    on: () => ({ [Symbol.dispose]: () => {} }),
  };
  const code = await check(['--check', '-o', 'json', ...argv], { io, env: {} });
  const text = out.join('');
  const { exitCode, findings } = JSON.parse(text) as { exitCode: number; findings: Finding[] };
  expect(exitCode).toBe(code);
  return { code, out: text, findings };
}
const about = (findings: readonly Finding[], where: string) => findings.filter((f) => f.where.includes(where));

/** A node as kubeadm leaves it, below a folder. */
function kubeadm(dir: ReturnType<typeof tempDir>, body = '', flags = '--container-runtime-endpoint=embedded://hollow'): string[] {
  dir.write('var/lib/kubelet/config.yaml', `${HEADER}${CALM}${body}`);
  dir.write('var/lib/kubelet/kubeadm-flags.env', `KUBELET_KUBEADM_ARGS="${flags}"\n`);
  return [`--kubeadm=${dir.path}`, `--root-dir=${dir.path}/var/lib/kubelet`];
}
/** What the kubelet gets from systemd as `--check` sees it. Null: systemd does not start it. */
async function startedWith({ files }: UnitCase): Promise<string[] | null> {
  using dir = tempDir();
  for (const [path, text] of Object.entries(files)) {
    dir.write(path.slice(1), text ?? '');
    if (text !== null) continue;
    rmSync(join(dir.path, path));
    symlinkSync('/dev/null', join(dir.path, path));
  }
  const unit = await readUnit(dir.path);
  if (unit === null || unit === 'masked') return null;
  if (unit.commands.length === 0 || (unit.commands.length > 1 && unit.type !== 'oneshot')) return null;
  let starts = true;
  const variables = await variablesOf(unit, dir.path, {
    read: () => {},
    missing: (_, optional) => {
      starts &&= optional;
    },
    bad: (_, why) => expect.unreachable(why),
  });
  // The manager's own, which no file of the node has.
  variables.set('LANG', 'C.UTF-8');
  const words = agentWords(unit).slice(1);
  return starts ? (unit.expands ? expandedWords(words, variables) : words) : null;
}
const KUBECONFIG = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'https://192.0.2.1:6443'}}]
users: [{name: u, user: {token: abcdef.0123456789abcdef}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`;

describe('a node that kubeadm set up', () => {
  it('is read from its files, and joins with the bootstrap kubeconfig where there is no other', async () => {
    using dir = tempDir();
    const argv = kubeadm(dir, 'cgroupDriver: systemd\n');
    const files = kubeadmFiles(dir.path);
    const none = await run(argv);
    expect(none.code).toBe(2);
    expect(about(none.findings, '--kubeconfig')).toEqual([
      expect.objectContaining({ level: 'error', what: `neither ${files.kubeconfig} nor ${files.bootstrapKubeconfig} is there` }),
    ]);
    dir.write('etc/kubernetes/bootstrap-kubelet.conf', KUBECONFIG.replace('https://', 'https://me:hunter2@'));
    const joins = await run(argv);
    expect(joins.findings.filter((f) => f.level === 'error')).toEqual([]);
    expect(about(joins.findings, '--bootstrap-kubeconfig').map((f) => f.what)).toEqual([
      `${files.bootstrapKubeconfig} leads to https://<masked>@192.0.2.1:6443/`,
    ]);
    expect(about(joins.findings, 'containerRuntimeEndpoint').map((f) => f.what)).toEqual(["embedded://hollow is this node's own runtime"]);
  });

  it('has its broken files named', async () => {
    using dir = tempDir();
    const argv = kubeadm(dir, 'maxPods: many\n');
    dir.write('etc/kubernetes/kubelet.conf', '{{{');
    dir.write('var/lib/kubelet/kubeadm-flags.env', 'KUBELET_KUBEADM_ARGS="--node-ip=192.0.2.9\n');
    const { code, findings } = await run(argv);
    expect(code).toBe(2);
    const errors = findings.filter((f) => f.level === 'error').map((f) => `${f.where}: ${f.what}`);
    expect(errors).toContainEqual(expect.stringContaining('maxPods'));
    expect(errors).toContainEqual(expect.stringMatching(/^--kubeconfig: kubeconfig .*kubelet\.conf/));
  });

  it('has its unit, drop-ins and environment files read as systemd 262 reads them', async () => {
    const recorded = JSON.parse(readFileSync(join(import.meta.dirname, 'unit/recorded.json'), 'utf8')) as Record<string, string[] | null>;
    expect(CASES.map(({ name }) => name)).toEqual(Object.keys(recorded));
    for (const unit of CASES) expect({ [unit.name]: await startedWith(unit) }).toEqual({ [unit.name]: recorded[unit.name] });
  });

  it.each(['etc/default/kubelet', 'etc/sysconfig/kubelet'])('has the flags of %s, which win over those of kubeadm', async (file) => {
    using dir = tempDir();
    const argv = kubeadm(dir, '', '--container-runtime-endpoint=embedded://hollow --node-ip=192.0.2.1');
    dir.write(file, 'KUBELET_EXTRA_ARGS="--node-ip=no-address --no-such-flag"\n');
    const { findings } = await run(argv);
    expect(about(findings, file).map((f) => f.what)).toEqual(["the kubelet's unit takes KUBELET_EXTRA_ARGS from it"]);
    expect(findings.filter((f) => f.level === 'error').map((f) => f.what)).toContainEqual(expect.stringContaining('--no-such-flag'));
    dir.write(file, 'KUBELET_EXTRA_ARGS=--node-ip=no-address\n');
    expect(about((await run(argv)).findings, '--node-ip')).toMatchObject([{ what: expect.stringContaining('no-address') }]);
  });

  it('has the flags that its own unit and drop-ins give, in their order', async () => {
    using dir = tempDir();
    const argv = kubeadm(dir);
    const of = 'systemd/system/kubelet.service';
    dir.write(`usr/lib/${of}`, '[Unit]\nExecStart=no\n[Service]\nExecStart=/usr/bin/kubelet --lost\n');
    dir.write(
      `usr/lib/${of}.d/10-kubeadm.conf`,
      `[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--kubeconfig=/etc/kubernetes/kubelet.conf" "KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=/etc/extra
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS \\
  $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS --healthz-port=\${PORT}
`,
    );
    dir.write(`etc/${of}.d/20-mine.conf`, '[Service]\nEnvironment=PORT=70000\nMaxPods 7\n');
    const missing = await run(argv);
    const left = about(missing.findings, '20-mine.conf').map((f) => f.what);
    expect(left).toContain('systemd leaves a line out: a line of [Service] without KEY=');
    expect(about(missing.findings, '/etc/extra')).toMatchObject([
      { level: 'error', what: expect.stringContaining('does not start without it') },
    ]);
    dir.write('etc/extra', 'KUBELET_EXTRA_ARGS="--nope --max-pods=7"\n');
    const { findings } = await run(argv);
    const errors = findings.filter((f) => f.level === 'error').map((f) => f.what);
    expect(errors).toContainEqual(expect.stringContaining('--nope'));
    expect(errors).not.toContainEqual(expect.stringContaining('--lost'));
    dir.write('etc/extra', 'KUBELET_EXTRA_ARGS=--max-pods=7\n');
    expect(about((await run(argv)).findings, 'healthzPort')).toMatchObject([{ level: 'error' }]);
    dir.write(`etc/${of}.d/30-wrapped.conf`, '[Service]\nExecStart=\nExecStart=/bin/sh -c "exec kubelet"\n');
    const wrapped = await run(argv);
    expect(about(wrapped.findings, '30-wrapped.conf')).toMatchObject([{ level: 'warning', what: expect.stringContaining('/bin/sh') }]);
  });
});

describe('findings', () => {
  it('name the files of the configuration, and files beside the drop-ins that are not read', async () => {
    using dir = tempDir();
    const file = dir.write('k.yaml', `${HEADER}${CALM}`);
    dir.write('d/10.conf', `${HEADER}maxPods: 5\nmaxPodz: 6\n`);
    dir.write('d/20.yaml', 'x');
    const { findings } = await run([`--config=${file}`, `--config-dir=${dir.path}/d`, '--container-runtime-endpoint=embedded://hollow']);
    const said = (name: string) => about(findings, name).map((f) => `${f.level}: ${f.what}`);
    expect(said('k.yaml')).toEqual(['note: configuration, read first']);
    expect(said('10.conf')).toEqual([
      'warning: unknown field maxPodz (did you mean maxPods?); it is ignored',
      'note: configuration, read over what stands before it (2)',
    ]);
    expect(said('20.yaml')).toEqual(['note: it is not read: the name of a drop-in ends in .conf']);
  });

  it('name settings without effect, bad flags and files, and records that the agent before left', async () => {
    using dir = tempDir();
    const config = dir.write('config.yaml', `${HEADER}${CALM}hairpinMode: hairpin-veth\nclusterDNS: [nowhere]\n`);
    dir.write('memory_manager_state', '{}');
    dir.write('cpu_manager_state', '{"policyName":"static","defaultCpuSet":"0","entries":{},"checksum":1}');
    const pem = dir.write('tls.crt', 'no certificate');
    const flags = [`--config=${config}`, `--root-dir=${dir.path}`, '--container-runtime-endpoint=embedded://hollow'];
    const { code, findings } = await run([...flags, `--tls-cert-file=${pem}`, `--tls-private-key-file=${pem}`]);
    expect(code).toBe(2);
    expect(about(findings, 'hairpinMode')).not.toEqual([]);
    expect(about(findings, 'memoryManagerPolicy')).toEqual([expect.objectContaining({ level: 'error' })]);
    expect(about(findings, 'clusterDNS')).toEqual([expect.objectContaining({ level: 'warning' })]);
    expect(about(findings, 'cpuManagerPolicy')).toEqual([expect.objectContaining({ level: 'error' })]);
    expect(about(findings, 'tlsCertFile')).toEqual([expect.objectContaining({ level: 'error', what: expect.stringContaining(pem) })]);
    expect(about(findings, 'cgroupsPerQOS')).toEqual([expect.objectContaining({ level: 'warning' })]);
    const wrong = await run(['--no-such-flag']);
    expect(wrong.findings).toContainEqual(expect.objectContaining({ level: 'error', what: expect.stringContaining('--no-such-flag') }));
    expect((await run(['-o', 'yaml'])).findings).toContainEqual(expect.objectContaining({ where: '-o', level: 'error' }));
  });

  it('say of each record that the agent before left what becomes of it, and warn of none that is read', async () => {
    using dir = tempDir();
    const names = ['device-plugins/kubelet_internal_checkpoint', 'dra_manager_state', 'allocated_pods_state'];
    for (const name of names) dir.write(name, '{}');
    const { findings } = await run([`--root-dir=${dir.path}`, '--container-runtime-endpoint=embedded://hollow']);
    for (const name of names) expect(about(findings, `${dir.path}/${name}`)).toEqual([expect.objectContaining({ level: 'note' })]);
    expect(about(findings, 'dra_manager_state')[0]?.what).toBe('ResourceClaims of running pods are taken over from it');
  });

  it('name a certificate that is not valid yet, and half of a pair', async () => {
    using dir = tempDir();
    const later = await selfSignedCertificate('node', Date.now() + 3 * 86_400_000);
    const cert = dir.write('tls.crt', later.cert);
    const key = dir.write('tls.key', later.key);
    const flags = [`--root-dir=${dir.path}`, '--container-runtime-endpoint=embedded://hollow', `--tls-cert-file=${cert}`];
    expect(about((await run([...flags, `--tls-private-key-file=${key}`])).findings, 'tlsCertFile')).toMatchObject([
      { level: 'error', what: expect.stringMatching(/tls\.crt is not valid before 20/) },
    ]);
    const half = await run([...flags, `--tls-private-key-file=${dir.path}/none.key`]);
    expect(about(half.findings, 'tlsPrivateKeyFile')).toMatchObject([{ level: 'error', what: expect.stringContaining('none.key') }]);
  });

  it('name a key that does not belong to its certificate, and authorities of clients that ended', async () => {
    using dir = tempDir();
    const [one, other, old] = await Promise.all([0, 0, 400].map((days) => selfSignedCertificate('node', Date.now() - days * 86_400_000)));
    if (one === undefined || other === undefined || old === undefined) expect.unreachable();
    const [cert, key] = [dir.write('tls.crt', one.cert), dir.write('tls.key', other.key)];
    const flags = [`--root-dir=${dir.path}`, '--container-runtime-endpoint=embedded://hollow'];
    const odd = await run([...flags, `--tls-cert-file=${cert}`, `--tls-private-key-file=${key}`]);
    expect(about(odd.findings, 'tlsPrivateKeyFile')).toMatchObject([
      { level: 'error', what: expect.stringContaining('do not belong together') },
    ]);
    const clients = async (text: string) => {
      const { findings } = await run([...flags, `--cert-dir=${dir.path}/none`, `--client-ca-file=${dir.write('ca.crt', text)}`]);
      return about(findings, 'clientCAFile')
        .filter(({ level }) => level !== 'note')
        .map(({ level, what }) => `${level}: ${what.replace(/ at .*/, '')}`);
    };
    const ended = `the certificate in ${dir.path}/ca.crt ended`;
    expect(await clients(`${old.cert}${one.cert}`)).toEqual([`warning: ${ended}`]);
    expect(await clients(`${one.cert}${old.cert}`)).toEqual([`warning: ${ended}`]);
    expect(await clients(`${old.cert}${old.cert}`)).toEqual([`error: ${ended}`]);
    expect(await clients('no certificate')).toEqual([expect.stringContaining('holds no certificate')]);
  });

  it('name what the API client cannot be made of, and credential programs and name servers that are not there', async () => {
    using dir = tempDir();
    const [one, other] = await Promise.all([0, 0].map(() => selfSignedCertificate('node', Date.now())));
    if (one === undefined || other === undefined) expect.unreachable();
    const argv = [...kubeadm(dir), `--resolv-conf=${dir.path}/none.conf`];
    const says = async (user: object, authority = one.cert) => {
      const cluster = { server: 'https://192.0.2.1:6443', 'certificate-authority-data': btoa(authority) };
      const named = {
        clusters: [{ name: 'c', cluster }],
        users: [{ name: 'u', user }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      };
      dir.write('etc/kubernetes/kubelet.conf', JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'x', ...named }));
      const { findings } = await run(argv);
      return about(findings, '--kubeconfig').flatMap(({ level, what }) => (level === 'error' ? [what] : []));
    };
    const pair = (key: string) => ({ 'client-certificate-data': btoa(one.cert), 'client-key-data': btoa(key) });
    expect(await says(pair(one.key))).toEqual([]);
    expect(await says(pair(other.key))).toEqual([expect.stringMatching(/credentials cannot be used .*mismatch/)]);
    expect(await says(pair(one.key), 'no certificate')).toEqual([expect.stringContaining('authority holds no certificate')]);
    expect(await says({ tokenFile: '/none/token' })).toEqual([expect.stringContaining('/none/token')]);
    const program = { apiVersion: 'client.authentication.k8s.io/v1', interactiveMode: 'Never' };
    expect(await says({ exec: { ...program, command: 'no-such-program' } })).toEqual([
      expect.stringContaining('no-such-program cannot be run'),
    ]);
    expect(await says({ exec: { ...program, command: 'sh' } })).toEqual([]);
    const provider = {
      name: 'helper',
      matchImages: ['*.io'],
      defaultCacheDuration: '0s',
      apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
    };
    const providers = { kind: 'CredentialProviderConfig', apiVersion: 'kubelet.config.k8s.io/v1', providers: [provider] };
    const file = dir.write('providers.json', JSON.stringify(providers));
    const both = await run([...argv, `--image-credential-provider-config=${file}`, `--image-credential-provider-bin-dir=${dir.path}`]);
    expect(about(both.findings, '--image-credential-provider-bin-dir')).toMatchObject([
      { level: 'error', what: expect.stringContaining('"helper"') },
    ]);
    expect(about(both.findings, 'resolvConf')).toMatchObject([{ level: 'warning', what: expect.stringContaining('none.conf') }]);
  });

  it('name a port that another process listens on, without listening there', async () => {
    using dir = tempDir();
    const server = createServer();
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = server.address() as { port: number };
      const { findings } = await run([...kubeadm(dir), `--healthz-port=${port}`]);
      expect(about(findings, 'healthzPort')).toEqual([
        expect.objectContaining({ level: 'warning', what: `another process listens on port ${port}` }),
      ]);
    } finally {
      server.close();
    }
    const table =
      '  sl  local_address rem_address   st\n   0: 0100007F:280A 00000000:0000 0A\n   1: 0100007F:1F90 0100007F:ABCD 01\n garbage\n';
    expect([...listeningPorts(table)]).toEqual([10_250]);
  });

  it('are sorted, counted and one line each, whatever a file says', () => {
    const findings: Finding[] = [
      { level: 'note', where: 'a', what: 'b', todo: '' },
      { level: 'error', where: 'x\ny', what: 'red \u001b[31m', todo: 'Do.' },
    ];
    expect(textOf(findings)).toBe('error    x y: red \\u001b[31m\n         Do.\nnote     a: b\n1 error, 0 warnings, 1 note\n');
    expect(JSON.parse(jsonOf(findings))).toMatchObject({ exitCode: 2, findings: [{ level: 'error' }, { level: 'note' }] });
    expect(
      [[], ['note'], ['warning', 'note']].map((levels) => exitCodeOf(levels.map((l) => ({ ...findings[0], level: l }) as Finding))),
    ).toEqual([0, 0, 1]);
  });
});

describe('the runtime', () => {
  const ready = { conditions: [{ type: 'RuntimeReady', status: true, reason: '', message: '' }] };
  const cri = (answers: Record<string, unknown>): Cri =>
    ({
      call: (method: string) => {
        const answer = answers[method];
        return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
      },
      close: () => {},
    }) as unknown as Cri;
  const version = { runtimeName: 'containerd', runtimeVersion: '2.1.4' };
  const failure = (code: number) => new CriError({ method: 'RuntimeConfig', code, outcome: 'failed', details: 'no' });
  const config = { ...defaultNodeConfig({}).config, cgroupDriver: 'cgroupfs' };
  const ask = async (answers: Record<string, unknown>) =>
    (await checkRuntime({ config }, () => cri({ Version: version, Status: { status: ready }, ...answers }))).findings;

  it('has its driver compared with the configuration', async () => {
    expect(await ask({ RuntimeConfig: { linux: { cgroupDriver: 'CGROUPFS' } } })).toHaveLength(1);
    expect((await ask({ RuntimeConfig: { linux: { cgroupDriver: 'SYSTEMD' } } })).at(-1)).toMatchObject({
      level: 'note',
      what: "the configuration says cgroupfs, the runtime has systemd: the node takes the runtime's",
    });
    expect((await ask({ RuntimeConfig: failure(12) })).at(-1)).toMatchObject({ level: 'warning', where: 'cgroupDriver (--cgroup-driver)' });
  });

  it('that does not answer, or whose network is not ready, is named', async () => {
    expect(await ask({ Version: failure(14) })).toEqual([expect.objectContaining({ level: 'error' })]);
    const status = { conditions: [{ type: 'NetworkReady', status: false, reason: 'NoCNI', message: 'no network' }] };
    const found = await ask({ Status: { status }, RuntimeConfig: { linux: null } });
    expect(found.at(-1)).toMatchObject({ level: 'warning', what: 'NetworkReady is false: NoCNI: no network' });
  });
});

it('as a process changes no file, prints text, and ends with its code', async () => {
  using dir = tempDir();
  const argv = kubeadm(dir);
  dir.write('etc/kubernetes/kubelet.conf', KUBECONFIG);
  mkdirSync(join(dir.path, 'empty'));
  const snapshot = () =>
    readdirSync(dir.path, { recursive: true, withFileTypes: true })
      .map((e) => `${e.parentPath}/${e.name} ${e.isFile() ? readFileSync(join(e.parentPath, e.name), 'utf8') : ''}`)
      .sort();
  const before = snapshot();
  const [code, text] = await new Promise<[number, string]>((resolve) => {
    const args = [DAEMON, '--check', ...argv];
    execFile(process.execPath, args, { cwd: dirname(dir.path), timeout: 120_000 }, (error, stdout, stderr) =>
      resolve([typeof error?.code === 'number' ? error.code : 0, stdout + stderr]),
    );
  });
  expect(text).toMatch(/^\d+ errors?, \d+ warnings?, \d+ notes?$/m);
  expect(text).toContain('leads to https://192.0.2.1:6443');
  // Of pods without cgroups of their own.
  expect([code, text.includes('warning  cgroupsPerQOS')]).toEqual([/^0 errors/m.test(text) ? 1 : 2, true]);
  expect(snapshot()).toEqual(before);
}, 180_000);

function ownFile(specifier: string): string {
  const [, name = '', ...path] = specifier.split('/');
  return join(project, name === 'kubelet' ? 'src' : `packages/${name}`, ...path);
}

/** Files that a source file imports as it is loaded. */
function loads(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  const text = file.endsWith('.ts') ? readFileSync(file, 'utf8') : '';
  for (const [, whole, from = ''] of text.matchAll(/^(?:import|export)( type)?[^'"]*?from '([^']+)'/gm)) {
    if (whole !== undefined) continue;
    if (from.startsWith('.')) loads(join(dirname(file), from), seen);
    else if (from.startsWith('@actorlet/')) loads(ownFile(from), seen);
    else seen.add(from);
  }
  return seen;
}

it('is loaded, with the library of host facts, by its own flag alone', () => {
  const main = loads(join(project, 'src/boot/daemon.ts'), loads(join(project, 'src/boot/main.ts')));
  expect(main.has(join(project, 'src/boot/boot.ts'))).toBe(true);
  expect([...main].filter((file) => file === 'systeminformation' || file.includes('/packages/check/'))).toEqual([]);
  expect(loads(join(project, 'packages/check/src/check.ts')).has('systeminformation')).toBe(false);
});
