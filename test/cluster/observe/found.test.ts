/** The reference kubelet with a real API server: what is found of it with its own credentials, and with the roles of packaging/observe. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { createReferenceKubelet, type ReferenceKubelet, whyNoReferenceKubelet } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { type Cluster, LONG, startCluster } from '../cluster.ts';

const run = promisify(execFile);
const project = join(import.meta.dirname, '../../..');
const packaging = join(project, 'packaging/observe');

interface Shown {
  facts: Record<string, { value: string; from: string }>;
  process: { pid: number };
  version: string | null;
  nodeName: string;
  credentials: string;
  differences: { field: string; running: string; files: string; why: string }[];
  remarks: string[];
}

describe.skipIf(whyNoReferenceKubelet() !== undefined)('the reference kubelet', () => {
  let cluster: Cluster;
  let kubelet: ReferenceKubelet;

  beforeAll(async () => {
    cluster = await startCluster({ start: false });
    kubelet = await createReferenceKubelet(cluster);
    await kubelet.start();
    await cluster.daemon.wait('the node is there', async () => (await cluster.kubectl('get', 'nodes')).includes(' Ready '), LONG);
  }, 180_000);
  afterAll(async () => {
    await kubelet?.dispose();
    await cluster?.stop();
  }, 60_000);

  async function show(...args: string[]): Promise<Shown> {
    const words = ['observe', '--show-kubelet', '-o', 'json', `--kubelet-pid=${kubelet.pid ?? 0}`, ...args];
    const { stdout } = await run(join(project, 'scripts/node'), [join(project, 'src/boot/main.ts'), ...words], { timeout: 60_000 });
    return JSON.parse(stdout) as Shown;
  }

  /** With the service account of the DaemonSet. */
  async function asObserver(): Promise<string> {
    const token = (await cluster.kubectl('create', 'token', '-n', 'actorlet-observe', 'actorlet-observe')).trim();
    const file = join(cluster.daemon.dir, 'observer.json');
    const { plane } = cluster;
    const kubeconfig = {
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c' },
      clusters: [{ name: 'c', cluster: { server: plane.url, 'certificate-authority': plane.ca.certFile } }],
      users: [{ name: 'c', user: { token } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
    };
    writeFileSync(file, JSON.stringify(kubeconfig));
    return `--kubeconfig=${file}`;
  }

  test('is found with its files, and its own credentials do not show its running configuration', async () => {
    const found = await show();
    expect(found.version).toMatch(/^v1\./);
    expect(found.nodeName).toBe(NODE_NAME);
    expect(found.credentials).toBe('kubelet');
    expect(found.facts.runtime?.value).toBe(cluster.lab.endpoint);
    expect(found.facts.rootDirectory?.value).toBe(cluster.daemon.rootDir);
    expect(found.remarks.join('\n')).toMatch(/the running configuration cannot be read, so files and flags count: .*\(403\)/);
  }, 90_000);

  test('the manifests are valid, and with their roles the running configuration is that of the files', async () => {
    await cluster.kubectl('apply', '-f', join(packaging, 'rbac.yaml'), '-f', join(packaging, 'secrets.yaml'));
    await cluster.kubectl('apply', '--dry-run=server', '-f', join(packaging, 'daemonset.yaml'));
    const found = await show(await asObserver());
    expect(found.credentials).toBe('given');
    expect(found.facts.runningConfiguration).toEqual({
      value: '0 fields differ from files and flags',
      from: 'the /configz of the kubelet',
    });
    expect(found.differences).toEqual([]);
    expect(found.remarks).toEqual([]);
  }, 90_000);

  test('a file that changed after the start is named, with what the kubelet runs with', async () => {
    const file = join(cluster.daemon.dir, 'reference.json');
    writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), maxPods: 7 }));
    const found = await show(await asObserver());
    expect(found.differences).toEqual([
      { field: 'maxPods', running: '110', files: '7', why: `${file} changed after the kubelet was started` },
    ]);
    expect(found.remarks).toEqual([`${file} changed after the kubelet was started: it runs with what was there before`]);
  }, 90_000);

  test('without one right, it says what it cannot see', async () => {
    const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }];
    await cluster.kubectl('patch', 'clusterrole', 'actorlet-observe', '--type=merge', '-p', JSON.stringify({ rules }));
    const found = await show(await asObserver());
    expect(found.version).toBeNull();
    expect(found.facts.version?.from).toMatch(/the node \S+ cannot be read: .*forbidden.*\(403\)/s);
    expect(found.facts.runningConfiguration?.from).toContain('(403)');
    expect(found.remarks.join('\n')).toMatch(/cannot see ConfigMaps that pods name, because .*cannot get resource "configmaps"/);
    expect(found.remarks.join('\n')).not.toContain('cannot see pods');
  }, 90_000);
});
