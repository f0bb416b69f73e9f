/** Doors of fields that few use: images as volumes, claims of devices, links with a user or a fragment, endpoints, sidecars. */
import { RecordingWriter } from '@actorlet/inspect/src/recording/writer.ts';
import type { Node } from '@actorlet/kubelet/actors/node.ts';
import type { HttpRequest } from '@actorlet/kubelet/ports/sockets/net.ts';
import { expect, it } from 'vitest';
import { cluster, create, events, inApi, isReady, NS, post } from '../../../../test/integration/cluster/clusterPods.ts';
import type { VirtualNode } from '../../../../test/integration/virtualNode.ts';
import { inspectedOf } from '../../../inspect/test/rig.ts';
import { entryOfLine } from '../../src/check.ts';
import type { Header } from '../../src/entries.ts';
import { InputRecording } from '../../src/record.ts';
import { replayed } from '../replayed.ts';
import { foundIn } from './planted.ts';
import { noting, type Served } from './served.ts';

const AUTHENTICATED = { anonymous: { enabled: true }, webhook: { enabled: true, cacheTTL: 120_000 }, x509: { clientCAFile: '' } };
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
const env = (name: string) => [{ name: 'A', value: hidden(name) }];
const image = (name: string) => `me:${hidden(name)}@registry.example.com/x:1`;
/** As the types do not have it, or no author should write it. */
const odd = (fields: object) => fields as Record<string, never>;

function links(h: VirtualNode): void {
  const header = (name: string, value: string) => ({ name, value });
  create(h, 'links', {
    container: odd({
      livenessProbe: { httpGet: { path: `//me:${hidden('user of a path')}@h/x`, port: 80 } },
      readinessProbe: { httpGet: { path: `/x#t=${hidden('fragment')}`, port: 80, host: `me:${hidden('user of a host')}@192.0.2.1` } },
      startupProbe: {
        httpGet: {
          path: `/x;session=${hidden('parameter')}?next=https://x/&k=${hidden('query beside a URL')}`,
          httpHeaders: [header('User-Agent', `x/${hidden('agent')}`), header('Origin', hidden('origin')), header('Host', 'host.test')],
          port: 80,
        },
      },
      lifecycle: {
        postStart: {
          httpGet: {
            path: `/x?${hidden('query without a name')}`,
            httpHeaders: [header('X-Vault-Token', hidden('header of a hook')), header('Referer', `https://x/?k=${hidden('referer')}`)],
            port: 80,
          },
        },
      },
    }),
  });
  create(h, 'git', { spec: odd({ volumes: [{ name: 'g', gitRepo: { repository: `https://bot:${hidden('repository')}@git.test/x` } }] }) });
}

function containers(h: VirtualNode): void {
  const side = {
    ...{ name: 'side', image: 'busybox:1', restartPolicy: 'Always', env: env('environment of a sidecar') },
    startupProbe: { exec: { command: ['a', hidden('probe of a sidecar')] } },
    lifecycle: { preStop: { exec: { command: ['b', hidden('hook of a sidecar')] } } },
  };
  const first = { name: 'first', image: 'busybox:1', env: env('environment of an init container'), command: ['x', hidden('its command')] };
  create(h, 'init', { spec: odd({ initContainers: [first, side] }) });
  create(h, 'images', { spec: odd({ volumes: [{ name: 'i', image: { reference: image('image as a volume'), pullPolicy: 'Always' } }] }) });
  create(h, 'windows', { spec: odd({ securityContext: { windowsOptions: { gmsaCredentialSpec: hidden('credential of Windows') } } }) });
}

/** Fields that no pod has: the node leaves them alone, and a recording has them all the same. */
function slips(h: VirtualNode): void {
  const at = (name: string, container: object) => create(h, name, { container: odd(container) });
  at('slips', {
    ...{ comand: [hidden('comand')], agrs: hidden('agrs'), evn: [{ name: 'A', value: hidden('evn') }], Args: [hidden('a capital')] },
    env: [{ name: 'A', value: hidden('of a probe'), vaule: hidden('vaule') }],
    environment: { A: hidden('a map'), B: 5 },
    livenessProbe: {
      httpGet: { port: 80, url: hidden('no path'), httpHeaders: [{ name: 'X', value: 'x', Value: hidden('of a header') }] },
    },
    readinessProbe: { exec: { command: ['a'], comand: hidden('of an exec') }, periodSeconds: 2 },
  });
  const digest = 'a'.repeat(96);
  at('schemes', { image: `Https://me:pa/${hidden('user behind a scheme')}@registry.example.com/x@sha384:${digest}` });
}
/** Values that are names, and words of the node's own: it says them itself, and compares them with what the API server has. */
function names(h: VirtualNode): void {
  const name = 'registry.example.com/shop/checkout:v1';
  const own = ['checkout-service', name, 'restarting failed container', 'ContainersNotReady', 'unready status', "couldn't find key"];
  create(h, 'checkout-service', {
    life: 'run=5s,exit=1',
    container: { name: 'checkout-service', image: name, args: own, env: own.map((value, i) => ({ name: `OWN_${i}`, value })) },
  });
}
/** Values that other texts have, too: annotations and a ConfigMap, which the node writes into volumes and reads again. */
function shared(h: VirtualNode): void {
  const own = ['eu-central-1', '/dev/termination-log', 'said "quoted"', 'production', 'value of its own'];
  const noted = (values: string[]) => Object.fromEntries(values.map((value, i) => [`example.com/a${i}`, `x ${value} y`]));
  const labels = { region: 'eu-central-1', env: 'production' };
  const items = ['metadata.labels', 'metadata.annotations', "metadata.annotations['example.com/a4']", 'metadata.name'].map(
    (fieldPath, i) => ({ path: `${i}`, fieldRef: { fieldPath } }),
  );
  post(h, 'configmaps', {
    metadata: { name: 'c' },
    data: { text: 'in eu-central-1', env: 'production', password: 'abc', token: 'of production' },
    binaryData: { url: btoa(`x://me:${hidden('binary')}@db.test/x`), bytes: '//79' },
  });
  post(h, 'secrets', { metadata: { name: 'mixed' }, data: { hidden: btoa(hidden('secret beside a ConfigMap')), raw: '/v38' } });
  const volumes = [
    { name: 'd', downwardAPI: { items } },
    { name: 'p', projected: { sources: [{ downwardAPI: { items } }, { configMap: { name: 'c' } }] } },
    { name: 'm', projected: { sources: [{ secret: { name: 'mixed' } }, { configMap: { name: 'c' } }] } },
  ];
  for (const name of ['before', 'own', 'after']) {
    const env = name === 'own' ? own.map((value, i) => ({ name: `E${i}`, value })) : [];
    const container = { name: 'm', image: 'busybox:1', env, volumeMounts: ['d', 'p', 'm'].map((v) => ({ name: v, mountPath: `/${v}` })) };
    const annotations = noted(name === 'own' ? own : own.slice(0, 4));
    const body = { metadata: { name, labels, annotations }, spec: { nodeName: 'n1', containers: [container], volumes } };
    expect(h.kube.handle({ verb: 'POST', path: `${NS}/pods`, body: { apiVersion: 'v1', kind: 'Pod', ...body } }).ok).toBe(true);
  }
}
/** What the runtime tells of a container, in JSON in a text. */
const told = () => {
  const config = { Env: [`A=${hidden('Env')}`], Cmd: [hidden('Cmd')], Entrypoint: [hidden('Entrypoint')] };
  const process = { env: [`A=${hidden('env of a runtime')}`], args: ['x', hidden('args of a runtime')] };
  return { info: JSON.stringify({ runtimeSpec: { process }, imageSpec: { config, history: [{ created_by: hidden('history') }] } }) };
};

function claims(h: VirtualNode): void {
  const opaque = (name: string) => ({
    driver: 'gpu.example.com',
    parameters: { apiVersion: 'x/v1', kind: 'GpuConfig', licence: hidden(name), nested: { any: [hidden(`${name}, nested`)] } },
  });
  const made = h.kube.handle({
    ...{ verb: 'POST', path: '/apis/resource.k8s.io/v1/namespaces/default/resourceclaims' },
    body: {
      ...{ apiVersion: 'resource.k8s.io/v1', kind: 'ResourceClaim', metadata: { name: 'c' } },
      spec: { devices: { requests: [{ name: 'r' }], config: [{ requests: ['r'], opaque: opaque('claim') }] } },
      status: {
        allocation: {
          devices: {
            results: [{ request: 'r', driver: 'gpu.example.com', pool: 'n1', device: 'd0' }],
            config: [{ source: 'FromClass', requests: ['r'], opaque: opaque('allocation') }],
          },
        },
        devices: [{ driver: 'gpu.example.com', pool: 'n1', device: 'd0', data: { any: hidden('data of a device') } }],
      },
    },
  });
  expect(made.ok).toBe(true);
  create(h, 'claims', {
    spec: odd({ resourceClaims: [{ name: 'c', resourceClaimName: 'c' }] }),
    container: odd({ resources: { claims: [{ name: 'c' }] } }),
  });
}

/** It begins in a pod that runs. */
function ephemeral(h: VirtualNode): void {
  const container = { name: 'd', image: image('image of an ephemeral container'), env: env('its environment'), command: [hidden('word')] };
  const spec = { ephemeralContainers: [container] };
  const made = h.kube.handle({ verb: 'PATCH', path: `${NS}/pods/links/ephemeralcontainers`, patchType: 'strategic', body: { spec } });
  expect(made.ok).toBe(true);
}

it('no secret of a field that few use is in a recording, an event or a log, and all replays without a divergence', {
  timeout: 120_000,
}, async () => {
  const daemons: string[][] = [];
  const handlers: Served = new Map();
  const info = told();
  const said = Buffer.from('it has Zq7-of a probe-sEcReT');
  await using h = await cluster({
    ...{ servers: true, drivers: true, dra: true, flags: { record: '/node.rec' } },
    hollow: { exec: () => ({ exitCode: 1, stdout: said }), stream: () => `http://127.0.0.1:1/exec/${hidden('session')}` },
    config: {
      ...{ enableServer: true, authentication: AUTHENTICATED },
      authorization: { mode: 'AlwaysAllow', webhook: { cacheAuthorizedTTL: 1, cacheUnauthorizedTTL: 1 } },
      tracing: { endpoint: `me:${hidden('user of an endpoint')}@collector:4317`, samplingRatePerMillion: 1 },
      staticPodURL: `http://192.0.2.9/x#${hidden('fragment of a URL')}`,
    } as object,
    ports: (ports) => ({ ...ports, net: noting(ports.net, handlers) }),
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
  // Who traces the node adds to its calls, and nobody traces a replay.
  inspectedOf(h).history.traceCalls(() => ({ traceparent: '00-0123-4567-01', ended: () => undefined }));
  const writer = new RecordingWriter(inspectedOf(h), {
    ...{ waitingBytes: 0, segmentBytes: 0, generation: 1, segmentSoftMax: 1e9 },
    write: (bytes) => flown.push(bytes) > 0,
    rotate() {},
  });
  h.faults.answer = (method, value) => (/^(?:Container|PodSandbox)Status$/.test(method) ? { ...(value as object), info } : value);
  links(h);
  slips(h);
  names(h);
  shared(h);
  containers(h);
  claims(h);
  h.write('static', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 's' },
    spec: { containers: [{ name: 'm', image: image('static') }] },
  });
  await h.until('the probe cannot be asked', () => events(h, 'Unhealthy').some((message) => message.includes('not a URL')), 60_000);
  ephemeral(h);
  const at = [...handlers.keys()].find((key) => key.endsWith('10250')) ?? '';
  const token = Buffer.from(hidden('token of a WebSocket')).toString('base64url');
  const headers = {
    'user-agent': hidden('agent of a client'),
    'sec-websocket-protocol': `base64url.bearer.authorization.k8s.io.${token}, v4.channel.k8s.io`,
  };
  const ask = async (path: string, o: object): Promise<void> => {
    let isAnswered = false;
    const asked: HttpRequest = { method: 'GET', path, query: new URLSearchParams(), body: new Uint8Array(), ...o } as never;
    void handlers
      .get(at)?.({ ...asked, signal: new AbortController().signal })
      .then(() => {
        isAnswered = true;
      });
    await h.until('an answer', () => isAnswered, 30_000);
  };
  await ask('/pods', { headers });
  await ask('/stats/summary', { headers: {} });
  const query = new URLSearchParams({ command: 'x', output: '1' });
  await ask('/exec/default/slips/main', { headers: { connection: 'Upgrade', upgrade: 'SPDY/3.1' }, query });
  await h.advance(90_000);
  writer.end();
  expect([isReady(h, 'images'), inApi(h, 'git')?.status.phase]).toEqual([true, 'Failed']);
  await h.restart();
  await h.advance(60_000);

  expect(doors.length).toBeGreaterThan(25);
  expect(found(JSON.stringify([h.calls, h.probes.asked])).length).toBeGreaterThan(2);
  expect(daemons).toHaveLength(2);
  for (const lines of daemons) {
    expect(found(lines.join('\n'))).toEqual([]);
    let next = 1;
    const entry = () => (next < lines.length ? entryOfLine(lines[next++] ?? '') : null);
    expect(await replayed(JSON.parse(lines[0] ?? '') as Header, entry)).toMatchObject({ divergence: null, failure: null });
  }
  expect(found(Buffer.concat(flown).toString())).toEqual([]);
  // What a probe prints is in the log.
  expect(found(JSON.stringify(h.lines))).toEqual(['of a probe']);
});
