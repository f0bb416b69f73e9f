/** Doors that few think of: manifests that are wrong, options of mounts, what drivers of volumes are told, bodies and links of requests. */
import { RecordingWriter } from '@actorlet/inspect/src/recording/writer.ts';
import type { Node } from '@actorlet/kubelet/actors/node.ts';
import type { HttpRequest } from '@actorlet/kubelet/ports/sockets/net.ts';
import { expect, it } from 'vitest';
import { cluster, events, isReady, NS, post } from '../../../../test/integration/cluster/clusterPods.ts';
import { MANIFESTS, ROOT, type VirtualNode } from '../../../../test/integration/virtualNode.ts';
import { inspectedOf } from '../../../inspect/test/rig.ts';
import { entryOfLine } from '../../src/check.ts';
import type { Header } from '../../src/entries.ts';
import { InputRecording } from '../../src/record.ts';
import { replayed } from '../replayed.ts';
import { foundIn } from './planted.ts';
import { noting, type Served } from './served.ts';

const DRIVER = 'csi.example.com';
const AUTHENTICATED = { anonymous: { enabled: true }, webhook: { enabled: true, cacheTTL: 120_000 }, x509: { clientCAFile: '' } };
/** Found wherever they are; the replay shows that shorter ones have their stand-ins too. */
const doors: string[] = [];
const hidden = (door: string): string => {
  doors.push(door);
  return `Zq7-${door}-sEcReT`;
};
const found = (text: string) =>
  doors.filter((door) => {
    const secret = `Zq7-${door}-sEcReT`;
    return foundIn(text, { bytes: Buffer.from(secret), text: secret, kind: 'ascii' }).length > 0;
  });

const yaml = (name: string, container: string, top = '') => `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
spec:
  ${top}
  containers:
  - name: main
    image: busybox:1
${container}`;

/** As people write them, and as they should not. */
function manifests(h: VirtualNode): void {
  const file = (name: string, text: string) => h.fs.put(`${MANIFESTS}/${name}`, text);
  const env = (name: string) => `    env: [{name: A, value: '${hidden(name)}'}]\n`;
  file(
    'block.yaml',
    yaml(
      'block',
      `    env:\n    - name: A\n      value: |\n        ${hidden('block')}\n        more\n    command:\n    - run\n    - >-\n      folded\n      ${hidden('folded')}\n`,
      `# password: ${hidden('comment')}`,
    ),
  );
  file('broken.yaml', `${yaml('broken', env('broken'))}   args: [\n`);
  const secret = `kind: Secret\napiVersion: v1\nmetadata: {name: s}\nstringData: {a: ${hidden('stringData')}}\ndata: {b: ${btoa(hidden('data'))}}\n`;
  file('several.yaml', `${secret}---\n${yaml('several', env('several'))}`);
  const of = (container: object) =>
    JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' }, spec: { containers: [container] } });
  file(
    'shapes.json',
    of({ name: 'm', image: 'i', env: { A: hidden('envMap') }, args: hidden('argsText'), command: { x: hidden('commandMap') } }),
  );
  file('names.json', of({ name: 'm', image: 'i', enviroment: [{ name: 'A', value: hidden('typo') }], arg: [hidden('typoArg')] }));
  file('cut.json', of({ name: 'm', image: 'i', env: [{ name: 'A', value: hidden('cut') }] }).slice(0, -3));
}

function put(h: VirtualNode, path: string, body: object): void {
  const made = h.kube.handle({ verb: 'POST', path, body });
  if (!made.ok) throw new Error(made.failure.message);
}
function run(h: VirtualNode, name: string, spec: object, metadata: object = {}): void {
  const container = { name: 'main', image: 'busybox:1' };
  put(h, `${NS}/pods`, {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, ...metadata } },
    spec: { nodeName: 'n1', containers: [container], ...spec },
  });
}
function volumes(h: VirtualNode): void {
  const socket = `${ROOT}/plugins_registry/${DRIVER}-reg.sock`;
  h.drivers.add(socket, { name: DRIVER });
  h.fs.makeSocket(socket);
  const rules = { attachRequired: false, podInfoOnMount: true, tokenRequests: [{ audience: 'vault' }] };
  put(h, '/apis/storage.k8s.io/v1/csidrivers', {
    metadata: { name: DRIVER },
    spec: { ...rules, volumeLifecycleModes: ['Persistent', 'Ephemeral'] },
  });
  post(h, 'serviceaccounts', { metadata: { name: 'default' } });
  const data = {
    a: btoa('x'),
    b: btoa('other'),
    c: btoa('true'),
    d: btoa(hidden('secretOfDriver')),
    e: btoa('\xff\xfe'),
    f: btoa('\xef\xbb\xbfhunter2-bom'),
  };
  post(h, 'secrets', { metadata: { name: 'login' }, type: 'Opaque', data });
  const claimed = (name: string, pv: object, metadata: object = {}) => {
    const at = `${NS}/persistentvolumeclaims`;
    put(h, at, { metadata: { name }, spec: { volumeName: `pv-${name}`, accessModes: ['ReadWriteOnce'] }, status: { phase: 'Bound' } });
    const claim = h.kube.handle({ verb: 'GET', path: `${at}/${name}` }) as { body: { metadata: { uid: string } } };
    const claimRef = { namespace: 'default', name, uid: claim.body.metadata.uid };
    put(h, '/api/v1/persistentvolumes', {
      metadata: { name: `pv-${name}`, ...metadata },
      spec: { accessModes: ['ReadWriteOnce'], claimRef, ...pv },
    });
    run(h, name, {
      containers: [{ name: 'main', image: 'busybox:1', volumeMounts: [{ name: 'v', mountPath: '/v' }] }],
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName: name } }],
    });
  };
  const login = { namespace: 'default', name: 'login' };
  claimed('csi', {
    mountOptions: ['username=bob', 'password=abc', `key=${hidden('optionOfDriver')}`],
    csi: {
      ...{ driver: DRIVER, volumeHandle: 'vol-1', nodePublishSecretRef: login, nodeStageSecretRef: login },
      volumeAttributes: { tier: 'ab', x: 'true', connection: hidden('attribute') },
    },
  });
  const nfs = { server: 'files', path: '/x' };
  claimed('nfs', { mountOptions: [`password=${hidden('option')}`, 'user=me', 'ro', 'nfsvers=4.2'], nfs });
  const beta = { 'volume.beta.kubernetes.io/mount-options': `hard,password=${hidden('optionOfOld')}` };
  claimed('old', { nfs: { ...nfs, path: '/y' } }, { annotations: beta });
  // The event of this one says which options are not honoured.
  claimed('told', { mountOptions: [`password=${hidden('optionTold')}`], hostPath: { path: '/data' } });
  const attributes = { connection: hidden('inline'), source: `//me:${hidden('inlineUrl')}@host/x` };
  run(h, 'inline', { volumes: [{ name: 'v', csi: { driver: DRIVER, volumeAttributes: attributes } }] });
  run(h, 'flex', { volumes: [{ name: 'v', flexVolume: { driver: 'x/y', options: { any: hidden('flex') } } }] });
  const cut = { 'kubectl.kubernetes.io/last-applied-configuration': `{"spec":{"containers":[{"command":["${hidden('applied')}"]}]},` };
  run(h, 'applied', {}, { annotations: cut });
}

/** Paths that are no page's, parts of one that are no name, and values that the node cannot read. */
async function oddRequests(ask: (o: Partial<HttpRequest>) => Promise<void>): Promise<void> {
  const query = (o: Record<string, string>) => new URLSearchParams(o);
  await ask({ path: `/${hidden('path')}/default` });
  await ask({ path: `/../${hidden('up')}` });
  await ask({ path: `/run/default/${hidden('no name')}/main`, method: 'POST', query: query({ cmd: 'x' }) });
  await ask({ path: `/containerLogs/default/csi/main/${hidden('more, than there is')}` });
  await ask({ path: '/pods', query: query({ [hidden('alone')]: '' }) });
  const logs = { tailLines: hidden('tail'), sinceTime: hidden('time'), follow: hidden('flag'), stream: hidden('stream') };
  for (const [name, value] of Object.entries(logs)) await ask({ path: '/containerLogs/default/csi/main', query: query({ [name]: value }) });
  await ask({ path: '/healthz', query: query({ verbose: hidden('verbose') }) });
  await ask({ path: '/logs/', query: query({ query: 'kubelet', pattern: hidden('pattern'), tailLines: '5' }) });
  // The review of their first word is kept.
  for (const name of ['first', 'second'])
    await ask({ path: '/pods', headers: { authorization: `Bearer key: ${hidden(`${name} header`)}` } });
  // A short one is compared by its length.
  await ask({ path: '/logs/', query: query({ query: 'kubelet', pattern: 'k9' }) });
  await ask({ path: '/debug/flags/v', method: 'PUT', body: Buffer.from(hidden('level')) });
}

it('no secret in manifests that are wrong, volumes and odd requests is written, and all replays without a divergence', {
  timeout: 120_000,
}, async () => {
  const daemons: string[][] = [];
  const handlers: Served = new Map();
  const journalled: string[] = [];
  await using h = await cluster({
    ...{ servers: true, drivers: true, flags: { record: '/node.rec' } },
    config: {
      ...{ enableServer: true, authentication: AUTHENTICATED },
      authorization: { mode: 'AlwaysAllow', webhook: { cacheAuthorizedTTL: 1, cacheUnauthorizedTTL: 1 } },
      ...{ enableSystemLogQuery: true, featureGates: { NodeLogQuery: true } },
    } as object,
    ports: (ports) => ({
      ...ports,
      net: noting(ports.net, handlers),
      journal: {
        async *read(args) {
          journalled.push(...args);
          yield Buffer.from(args.includes('--field') ? 'kubelet.service\n' : 'a line\n');
        },
      },
    }),
    between(config, ports) {
      const lines: string[] = [];
      daemons.push(lines);
      const one = new InputRecording(ports, {
        ...{ config, options: {}, versions: { actorlet: 'test', node: process.version } },
        afterMicrotasks: (fn) => queueMicrotask(() => process.nextTick(fn)),
        write: (line) => lines.push(line) > 0,
        ended() {},
      });
      return { ports: one.ports, wrap: (node: Node) => one.around(node) };
    },
  });
  const flown: Uint8Array[] = [];
  const writer = new RecordingWriter(inspectedOf(h), {
    ...{ waitingBytes: 0, segmentBytes: 0, generation: 1, segmentSoftMax: 1e9 },
    write: (bytes) => flown.push(bytes) > 0,
    rotate() {},
  });
  manifests(h);
  volumes(h);
  await h.until('all are ready', () => ['block-n1', 'csi', 'nfs', 'old'].every((name) => isReady(h, name)), 120_000);
  await h.until('the refused option is told', () => events(h, 'FailedMount').some((message) => message.includes('not honoured')), 60_000);
  const at = [...handlers.keys()].find((key) => key.endsWith('10250')) ?? '';
  const ask = async (o: Partial<HttpRequest>): Promise<void> => {
    let isAnswered = false;
    const nothing = { method: 'GET', path: '/', query: new URLSearchParams(), headers: {}, body: new Uint8Array() };
    void handlers
      .get(at)?.({ ...nothing, signal: new AbortController().signal, ...o })
      .then(async ({ body }) => {
        if (typeof body === 'object' && Symbol.asyncIterator in body) for await (const _ of body);
        isAnswered = true;
      });
    await h.until('an answer', () => isAnswered, 30_000);
  };
  const headers = { referer: `/x?t=${hidden('referer')}`, origin: `http://a:${hidden('origin')}@h`, location: `/x?sig=${hidden('link')}` };
  await ask({ path: '/pods', query: new URLSearchParams({ sig: hidden('query'), code: hidden('code') }), headers });
  await oddRequests(ask);
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  await ask({ method: 'POST', path: '/run/default/csi/main', headers: form, body: Buffer.from(`cmd=login ${hidden('form')}`) });
  await h.advance(90_000);
  writer.end();
  await h.restart();
  await h.advance(60_000);

  expect(doors.length).toBeGreaterThan(25);
  const outside = JSON.stringify([h.drivers.calls, h.mounts.table]);
  // As the kubelet: all of its bytes.
  expect(outside).toContain('\ufeffhunter2-bom');
  expect([found(outside).length > 4, /token\.[0-9a-f]{8}-/.test(outside)]).toEqual([true, true]);
  expect(found(journalled.join(' '))).toEqual(['pattern']);
  expect(daemons).toHaveLength(2);
  for (const lines of daemons) {
    expect(found(lines.join('\n'))).toEqual([]);
    // Tokens of the server of these tests.
    expect(/token\.[0-9a-f]{8}-/.test(lines.join('\n'))).toBe(false);
    let next = 1;
    const entry = () => (next < lines.length ? entryOfLine(lines[next++] ?? '') : null);
    expect(await replayed(JSON.parse(lines[0] ?? '') as Header, entry)).toMatchObject({ divergence: null, failure: null });
  }
  const flight = Buffer.concat(flown).toString();
  expect(flight).toContain('not honoured');
  expect(found(flight)).toEqual([]);
});
