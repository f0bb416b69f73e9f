/** The credentials of a node of a real cluster: ones that are no good, ones that a program gives, and both exchanged while it works. */
import { copyFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { buildDaemon, createDaemon, type Daemon, NODE_NAME } from '../../e2e/daemon.ts';
import { type ControlPlane, startControlPlane } from '../../e2e/lab/cluster/controlPlane.ts';
import { type Containerd, startContainerd } from '../../e2e/lab/containerd.ts';
import { Authority, type KeyPair } from '../../e2e/lab/pki.ts';
import { manifest, steady } from '../../e2e/manifests.ts';
import { LONG } from '../cluster.ts';

let plane: ControlPlane;
let lab: Containerd;
let daemon: Daemon;
const NODE = { name: `system:node:${NODE_NAME}`, groups: ['system:nodes'] };

beforeAll(async () => {
  await buildDaemon();
  plane = await startControlPlane();
  lab = await startContainerd();
});
afterEach(async () => {
  await daemon?.dispose();
  await plane.kubectl('delete', 'node', NODE_NAME, '--ignore-not-found');
});
afterAll(async () => {
  await plane?.stop();
  expect(await lab?.stop()).toEqual([]);
});

function kubeconfig(name: string, user: object, ca = plane.ca.certFile): string {
  const file = join(plane.dir, `${name}.kubeconfig`);
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'x' },
    clusters: [{ name: 'c', cluster: { server: plane.url, 'certificate-authority': ca } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  };
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  return file;
}
/** Puts that pair where a kubeconfig names one, each file by one rename. */
function place(pair: KeyPair, name: string): { 'client-certificate': string; 'client-key': string } {
  const user = { 'client-certificate': join(plane.dir, `${name}.crt`), 'client-key': join(plane.dir, `${name}.key`) };
  const put = (from: string, to: string) => {
    copyFileSync(from, `${to}.new`);
    renameSync(`${to}.new`, to);
  };
  put(pair.keyFile, user['client-key']);
  put(pair.certFile, user['client-certificate']);
  return user;
}
async function startWith(file: string): Promise<void> {
  daemon = await createDaemon(lab, {}, [`--kubeconfig=${file}`, '--node-ip=127.0.0.1']);
  // What needs no cluster works without one.
  daemon.put('alone.json', manifest('alone', [steady()]));
  await daemon.start({ ready: false });
  await daemon.wait('its static pod runs', async () => (await daemon.pod('alone'))?.status.phase === 'Running', LONG);
}
const says = (line: RegExp) => daemon.wait(`the log says ${line}`, () => line.test(daemon.log()), LONG);
const joins = () => daemon.wait('the node is Ready', async () => / Ready /.test(await plane.kubectl('get', 'node', NODE_NAME)), LONG);
const containerOf = async () => (await daemon.pod('alone'))?.status.containerStatuses?.[0]?.containerID;

describe('a node whose client certificate', () => {
  const bad: [string, () => KeyPair, RegExp][] = [
    [
      'has ended',
      () => plane.ca.issue('ended', { ...NODE, days: -1 }),
      /401 Unauthorized.*the client certificate .*CN=system:node:e2e.*swapped\.crt\) ended /,
    ],
    [
      'is of another CA',
      () => new Authority(plane.dir, 'other-ca').issue('foreign', NODE),
      /401 Unauthorized.*the client certificate .*CN=system:node:e2e.*signed by CN=other-ca, is not accepted there/,
    ],
    [
      'is another node’s',
      () => plane.ca.issue('other', { ...NODE, name: 'system:node:other' }),
      /403 Forbidden.*node (?:"other" is not allowed to modify node "e2e"|'other' cannot read 'e2e', only its own Node object)/,
    ],
  ];
  it.each(bad)('%s says so, runs what it can, and joins once a good one is in its place', async (_, pair, words) => {
    await startWith(kubeconfig('swapped', place(pair(), 'swapped')));
    await says(words);
    const id = await containerOf();
    expect((await plane.request('GET', `/api/v1/nodes/${NODE_NAME}`)).status).toBe(404);
    place(plane.ca.issue('good', NODE), 'swapped');
    await joins();
    expect(await containerOf()).toBe(id);
    expect(daemon.log()).not.toContain('PRIVATE KEY');
  });

  it('is fine, but whose kubeconfig names the wrong CA, does not talk to the API server, and says why', async () => {
    const user = place(plane.ca.issue('good', NODE), 'astray');
    const wrong = new Authority(plane.dir, 'astray-ca');
    await startWith(kubeconfig('astray', user, wrong.certFile));
    await says(/the certificate of 127\.0\.0\.1:\d+ is not signed by the certificate-authority of .*astray-ca\.crt/);
    expect((await plane.request('GET', `/api/v1/nodes/${NODE_NAME}`)).status).toBe(404);
  });
});

describe('a node whose credentials a program gives', () => {
  it('waits while it fails, joins when it gives them, asks again when they end, and survives its absence meanwhile', async () => {
    const [program, calls, broken] = ['give.sh', 'calls', 'broken'].map((f) => join(plane.dir, f)) as [string, string, string];
    const pair = plane.ca.issue('by-program', NODE);
    const credential = {
      ...{ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential' },
      status: {
        clientCertificateData: readFileSync(pair.certFile, 'utf8'),
        clientKeyData: readFileSync(pair.keyFile, 'utf8'),
        expirationTimestamp: 'WHEN',
      },
    };
    writeFileSync(join(plane.dir, 'credential.json'), JSON.stringify(credential));
    const script = [
      '#!/bin/sh',
      `echo called >> ${calls}`,
      `if [ -e ${broken} ]; then echo "the vault is locked, token=hunter2hunter2" >&2; exit 3; fi`,
      `sed "s/WHEN/$(date -u -d '+15 seconds' +%Y-%m-%dT%H:%M:%SZ)/" ${join(plane.dir, 'credential.json')}`,
    ];
    writeFileSync(program, `${script.join('\n')}\n`, { mode: 0o755 });
    writeFileSync(broken, '');
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: program,
      interactiveMode: 'Never',
      installHint: 'ask the vault team',
    };
    await startWith(kubeconfig('program', { exec }));
    await says(/credential program .*give\.sh.*the vault is locked.*ask the vault team/);
    expect(daemon.log()).not.toContain('hunter2');
    renameSync(broken, `${broken}.off`);
    await joins();
    const id = await containerOf();
    const count = () => (existsSync(calls) ? readFileSync(calls, 'utf8').split('\n').length : 0);
    const then = count();
    await daemon.wait('it is asked again', () => count() > then, LONG);
    // The lease is renewed with what the second run gave.
    const renewTime = () => plane.kubectl('-n', 'kube-node-lease', 'get', 'lease', NODE_NAME, '-o', 'jsonpath={.spec.renewTime}');
    const last = await renewTime();
    await daemon.wait('the lease is renewed', async () => (await renewTime()) !== last, LONG);
    expect(await containerOf()).toBe(id);
    expect(daemon.log()).not.toContain('PRIVATE KEY');
  });
});
