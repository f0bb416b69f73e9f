/** The image, the DaemonSet and `kubectl debug` of packaging/observe, on a real API server with the reference kubelet. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { type OwnAddress, ownAddress } from '../../e2e/lab/cluster/ownAddress.ts';
import {
  createReferenceKubelet,
  REFERENCE_LOGS,
  type ReferenceKubelet,
  whyNoReferenceKubelet,
} from '../../e2e/lab/cluster/referenceKubelet.ts';
import { type Cluster, LONG, startCluster, startKubectl } from '../cluster.ts';

const run = promisify(execFile);
const project = join(import.meta.dirname, '../../..');
const packaging = join(project, 'packaging/observe');
const NAMESPACE = 'actorlet-observe';
const IMAGE = 'localhost/actorlet-observe:test';

interface Manifest {
  spec: { template: { spec: { initContainers: { image: string }[]; containers: { image: string; args: string[]; env: object[] }[] } } };
}

/** The DaemonSet has the root of the node with the mounts that come later. */
function whyNotShared(): string | undefined {
  const isShared = /^\S+ \S+ \S+ \S+ \/ .* shared:/m.test(readFileSync('/proc/self/mountinfo', 'utf8'));
  return isShared ? undefined : 'the root of this machine is no shared mount: unshare -m, and mount --make-rshared / in it';
}
const whyNot = whyNoReferenceKubelet() ?? whyNotShared();
if (whyNot !== undefined) console.warn(`not run: ${whyNot}`);

describe.skipIf(whyNot !== undefined)('beside the reference kubelet', () => {
  const out = mkdtempSync(join(tmpdir(), 'actorlet-image-'));
  let cluster: Cluster;
  let kubelet: ReferenceKubelet;
  let address: OwnAddress;

  beforeAll(async () => {
    cluster = await startCluster({ start: false });
    await run('sh', [join(project, 'scripts/build/observe.sh'), out, '--as-built'], { env: { ...process.env, IMAGE } });
    cluster.lab.ctr('images', 'import', join(out, 'image.tar'));
    kubelet = await createReferenceKubelet(cluster);
    address = ownAddress();
    await kubelet.start({ nodeIp: address.ip });
    await cluster.daemon.wait('the node is Ready', async () => (await cluster.kubectl('get', 'nodes')).includes(' Ready '), LONG);
    await cluster.kubectl('apply', '-f', join(packaging, 'rbac.yaml'));
  }, 300_000);
  afterAll(async () => {
    await cluster?.kubectl('delete', 'namespace', NAMESPACE, '--wait=false').catch(() => undefined);
    await kubelet?.dispose();
    address?.[Symbol.dispose]();
    await cluster?.stop();
    rmSync(out, { recursive: true, force: true });
  }, 90_000);

  /** The manifest, with the image of this test and a way to the API server: there is no kube-proxy here. */
  function daemonSet(...args: string[]): Manifest {
    const manifest = parse(readFileSync(join(packaging, 'daemonset.yaml'), 'utf8')) as Manifest;
    const { containers, initContainers } = manifest.spec.template.spec;
    for (const container of [...initContainers, ...containers]) container.image = IMAGE;
    const server = new URL(cluster.plane.url);
    for (const { args: words, env } of containers) {
      words.push(...args);
      env.push({ name: 'KUBERNETES_SERVICE_HOST', value: server.hostname }, { name: 'KUBERNETES_SERVICE_PORT', value: server.port });
    }
    return manifest;
  }

  async function podOf(namespace: string, what: string, fits: (pod: Pod) => boolean): Promise<Pod> {
    let last = '';
    return cluster.daemon
      .wait(
        what,
        async () => {
          last = await cluster.kubectl('get', 'pods', '-n', namespace, '-o', 'json');
          return (JSON.parse(last) as { items: Pod[] }).items.find(fits) ?? false;
        },
        LONG,
      )
      .catch((error: unknown) => {
        throw new Error(`${String(error)}\n${last}`);
      });
  }
  /** What its container wrote: the API server knows no way to this node. */
  function said({ metadata: { namespace, name, uid }, spec }: Pod): string {
    const file = join(REFERENCE_LOGS.podLogs, `${namespace}_${name}_${uid}`, spec.containers[0]?.name ?? '', '0.log');
    const lines = readFileSync(file, 'utf8').split('\n');
    return lines.map((line) => /^\S+ std\S+ F (.*)$/.exec(line)?.[1] ?? '').join('\n');
  }
  let execs = 0;
  /** As kubectl exec does it. */
  function asked({ status }: Pod, ...words: string[]): string {
    const id = status.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? '';
    execs += 1;
    try {
      return cluster.lab.ctr('tasks', 'exec', '--exec-id', `ask-${execs}`, id, '/usr/bin/actorctl', ...words);
    } catch (error) {
      return String(error);
    }
  }
  const exited = (pod: Pod): boolean =>
    pod.status.containerStatuses?.some((c) => c.state?.terminated !== undefined || c.lastState?.terminated !== undefined) === true;

  test('the pod of the DaemonSet finds the kubelet with its own account, and sees each place', async () => {
    await cluster.apply(daemonSet('--show-kubelet', '-o', 'json'));
    const pod = await podOf(NAMESPACE, 'the observer has ended', exited);
    const found = JSON.parse(said(pod)) as { remarks: string[]; facts: object };
    expect(found).toMatchObject({
      ...{ credentials: 'serviceAccount', nodeName: NODE_NAME, hostRoot: '', differences: [] },
      facts: { runningConfiguration: { from: 'the /configz of the kubelet' } },
    });
    expect(found.remarks).toEqual([expect.stringMatching(/^cannot see Secrets that pods name, because .*cannot get resource "secrets"/)]);
    await cluster.kubectl('delete', 'daemonset', '-n', NAMESPACE, 'actorlet-observe');
  }, 180_000);

  test('the pod of the DaemonSet observes a pod of the kubelet, and is forbidden nothing, and begins anew with another kubelet', async () => {
    await cluster.apply(daemonSet('--listen=127.0.0.1:10261'));
    const pod = await podOf(
      NAMESPACE,
      'the observer runs',
      (p) => p.metadata.deletionTimestamp === undefined && p.status.containerStatuses?.some((c) => c.ready) === true,
    );
    await cluster.create('seen', {
      containers: [{ name: 'main', image: 'busybox', imagePullPolicy: 'Never', command: ['sleep', '3600'] }],
    });
    await cluster.ready('seen');
    const ask = (...words: string[]): string => asked(pod, ...words);
    await cluster.daemon.wait('the observer shows the pod', () => /seen.*Running/.test(ask('pods')), LONG);
    await cluster.daemon.wait('it says that it runs', () => /main: running for \d+s, 0 restarts/.test(ask('why', 'seen')), LONG);
    const [, token = ''] = /^http:\/\/127\.0\.0\.1:10260\/#token=(\S+)/.exec(ask('ui')) ?? [];
    expect(token).not.toBe('');
    // As from a laptop: the API server checks who asks, the kubelet forwards.
    const onNode = (...words: string[]): Promise<string> =>
      cluster.kubectl('-n', NAMESPACE, 'exec', pod.metadata.name, '-c', 'observe', '--', 'actorctl', ...words);
    expect(await onNode('why', 'seen')).toMatch(/main: running for \d+s, 0 restarts/);
    const forward = startKubectl(cluster.plane, ['-n', NAMESPACE, 'port-forward', pod.metadata.name, ':10260', ':10261'], '', true);
    try {
      const portOf = (port: number): Promise<string> =>
        cluster.daemon.wait(
          `port ${port} is forwarded`,
          async () => new RegExp(`127\\.0\\.0\\.1:(\\d+) -> ${port}`).exec(forward.ran.out)?.[1] ?? false,
          LONG,
        );
      const tokenFile = join(out, 'token');
      writeFileSync(tokenFile, await onNode('token'));
      const remote = ['--server', `http://127.0.0.1:${await portOf(10261)}`, '--token-file', tokenFile];
      const far = await run(join(project, 'bin/actorctl'), ['why', 'seen', ...remote]);
      expect(far.stdout).toMatch(/main: running for \d+s, 0 restarts/);
      const page = await fetch(`http://127.0.0.1:${await portOf(10260)}/`);
      expect({ status: page.status, type: page.headers.get('content-type') }).toEqual({
        status: 200,
        type: expect.stringContaining('text/html'),
      });
    } finally {
      forward.stop();
    }
    expect(said(pod).match(/cannot see [^,]*/g)).toEqual(['cannot see Secrets that pods name']);
    expect(said(pod)).not.toContain('FailedMount');

    await kubelet.end('SIGTERM');
    await cluster.daemon.wait('the end of the kubelet is named', () => said(pod).includes('the kubelet has ended'), LONG);
    await kubelet.start({ config: { maxPods: 31 }, nodeIp: address.ip });
    await cluster.daemon.wait('what is something else is named', () => /begins anew.*changed=\["maxPods"\]/.test(said(pod)), LONG);
    await cluster.daemon.wait('the observer has begun anew', () => said(pod).split('actorlet starts').length === 3, LONG);
    await cluster.daemon.wait('it shows the pod again', () => /seen.*Running/.test(ask('pods')), LONG);
    await cluster.kubectl('delete', 'daemonset', '-n', NAMESPACE, 'actorlet-observe');
  }, 240_000);

  test('kubectl debug observes it with the credentials of the kubelet, and leaves nothing on the node', async () => {
    const words = ['/usr/bin/actorlet-on-node', 'debug', '/host', 'observe', '--kubelet-credentials'];
    const before = readdirSync('/var/tmp');
    await cluster.kubectl('debug', `node/${NODE_NAME}`, '--profile=sysadmin', `--image=${IMAGE}`, '--', ...words);
    const pod = await podOf(
      'default',
      'the observer runs',
      (p) => p.metadata.name.startsWith('node-debugger') && p.status.containerStatuses?.some((c) => c.ready) === true,
    );
    const ask = (): string => asked(pod, '--socket', '/var/lib/actorlet-observe/actorlet.sock', 'pods');
    await cluster.daemon.wait('the observer shows the pod', () => /node-debugger.*Running/.test(ask()), LONG);
    expect(said(pod)).toContain('credentials: those of the kubelet');
    expect(said(pod)).not.toMatch(/FailedMount|cannot see/);
    await cluster.kubectl('delete', 'pod', pod.metadata.name);
    expect(readdirSync('/var/tmp')).toEqual(before);
  }, 180_000);
});
