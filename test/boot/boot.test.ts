/** The boot as a whole, with a fake process and a node that does nothing. */
import { globSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BOOT_STEPS } from '../../src/boot/boot.ts';
import { loadLibc } from '../../src/boot/process/libc.ts';
import { ABSENT_GATES, ALWAYS_GATES, UNIMPLEMENTED } from '../../src/boot/unimplemented.ts';
import { defaultKubeletConfiguration } from '../../src/machines/config/defaults.ts';
import { GATES, KUBELET_GATES } from '../../src/machines/config/gateTable.ts';
import { KUBELET_CONFIGURATION } from '../../src/machines/config/schema.ts';
import type { Shape } from '../../src/machines/shape/shape.ts';
import { RUNNING } from '../lifeStates.ts';
import { HONOURED, HONOURED_GATES } from './config/honoured.ts';
import { emptyRegistry, fakeBoot, HEADER, tempDir, until } from './helpers.ts';

let dir: ReturnType<typeof tempDir>;
beforeEach(() => {
  dir = tempDir();
});
afterEach(() => dir[Symbol.dispose]());

/** This process keeps the OOM score and the limit it has. */
const OOM_SCORE = readFileSync('/proc/self/oom_score_adj', 'utf8').trim();
const OPEN_FILES = /Max open files\s+\d+\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? '1024';
/** Arguments under which the boot touches nothing but its folder. */
const quiet = (...more: string[]) => [
  ...[`--root-dir=${dir.path}/root`, '--read-only-port=0', '--healthz-port=0', '--enable-server=false', '--fail-swap-on=false'],
  ...[`--oom-score-adj=${OOM_SCORE}`, `--max-open-files=${OPEN_FILES}`, '--cgroups-per-qos=false', '--enforce-node-allocatable=none'],
  ...more,
];
const running = async (run: ReturnType<typeof fakeBoot>) => {
  await until('the node was created', () => run.nodeConfig() !== undefined || run.stderr().includes('actorlet:'));
};
const runsAndEnds = async (run: ReturnType<typeof fakeBoot>) => {
  await running(run);
  run.emit('SIGTERM');
  expect(await run.code).toBe(0);
};

describe('help, version and errors', () => {
  it('prints help or the version and ends with 0 before any file is read (trap 61)', async () => {
    const help = fakeBoot(['--help', '--config=/nowhere']);
    expect(await help.code).toBe(0);
    expect(help.stdout()).toContain('Usage: actorlet [flags]');
    const version = fakeBoot(['--version', '--config=/nowhere']);
    expect([await version.code, version.stdout()]).toEqual([0, 'Kubernetes v1.36.0+actorlet.1\n']);
    const raw = fakeBoot(['--version=raw']);
    expect(await raw.code).toBe(0);
    expect(JSON.parse(raw.stdout())).toMatchObject({ major: '1', minor: '36', gitVersion: 'v1.36.0+actorlet.1' });
  });

  it('finds a bad flag before help, and help before version', async () => {
    const bad = fakeBoot(['--help', '--bogus']);
    expect([await bad.code, bad.stdout()]).toEqual([1, '']);
    expect(bad.stderr()).toContain('unknown flag --bogus');
    const both = fakeBoot(['--version', '-h']);
    expect(await both.code).toBe(0);
    expect(both.stdout()).toContain('Usage:');
  });

  it('refuses a positional argument', async () => {
    const run = fakeBoot(['--fail-swap-on', 'false']);
    expect(await run.code).toBe(1);
    expect(run.stderr()).toContain('unknown command "false"');
  });

  it('lists everything wrong with the configuration at once', async () => {
    const file = dir.write(
      'k.yaml',
      `${HEADER}port: 70000\nmaxPod: 3\nhairpinMode: x\nfeatureGates: {NodeSwop: true}\nclusterDNS: 7\nenableServer: true\nserverTLSBootstrap: true\n`,
    );
    const run = fakeBoot(quiet(`--config=${file}`, '--enable-server=true'));
    expect(await run.code).toBe(1);
    const text = run.stderr();
    for (const part of [
      'maxPod (did you mean maxPods?)',
      'clusterDNS must be a list',
      'NodeSwop',
      'did you mean NodeSwap?',
      'port (--port): 70000',
      'hairpinMode',
      'serverTLSBootstrap (--rotate-server-certificates): no cluster signs certificates',
    ]) {
      expect(text).toContain(part);
    }
    expect(run.nodeConfig()).toBeUndefined();
  });
});

describe('a running node', () => {
  it('stops on the first signal with 0, saying that containers run on, and exits with 1 on the second', async () => {
    let finish = (): void => {};
    const run = fakeBoot(quiet(), { node: { stop: () => new Promise((resolve) => (finish = resolve)) } });
    await until('signals are handled', () => run.stderr().includes('actorlet starts') && run.nodeConfig() !== undefined);
    run.emit('SIGTERM');
    expect(run.stderr()).toContain('SIGTERM: stopping; containers are left running');
    run.emit('SIGINT');
    expect(run.exits).toEqual([1]);
    await until('the node is being stopped', () => finish.name !== 'finish');
    finish();
    expect(await run.code).toBe(0);
  });

  it('logs one line for what does nothing yet', async () => {
    const run = fakeBoot(quiet('--kube-reserved-cgroup=/node', '--event-qps=7', '--bootstrap-kubeconfig=/bootstrap.conf'));
    await runsAndEnds(run);
    expect(run.stderr().match(/has no effect:/g)).toHaveLength(1);
    expect(run.stderr()).toContain(
      'kubeReservedCgroup (--kube-reserved-cgroup) has no effect: with cgroupsPerQOS: false the node makes no cgroups of its own',
    );
    expect(run.stderr()).toContain('Flag --event-qps is deprecated');
    expect(run.stderr()).toContain('--bootstrap-kubeconfig has no effect without --kubeconfig: the node stands alone');
  });

  it('starts with a limit of processes that no cgroup enforces, and warns', async () => {
    const run = fakeBoot(quiet('--pod-max-pids=512'));
    await runsAndEnds(run);
    expect(run.stderr()).toMatch(/W\d{4} .*podPidsLimit \(--pod-max-pids\) has no effect: pods may have any number of processes/);
  });

  it('masks user, password and query of the manifest URL, and its headers, in the log of the flags', async () => {
    const url = 'https://me:hunter2@127.0.0.1:1/pods?token=hunter2';
    const run = fakeBoot(quiet('--v=5', `--manifest-url=${url}`, '--manifest-url-header=Authorization:hunter2'));
    await runsAndEnds(run);
    expect(run.stderr()).toContain('FLAG: --manifest-url value=https://<masked>@127.0.0.1:1/pods?<masked>');
    expect(run.stderr()).toContain('FLAG: --manifest-url-header value=<masked>');
    expect(run.stderr()).toContain('the whole configuration');
    expect(run.stderr()).not.toContain('hunter2');
  });

  it('says which gates do nothing yet', async () => {
    const run = fakeBoot(
      quiet(
        '--feature-gates=NativeHistograms=true,HPAScaleToZero=true,PodsAPI=false,EnvFiles=false,EventedPLEG=true,KubeletEnsureSecretPulledImages=false',
      ),
    );
    await runsAndEnds(run);
    expect(run.stderr().match(/featureGates.*has no effect: .*/g)).toEqual([
      'featureGates.NativeHistograms (--feature-gates) has no effect: histograms are written in classic buckets',
      'featureGates.EnvFiles (--feature-gates) has no effect: the feature is there with and without its gate',
    ]);
  });

  it('counts a gate as honoured only where its feature is there', async () => {
    const asking = fakeBoot(quiet('--feature-gates=NativeHistograms=true,ContainerCheckpoint=false,GracefulNodeShutdown=true'));
    await running(asking);
    asking.emit('SIGTERM');
    expect(await asking.code).toBe(0);
    expect(asking.stderr().match(/featureGates.*has no effect/g)).toEqual([
      'featureGates.NativeHistograms (--feature-gates) has no effect',
    ]);
    const giving = fakeBoot(
      quiet('--feature-gates=GracefulNodeShutdown=false,GracefulNodeShutdownBasedOnPodPriority=false,WindowsGracefulNodeShutdown=false'),
    );
    await running(giving);
    giving.emit('SIGTERM');
    expect(await giving.code).toBe(0);
    expect(giving.stderr()).not.toContain('has no effect');
  });

  it('has every gate that the code asks among the honoured, save those of features that are not there', () => {
    const sources = globSync('{src,packages/*/src}/**/*.ts', { cwd: join(import.meta.dirname, '../..') })
      .filter((file) => !file.includes('/config/gate'))
      .map((file) => readFileSync(join(import.meta.dirname, '../..', file), 'utf8'))
      .join('\n');
    const asked = new Set([...sources.matchAll(/\.enabled\('(\w+)'\)/g)].map(([, name = '']) => name));
    const known = Object.entries(GATES).filter(([, spec]) => !spec.locked);
    for (const [name] of known.filter(([name]) => asked.has(name))) {
      expect([name, HONOURED_GATES.includes(name) !== name in ABSENT_GATES]).toEqual([name, true]);
    }
    expect(HONOURED_GATES.filter((name) => !asked.has(name) && !name.startsWith('CPUManagerPolicy'))).toEqual([]);
  });

  it('counts every gate of the kubelet once: honoured, always there, or not there', () => {
    const counted = [...HONOURED_GATES, ...ALWAYS_GATES, ...Object.keys(ABSENT_GATES)];
    expect(counted.sort()).toEqual(Object.keys(KUBELET_GATES).sort());
  });

  it('asks for nothing where a list is empty', async () => {
    const run = fakeBoot(quiet('--enforce-node-allocatable='));
    await runsAndEnds(run);
    expect(run.stderr()).not.toContain('has no effect');
  });

  it('asks for nothing of the HTTPS server once that is switched off', async () => {
    const run = fakeBoot(quiet('--client-ca-file=/ca.crt'));
    await runsAndEnds(run);
    expect(run.stderr()).not.toContain('has no effect');
  });

  it('exits 70 with the flight recorder when the tree fails, and when something was not caught', async () => {
    const failed = fakeBoot(quiet(), {
      node: { tree: { registry: emptyRegistry(), failed: Promise.resolve(new Error('over the intensity')) } },
    });
    expect(await failed.code).toBe(70);
    expect(failed.stderr()).toContain('recorder line');
    expect(failed.stderr()).toContain('over the intensity');
    const crashed = fakeBoot(quiet());
    await running(crashed);
    crashed.emit('uncaughtException', new Error('bang'));
    expect(crashed.exits).toEqual([70]);
    expect(crashed.stderr()).toContain('uncaughtException: bang');
    crashed.emit('SIGTERM');
    await crashed.code;
  });

  it('is not kept from starting by an ordinary user, who is told (trap 16)', async () => {
    const run = fakeBoot(quiet(), { uid: 1000 });
    await runsAndEnds(run);
    expect(run.stderr()).toMatch(/^E.*not running as root/m);
  });

  it('waits for the lock and ends quietly when told to while waiting', async () => {
    const lock = `${dir.path}/lock`;
    const first = fakeBoot(quiet(`--lock-file=${lock}`));
    await running(first);
    const second = fakeBoot(quiet(`--lock-file=${lock}`));
    await until('the second waits', () => second.stderr().includes('another process holds the lock'));
    second.emit('SIGTERM');
    expect(await second.code).toBe(0);
    expect(second.nodeConfig()).toBeUndefined();
    first.emit('SIGTERM');
    expect(await first.code).toBe(0);
  });

  it('ends with 0 on lock contention where asked to', async () => {
    const lock = `${dir.path}/lock`;
    const run = fakeBoot(quiet(`--lock-file=${lock}`, '--exit-on-lock-contention'));
    await running(run);
    dir.write('lock', '');
    expect(await run.code).toBe(0);
    expect(run.stops()).toBe(1);
  });

  it('names the flag of a taken read-only port, and only warns of a taken healthz port', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const readOnly = fakeBoot(quiet('--address=127.0.0.1', `--read-only-port=${port}`));
    expect(await readOnly.code).toBe(1);
    expect(readOnly.stderr()).toContain(`readOnlyPort (--read-only-port): 127.0.0.1:${port}: another process listens there already`);
    const healthz = fakeBoot(quiet(`--healthz-port=${port}`));
    await running(healthz);
    healthz.emit('SIGTERM');
    expect(await healthz.code).toBe(0);
    expect(healthz.stderr()).toContain('healthzPort (--healthz-port)');
    await new Promise((resolve) => server.close(resolve));
  });

  it('says which directory it may not make', async () => {
    dir.write('file', '');
    const run = fakeBoot(quiet(`--root-dir=${dir.path}/file/root`));
    expect(await run.code).toBe(1);
    expect(run.stderr()).toContain('--root-dir: ENOTDIR');
  });

  it('tells systemd READY=1 once the node was started, then WATCHDOG=1 at half the period (trap 17)', async () => {
    const libc = loadLibc();
    const socket = join(dir.path, 'notify.sock');
    const receiver = libc.datagramSocket();
    libc.bindUnix(receiver, socket);
    const got: string[] = [];
    const receive = (): string[] => {
      const buffer = new Uint8Array(64);
      for (let n = libc.readNonblocking(receiver, buffer); n > 0; n = libc.readNonblocking(receiver, buffer))
        got.push(new TextDecoder().decode(buffer.subarray(0, n)));
      return got;
    };
    let started = (): void => {};
    const start = new Promise<void>((resolve) => (started = resolve));
    const run = fakeBoot(quiet(), {
      env: { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '40000', WATCHDOG_PID: '4242' },
      node: { start: () => start },
    });
    await running(run);
    expect(receive()).toEqual([]);
    started();
    await until('the watchdog is fed twice', () => receive().length >= 3);
    expect(got.slice(0, 3)).toEqual(['READY=1', 'WATCHDOG=1', 'WATCHDOG=1']);
    run.emit('SIGTERM');
    expect(await run.code).toBe(0);
    libc.close(receiver);
  });

  it('ends with 70 when the node does not start', async () => {
    const run = fakeBoot(quiet(), { node: { start: () => Promise.reject(new Error('foundation failed')) } });
    expect(await run.code).toBe(70);
    expect(run.stderr()).toContain('foundation failed');
  });

  it('refuses a malformed watchdog variable', async () => {
    const run = fakeBoot(quiet(), { env: { WATCHDOG_USEC: 'soon' } });
    expect(await run.code).toBe(1);
    expect(run.stderr()).toContain('WATCHDOG_USEC="soon" is not a number of microseconds');
  });
});

describe('run-once', () => {
  const pod = { metadata: { name: 'web', namespace: 'ns', uid: 'u' }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  const views = (phase: string, state: object) => ({
    pods: { sourcesReady: true, records: new Map([['u', { pod, source: 'file', state: RUNNING }]]) },
    statuses: new Map([['u', { status: { phase, containerStatuses: [{ name: 'c', state }] } }]]),
  });

  it('fails when there is no pod within a second (trap 63)', async () => {
    const run = fakeBoot(quiet('--runonce'));
    expect(await run.code).toBe(1);
    expect(run.stderr()).toContain('run-once: no pod was found within 1000 ms');
  });

  it.each([
    ['Running', { running: {} }, 0],
    ['Succeeded', { terminated: { exitCode: 0 } }, 0],
    ['Failed', { terminated: { exitCode: 1 } }, 1],
  ])('with a pod that is %s ends with its code, serving nothing', async (phase, state, code) => {
    const run = fakeBoot([...quiet('--runonce'), '--read-only-port=10255'], {
      node: { tree: { registry: emptyRegistry(views(phase, state)), failed: new Promise(() => {}) } },
    });
    expect(await run.code).toBe(code);
    expect(run.nodeConfig()?.config.readOnlyPort).toBe(0);
    expect(run.stops()).toBe(1);
  });
});

describe('the tables', () => {
  it('name every configuration field once: acted on, or not there yet', () => {
    const leaves = (type: Shape, path: string): string[] =>
      type.t === 'object' ? Object.entries(type.fields).flatMap(([k, f]) => leaves(f, `${path}.${k}`)) : [path];
    const all = Object.entries(KUBELET_CONFIGURATION).flatMap(([k, f]) => leaves(f, k));
    const listed = [...HONOURED, ...UNIMPLEMENTED.map((e) => e.path).filter((p) => !p.startsWith('--'))];
    expect([...listed].sort()).toEqual([...all].sort());
  });

  it('give every field of the schema a default', () => {
    expect(Object.keys(defaultKubeletConfiguration()).sort()).toEqual(Object.keys(KUBELET_CONFIGURATION).sort());
  });

  it('name each boot step once', () => {
    expect(new Set(BOOT_STEPS.map((s) => s.name)).size).toBe(BOOT_STEPS.length);
  });
});

describe("the API server's certificate", () => {
  const serving = (pki: string, ...more: string[]) => fakeBoot(quiet('--enable-server=true', `--cert-dir=${pki}`, ...more));
  const refusalOf = async (run: ReturnType<typeof fakeBoot>): Promise<string> => {
    expect(await run.code).toBe(1);
    return run.stderr();
  };
  const free = async (): Promise<string> => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    await new Promise((resolve) => server.close(resolve));
    return `--port=${typeof address === 'object' ? address?.port : 0}`;
  };

  it('is made once, and is not made anew by half', async () => {
    const pki = `${dir.path}/pki-made`;
    const run = serving(pki, '--address=127.0.0.1', await free());
    await runsAndEnds(run);
    expect(statSync(`${pki}/kubelet.key`).mode & 0o777).toBe(0o600);
    rmSync(`${pki}/kubelet.key`);
    const text = await refusalOf(serving(pki, '--address=127.0.0.1', await free()));
    expect(text).toContain(`--cert-dir: ${pki}/kubelet.crt is there and ${pki}/kubelet.key is not readable`);
  });
  it('must be readable when it is given, as must the client CA', async () => {
    const at = ['--address=127.0.0.1', await free()];
    const given = await refusalOf(serving(`${dir.path}/none`, ...at, '--tls-cert-file=/nowhere/a', '--tls-private-key-file=/nowhere/b'));
    expect(given).toContain('tlsCertFile (--tls-cert-file): /nowhere/a cannot be read');
    const ca = await refusalOf(serving(`${dir.path}/none`, ...at, '--client-ca-file=/nowhere/ca'));
    expect(ca).toContain('authentication.x509.clientCAFile (--client-ca-file): /nowhere/ca cannot be read');
    expect(ca).toContain('client certificates cannot be checked');
    expect(ca).not.toContain('no certificate to serve with');
  });
  it('has a port of its own, and a taken one is named', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const text = await refusalOf(serving(`${dir.path}/none`, '--address=127.0.0.1', `--port=${port}`));
    await new Promise((resolve) => server.close(resolve));
    expect(text).toContain(`port (--port): 127.0.0.1:${port}: another process listens there already`);
  });
});
