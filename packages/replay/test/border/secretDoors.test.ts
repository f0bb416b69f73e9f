/** Secrets of each kind and length in each door of a node: no recording of it has them, and each replays without a divergence. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { runCtl } from '@actorlet/ctl/src/cli.ts';
import { runHtml } from '@actorlet/ctl/src/commands/recording/html.ts';
import { RecordingWriter } from '@actorlet/inspect/src/recording/writer.ts';
import type { Node } from '@actorlet/kubelet/actors/node.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import type { CriRequest } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import type { CredentialPrograms, Ports } from '@actorlet/kubelet/ports/ports.ts';
import type { HttpReply, HttpRequest } from '@actorlet/kubelet/ports/sockets/net.ts';
import { healthy } from '@actorlet/world/src/plugins/devicePlugins.ts';
import { afterAll, beforeAll, expect } from 'vitest';
import { ACCESS, account, cluster, create, inApi, isReady, MOUNT, post } from '../../../../test/integration/cluster/clusterPods.ts';
import { ROOT, type VirtualNode } from '../../../../test/integration/virtualNode.ts';
import { inTurn } from '../../../../test/rotation.ts';
import { inspectedOf } from '../../../inspect/test/rig.ts';
import { entryOfLine } from '../../src/check.ts';
import type { Header } from '../../src/entries.ts';
import { InputRecording } from '../../src/record.ts';
import { replayed } from '../replayed.ts';
import { toldTo } from '../toldTo.ts';
import { foundIn, type Planted, planted } from './planted.ts';
import { noting, type Served } from './served.ts';

const it = inTurn('doors of secrets', 2);
const AUTHENTICATED = { anonymous: { enabled: true }, webhook: { enabled: true, cacheTTL: 120_000 }, x509: { clientCAFile: '' } };
const DEVICES = `${ROOT}/device-plugins`;

/** Takes secrets from the pile, each for a door of its own. */
class Pile {
  readonly taken: { door: string; secret: Planted }[] = [];
  readonly #texts: Planted[];
  readonly #all: Planted[];

  constructor() {
    const all = planted();
    this.#texts = all.filter(({ text }) => text !== null);
    this.#all = all;
  }

  /** Without what this door cannot take. */
  text(door: string, fits: (text: string) => boolean = () => true): string {
    const at = this.#texts.findIndex(({ text, bytes }) => bytes.length >= 4 && fits(text ?? ''));
    const [secret] = this.#texts.splice(at, 1);
    if (at < 0 || secret === undefined || secret.text === null) throw new Error(`no secret is left for ${door}`);
    this.taken.push({ door, secret });
    return secret.text;
  }

  all(door: string): readonly Planted[] {
    for (const secret of this.#all) this.taken.push({ door, secret });
    return this.#all;
  }
}

function recording(ports: Ports, config: NodeConfig, lines: string[], more: object = {}) {
  return new InputRecording(ports, {
    ...{ config, options: {}, versions: { actorlet: 'test', node: process.version } },
    afterMicrotasks: (fn) => queueMicrotask(() => process.nextTick(fn)),
    write: (line) => lines.push(line) > 0,
    ended() {},
    ...more,
  });
}

interface Lived {
  readonly pile: Pile;
  /** Of each daemon. */
  readonly daemons: readonly (readonly string[])[];
  /** What the flight recorder wrote. */
  readonly flight: Buffer;
  /** What the runtime was told. */
  readonly outside: string;
}

const line = (text: string) => !/[\r\n]/.test(text);
/** Of a credential program, a probe, a hook and a request, whose words nobody expands. */
const NOT_EXPANDED = '$(Correct_Horse_4711)';
const header = (text: string) => line(text) && /^[\x20-\x7e\t]+$/.test(text);

/** A node that lives through everything that secrets come through. */
async function lived(more: object = {}): Promise<Lived> {
  const pile = new Pile();
  const daemons: string[][] = [];
  const handlers: Served = new Map();
  const url = `http://${encodeURIComponent(pile.text('user of a URL', line))}:${encodeURIComponent(pile.text('password of a URL', line))}@192.0.2.9/pods?token=${encodeURIComponent(pile.text('query of a URL', line))}`;
  const serviceToken = pile.text('token of a service account', line);
  const programs: CredentialPrograms = {
    providers: [
      {
        ...{ name: 'helper', matchImages: ['registry.helper.test'], defaultCacheMs: 0, apiVersion: 'credentialprovider.kubelet.k8s.io/v1' },
        args: ['--key', pile.text('arguments of a credential program'), NOT_EXPANDED],
        env: [
          { name: 'KEY', value: pile.text('environment of a credential program') },
          { name: 'MORE', value: NOT_EXPANDED },
        ],
      },
    ],
    run: async () =>
      JSON.stringify({
        ...{
          kind: 'CredentialProviderResponse',
          apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
          cacheKeyType: 'Registry',
          cacheDuration: '0s',
        },
        auth: {
          'registry.helper.test': {
            username: pile.text('user of a credential program'),
            password: pile.text('password of a credential program'),
          },
        },
      }),
  };
  const secretWord = pile.text('word that the runtime says', (text) => /["\n]/.test(text) && text.length >= 8);
  const lastWords = [pile.text('a log', line), pile.text('a termination message')] as const;
  let disk: VirtualNode | undefined;
  /** A container writes into its log, and into its file for a last message. */
  const ends = (path: string): void => {
    if (path.includes('/says/')) disk?.fs.put(path, `2026-01-01T00:00:00.000000000Z stdout F it says ${lastWords[0]}\n`);
    const last = disk?.calls.findLast(({ method, req }) => method === 'CreateContainer' && JSON.stringify(req).includes('"writes"'))?.req;
    const mounts = (last as CriRequest<'CreateContainer'> | undefined)?.config.mounts ?? [];
    const file = mounts.find(({ containerPath }) => containerPath === '/dev/termination-log')?.hostPath;
    if (path.includes('/writes/') && file !== undefined) disk?.fs.put(file, lastWords[1]);
  };
  await using h = await cluster({
    servers: true,
    devices: true,
    flags: { record: '/node.rec' },
    config: {
      enableServer: true,
      authentication: AUTHENTICATED,
      authorization: { mode: 'AlwaysAllow', webhook: { cacheAuthorizedTTL: 1, cacheUnauthorizedTTL: 1 } },
      staticPodURL: url,
      staticPodURLHeader: { 'X-Key': [pile.text('header of the URL', header)] },
    } as object,
    hollow: {
      log: (path) => ends(path),
      exec: () => ({ exitCode: 0 }),
      stream: () => 'http://127.0.0.1:1/exec/x',
    },
    before(w) {
      disk = w;
      w.devices.add(`${DEVICES}/gpu.sock`, { resource: 'example.com/gpu', devices: healthy('a', 'b') });
      w.faults.fault = (method, req) => {
        const name = (req as { config?: { metadata?: { name?: string } } }).config?.metadata?.name;
        if (method !== 'CreateContainer' || name !== 'broken') return undefined;
        return { kind: 'refuse', code: 2, details: `exec: ${JSON.stringify(secretWord)}: executable file not found in $PATH` };
      };
    },
    ports: (ports) => ({
      ...ports,
      credentialPrograms: programs,
      net: noting(ports.net, handlers),
      ...(ports.kube === undefined
        ? {}
        : {
            kube: {
              ...ports.kube,
              async request(request, o) {
                const answer = await (ports.kube as NonNullable<typeof ports.kube>).request(request, o);
                if (!answer.ok || !request.path.endsWith('/token')) return answer;
                const body = answer.body as { status: object };
                return { ...answer, body: { ...body, status: { ...body.status, token: serviceToken } } };
              },
            },
          }),
    }),
    between(config, ports) {
      const lines: string[] = [];
      daemons.push(lines);
      const one = recording(ports, config, lines, more);
      return { ports: one.ports, wrap: (node: Node) => one.around(node) };
    },
  });
  const flown: Uint8Array[] = [];
  const sink = {
    waitingBytes: 0,
    segmentBytes: 0,
    generation: 1,
    segmentSoftMax: 1e9,
    write: (bytes: Uint8Array) => flown.push(bytes) > 0,
    rotate() {},
  };
  const writer = new RecordingWriter(inspectedOf(h), sink);
  account(h);
  await pods(h, pile, secretWord);
  await requests(h, pile, handlers);
  await h.advance(90_000);
  writer.end();
  // The next daemon reads what is mounted.
  await h.restart();
  await h.advance(90_000);
  return { pile, daemons, flight: Buffer.concat(flown), outside: JSON.stringify(h.calls) };
}

async function pods(h: VirtualNode, pile: Pile, secretWord: string): Promise<void> {
  const all = pile.all('a Secret');
  const data = Object.fromEntries(all.map(({ bytes }, i) => [`k${i}`, Buffer.from(bytes).toString('base64')]));
  post(h, 'secrets', { metadata: { name: 's' }, type: 'Opaque', data });
  const login = { username: pile.text('user of a registry'), password: pile.text('password of a registry') };
  const auth = Buffer.from(`me:${pile.text('auth of a registry')}`).toString('base64');
  const auths = { 'registry.example.com': login, 'registry.other.test': { auth } };
  post(h, 'secrets', {
    ...{ metadata: { name: 'pull' }, type: 'kubernetes.io/dockerconfigjson' },
    data: { '.dockerconfigjson': Buffer.from(JSON.stringify({ auths }, null, 2)).toString('base64') },
  });
  create(h, 'volumes', {
    container: {
      env: all.slice(0, 40).map((_, i) => ({ name: `S${i}`, valueFrom: { secretKeyRef: { name: 's', key: `k${i}` } } })),
      envFrom: [{ prefix: 'F_', secretRef: { name: 's' } }],
      args: ['$(S1)-$(S7)$(S3)', '$(F_k9)'],
      volumeMounts: [{ name: 'v', mountPath: '/v' }, MOUNT],
      image: 'registry.example.com/team/app:1',
      imagePullPolicy: 'Always',
    },
    spec: {
      imagePullSecrets: [{ name: 'pull' }],
      volumes: [{ name: 'v', secret: { secretName: 's' } }, ACCESS],
      serviceAccountName: 'default',
    },
  });
  create(h, 'other', {
    container: { image: 'registry.other.test/team/app:1', imagePullPolicy: 'Always' },
    spec: { imagePullSecrets: [{ name: 'pull' }] },
  });
  create(h, 'helped', { container: { image: 'registry.helper.test/app:1', imagePullPolicy: 'Always' } });
  const headers = (what: string) => [
    { name: 'Authorization', value: `Bearer ${pile.text(`token of ${what}`, header)}` },
    { name: 'Cookie', value: `session=${pile.text(`cookie of ${what}`, header)}` },
    { name: 'X-Api-Key', value: pile.text(`key of ${what}`, header) },
  ];
  const path = (what: string) => `/healthz?token=${encodeURIComponent(pile.text(`query of ${what}`))}`;
  const command = (what: string) => ['sh', '-c', pile.text(`words of ${what}`), NOT_EXPANDED];
  create(h, 'words', {
    container: {
      command: ['run', pile.text('a command')],
      args: [
        '--password',
        pile.text('arguments'),
        `--token=${pile.text('a part of an argument')}`,
        '$(A)$(B) $$(A) $(UNKNOWN) $',
        'default',
      ],
      env: [
        { name: 'A', value: pile.text('environment', (text) => !text.includes('$')) },
        { name: 'B', value: `x$(A)-${pile.text('a part of the environment', (text) => !text.includes('$'))}` },
        { name: 'C', value: 'kubernetes.io/hostname' },
        { name: 'D', value: 'other' },
        { name: 'FOLDER', value: 'logs' },
      ],
      ports: [{ containerPort: 80 }],
      livenessProbe: { httpGet: { path: path('a probe'), port: 80, httpHeaders: headers('a probe') }, periodSeconds: 5 },
      readinessProbe: { exec: { command: command('a probe') }, periodSeconds: 5 },
      lifecycle: {
        postStart: { exec: { command: command('a hook') } },
        preStop: { httpGet: { path: path('a hook'), port: 80, httpHeaders: headers('a hook') } },
      },
      volumeMounts: [{ name: 'e', mountPath: '/e', subPathExpr: '$(FOLDER)/x' }],
      resources: { limits: { 'example.com/gpu': '1' }, requests: { 'example.com/gpu': '1' } },
    },
    spec: { volumes: [{ name: 'e', emptyDir: {} }] },
  });
  create(h, 'says', { life: 'run=5s,exit=1', container: { name: 'says', terminationMessagePolicy: 'FallbackToLogsOnError' } });
  create(h, 'writes', { life: 'run=5s,exit=1', container: { name: 'writes' } });
  create(h, 'broken', { container: { name: 'broken', command: [secretWord] } });
  create(h, 'image', {
    container: { image: `${pile.text('user of an image', line)}:${pile.text('password of an image', line)}@registry.example.com/x:1` },
  });
  const env = [{ name: 'A', value: pile.text('environment of a manifest') }];
  h.write('manifest', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'manifest' },
    spec: { containers: [{ name: 'main', image: 'busybox:1', env }] },
  });
  const applied = JSON.stringify({ spec: { containers: [{ env: [{ name: 'A', value: pile.text('the last applied configuration') }] }] } });
  const made = h.kube.handle({
    ...{ verb: 'POST', path: '/api/v1/namespaces/default/pods' },
    body: {
      ...{
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'applied', annotations: { 'kubectl.kubernetes.io/last-applied-configuration': applied } },
      },
      spec: { nodeName: 'n1', containers: [{ name: 'main', image: 'busybox:1' }] },
    },
  });
  expect(made.ok).toBe(true);
  await h.until('all are ready', () => ['volumes', 'other', 'helped', 'words'].every((name) => isReady(h, name)), 120_000);
  const said = (name: string): string => JSON.stringify(inApi(h, name)?.status.containerStatuses);
  await h.until('last words are told', () => /"message":"it says/.test(said('says')) && /"message"/.test(said('writes')), 60_000);
  await h.until(
    'the broken one is told',
    () => inApi(h, 'broken')?.status.containerStatuses?.[0]?.state.waiting?.message?.includes('executable') === true,
    60_000,
  );
}

async function requests(h: VirtualNode, pile: Pile, handlers: Served): Promise<void> {
  const ask = async (at: string, o: Partial<HttpRequest>): Promise<HttpReply> => {
    const handler = handlers.get(at);
    if (handler === undefined) throw new Error(`nothing listens at ${at}: ${[...handlers.keys()].join(', ')}`);
    let reply: HttpReply | undefined;
    void handler({
      method: 'GET',
      path: '/',
      query: new URLSearchParams(),
      headers: {},
      body: new Uint8Array(),
      signal: new AbortController().signal,
      ...o,
    }).then((r) => {
      reply = r;
    });
    await h.until('an answer', () => reply !== undefined, 30_000);
    return reply as HttpReply;
  };
  const admin = { pod: 'default/words', cmd: ['login', pile.text('words of exec on the admin socket'), NOT_EXPANDED] };
  await ask('/admin.sock', { method: 'POST', path: '/exec', body: new TextEncoder().encode(JSON.stringify(admin)) });
  const bearer = {
    authorization: `Bearer ${pile.text('token of a request', header)}`,
    'x-api-key': pile.text('key of a request', header),
    'x-forwarded-for': pile.text('an address that is none', header),
  };
  const at = [...handlers.keys()].find((key) => key.endsWith('10250')) ?? '';
  await ask(at, {
    method: 'POST',
    path: '/run/default/words/main',
    query: new URLSearchParams({ cmd: `login ${pile.text('?cmd= of /run')}` }),
    headers: bearer,
  });
  await ask(at, {
    ...{ path: '/exec/default/words/main', headers: { ...bearer, connection: 'Upgrade', upgrade: 'SPDY/3.1' } },
    query: new URLSearchParams([
      ['command', 'login'],
      ['command', pile.text('?command= of /exec')],
      ['command', NOT_EXPANDED],
      ['output', '1'],
    ]),
  });
}

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-doors-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const found = ({ pile }: Lived, text: string): string[] =>
  pile.taken.flatMap(({ door, secret }) =>
    foundIn(text, secret).map((way) => `${door} (${secret.kind}, ${secret.bytes.length} bytes): ${way}`),
  );

async function again(lines: readonly string[]) {
  let at = 1;
  const { divergence, failure, inputs } = await replayed(JSON.parse(lines[0] ?? '') as Header, () =>
    at < lines.length ? entryOfLine(lines[at++] ?? '') : null,
  );
  return { divergence, failure, inputs };
}

/** What `actorctl html` writes of it, with what is packed in it. */
async function pageOf(flight: Uint8Array): Promise<string> {
  const file = join(dir, 'flight.rec');
  writeFileSync(file, flight);
  const parts: Readonly<Record<string, string>> = {
    '/': '<script src="assets/a.js"></script><link href="assets/a.css">',
    '/assets/a.js': '"elk-worker-1.js"',
    '/assets/a.css': '',
    '/assets/elk-worker-1.js': '',
  };
  const files = Object.entries(parts).map(([path, text], i) => {
    writeFileSync(join(dir, `part-${i}`), text);
    return [path, { file: join(dir, `part-${i}`), type: '', hashed: false }] as const;
  });
  const io = toldTo();
  expect(await runHtml(io, { file, at: '' }, new Map(files))).toBe(0);
  const html = io.told();
  const packed = [...html.matchAll(/<script type="text\/plain" id="actorlet-segment-\d+">([^<]*)</g)].map(([, base64 = '']) => base64);
  return [html, ...packed.map((base64) => gunzipSync(Buffer.from(base64, 'base64')).toString())].join('\n');
}

it('no secret of any door is in a recording, which replays without a divergence, or in what is kept of it', async () => {
  const node = await lived();
  const { pile, daemons, flight } = node;
  expect(pile.taken.length).toBeGreaterThan(120);
  // It is about these secrets.
  expect(found(node, node.outside).length).toBeGreaterThan(100);
  for (const lines of daemons) {
    expect(found(node, lines.join('\n'))).toEqual([]);
    expect(lines.join('\n')).not.toContain(NOT_EXPANDED);
    const { inputs, ...ended } = await again(lines);
    expect(ended).toEqual({ divergence: null, failure: null });
    expect(inputs).toBeGreaterThan(500);
  }

  expect(flight.toString()).toContain('executable file not found');
  expect(found(node, flight.toString())).toEqual([]);
  const page = await pageOf(flight);
  expect(page).toContain('executable file not found');
  expect(found(node, page)).toEqual([]);

  const whole = join(dir, 'whole.inputs.zst');
  writeFileSync(whole, zstdCompressSync(`${daemons[0]?.join('\n')}\n`));
  mkdirSync(join(dir, 'packages/replay/test'), { recursive: true });
  writeFileSync(join(dir, 'packages/replay/test/regression.ts'), '');
  const test = join(dir, 'packages/replay/test/small.test.ts');
  const io = toldTo();
  const code = await runCtl({ ...io, argv: ['replay', whole, '--to-test', test, '--pod', 'default/words', '--runs', '4'] });
  expect({ code, told: io.told() }).toMatchObject({ code: 0 });
  const kept = zstdDecompressSync(readFileSync(test.replace('.test.ts', '.inputs.zst'))).toString();
  expect(found(node, kept + readFileSync(test, 'utf8') + io.told())).toEqual([]);
  expect(await again(kept.trimEnd().split('\n'))).toMatchObject({ divergence: null, failure: null });

  // A decision by the content of a secret is called one.
  const [lines = []] = daemons;
  const at = lines.findLastIndex((one) => /^\["ask","cri.call".*"CreateContainer.*,\[[\d,]+\]\]$/.test(one));
  const [code0, name, , ...rest] = JSON.parse(lines[at] ?? '') as unknown[];
  const other = join(dir, 'other.inputs.zst');
  writeFileSync(other, zstdCompressSync(`${lines.with(at, JSON.stringify([code0, name, 'another', ...rest])).join('\n')}\n`));
  const said = toldTo();
  expect(await runCtl({ ...said, argv: ['replay', other] })).toBe(1);
  expect(said.told()).toMatch(/What differs has a secret in it.*DIVERGENCE/s);
}, 240_000);

/** Each is looked for; those below four bytes are in any file, and count for the replay. */
const PEOPLE = [
  'people-one.team_blue',
  'x9',
  'other',
  'Jürgen "Q" <q@people.test>',
  'people\nlines\n',
  'ConfigurationOfPeople=true',
  'people-log-one',
  'people-probe-one',
];

it('nothing that people write is in a recording that is private, which replays without a divergence', async () => {
  const [label = '', short = '', plain = '', sign = '', lines = '', setting = '', said = '', probed = ''] = PEOPLE;
  const daemons: string[][] = [];
  const handlers: Served = new Map();
  const binary = Buffer.from([...Buffer.from('people-binary'), 0xff, 0x00, 0xfe, 0x80]);
  const logged = `${Array.from({ length: 2_000 }, (_, i) => `2026-01-01T00:00:00.${String(i).padStart(9, '0')}Z ${i % 3 === 0 ? 'stderr' : 'stdout'} F ${said} ä ${i}`).join('\n')}\n`;
  let disk: VirtualNode | undefined;
  await using h = await cluster({
    servers: true,
    config: {
      ...{ enableServer: true, authentication: AUTHENTICATED },
      authorization: { mode: 'AlwaysAllow', webhook: { cacheAuthorizedTTL: 1, cacheUnauthorizedTTL: 1 } },
    } as object,
    before(w) {
      disk = w;
    },
    hollow: { log: (path) => disk?.fs.put(path, logged), exec: () => ({ exitCode: 1, stdout: Buffer.from(`it says\n${probed}`) }) },
    ports: (ports) => ({
      ...{ ...ports, net: noting(ports.net, handlers) },
      prober: { ...ports.prober, httpGet: async () => ({ status: 200, location: null, body: Buffer.from(`${probed}!`), bodyError: null }) },
    }),
    between(config, ports) {
      const lived: string[] = [];
      daemons.push(lived);
      const one = recording(ports, config, lived, { isPrivate: true });
      return { ports: one.ports, wrap: (node: Node) => one.around(node) };
    },
  });
  const labels = { team: label, tier: short, 'app.kubernetes.io/name': plain };
  const annotations = { 'example.com/owner': sign, note: lines, 'kubernetes.io/change-cause': setting, tier: short };
  post(h, 'configmaps', {
    metadata: { name: 'c', labels },
    data: { setting, plain, short, lines, 'app.json': JSON.stringify({ people: [label, sign] }) },
    binaryData: { binary: binary.toString('base64') },
  });
  const field = (fieldPath: string) => ({ path: fieldPath.replaceAll(/\W/g, '-'), fieldRef: { fieldPath } });
  const fields = ['metadata.labels', 'metadata.annotations', "metadata.labels['team']", "metadata.annotations['note']", 'metadata.name'];
  const env = [
    { name: 'A', valueFrom: { fieldRef: { fieldPath: "metadata.labels['tier']" } } },
    { name: 'B', valueFrom: { configMapKeyRef: { name: 'c', key: 'setting' } } },
    { name: 'C', valueFrom: { fieldRef: { fieldPath: "metadata.annotations['example.com/owner']" } } },
    { name: 'POD', value: 'people' },
  ];
  const people = (name: string) => ({
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, labels, annotations } },
    spec: {
      containers: [{ name: 'main', image: 'busybox:1', args: ['$(A)-$(B)'], env, envFrom: [{ configMapRef: { name: 'c' } }] }].map((c) => ({
        ...c,
        livenessProbe: { exec: { command: ['a'] }, failureThreshold: 99 },
        startupProbe: { httpGet: { port: 80 } },
        volumeMounts: ['c', 'd', 'p'].map((volume) => ({ name: volume, mountPath: `/${volume}` })),
      })),
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            {
              topologyKey: 'kubernetes.io/hostname',
              labelSelector: { matchLabels: labels, matchExpressions: [{ key: 'team', operator: 'In', values: [label, short] }] },
            },
          ],
        },
      },
      volumes: [
        { name: 'c', configMap: { name: 'c' } },
        { name: 'd', downwardAPI: { items: fields.map(field) } },
        { name: 'p', projected: { sources: [{ configMap: { name: 'c' } }, { downwardAPI: { items: fields.map(field) } }] } },
      ],
      nodeName: 'n1',
    },
  });
  for (const name of ['people', 'more-people']) {
    const made = h.kube.handle({ verb: 'POST', path: '/api/v1/namespaces/default/pods', body: people(name) });
    expect(made.ok).toBe(true);
  }
  h.write('standalone', {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'standalone', labels, annotations } },
    spec: { containers: [{ name: 'main', image: 'busybox:1', env: env.slice(0, 1) }] },
  });
  await h.until('all are ready', () => ['people', 'more-people', 'standalone-n1'].every((name) => isReady(h, name)), 60_000);
  const at = [...handlers.keys()].find((key) => key.endsWith('10250')) ?? '';
  for (const query of [
    {},
    { tailLines: '7' },
    { limitBytes: '999', timestamps: 'true' },
    { sinceTime: '2026-01-01T00:00:00Z' },
  ] as object[]) {
    let text: string | undefined;
    const read = async (): Promise<void> => {
      const asked = { method: 'GET', headers: {}, body: new Uint8Array(), signal: new AbortController().signal };
      const path = '/containerLogs/default/people/main';
      const reply = await handlers.get(at)?.({ ...asked, path, query: new URLSearchParams(query as Record<string, string>) });
      const body = reply?.body as AsyncIterable<Uint8Array> | Uint8Array | string;
      const parts: Uint8Array[] = [];
      if (typeof body === 'string' || body instanceof Uint8Array) parts.push(Buffer.from(body));
      else for await (const part of body) parts.push(part);
      text = Buffer.concat(parts).toString();
    };
    void read();
    await h.until('the log was read', () => text !== undefined, 30_000);
    expect(text).toContain(said);
  }
  await h.advance(90_000);
  await h.restart();
  await h.advance(90_000);

  const secrets: Planted[] = [
    ...PEOPLE.map((text) => ({ text, bytes: Buffer.from(text), kind: 'people' })),
    { text: null, bytes: binary, kind: 'binary' },
  ];
  for (const lived of daemons) {
    expect(secrets.flatMap((secret) => foundIn(lived.join('\n'), secret).map((way) => `${secret.text}: ${way}`))).toEqual([]);
    const { inputs, ...ended } = await again(lived);
    expect(ended).toEqual({ divergence: null, failure: null });
    expect(inputs).toBeGreaterThan(100);
  }
}, 120_000);
