/**
 * A node of a real cluster on containerd, recorded through a busy minute with a `kill -9` in it, and run again: this checkout
 * does what the node did, in both lives; no secret that was planted is in the recording; and experiments with it begin from there.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { constants, zstdDecompressSync } from 'node:zlib';
import { openInputs } from '@actorlet/ctl/src/commands/replay/file.ts';
import { runWhatIf } from '@actorlet/ctl/src/commands/replay/whatIf/whatIf.ts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { foundIn, type Planted, planted } from '../../../packages/replay/test/border/planted.ts';
import { replayed } from '../../../packages/replay/test/replayed.ts';
import { toldTo } from '../../../packages/replay/test/toldTo.ts';
import { sh, steady } from '../../e2e/manifests.ts';
import { type Cluster, STAY, startCluster, startKubectl } from '../cluster.ts';

/** In the environment of a process no byte is zero. */
const SECRETS = planted().filter(({ bytes }) => bytes.length >= 8 && bytes.length <= 1_024 && !bytes.includes(0));
const PASSWORD = secretOf('Correct-Horse-77');
const VARIABLE = secretOf('battery/Staple-4711');
const LOGIN = secretOf('open "Sesame\\ 4711');
const WORDS = secretOf('last: words of 8150');
/** Of people: replaced with `--private` alone. */
const LABEL = 'team-Nightingale';
/** Of {@link busyMinute}. */
const PODS = 10;
let c: Cluster;
let dir: string;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-inputs-'));
  c = await startCluster();
});
afterAll(async () => {
  await c?.stop();
  rmSync(dir, { recursive: true, force: true });
});

function secretOf(text: string): Planted {
  return { text, bytes: new TextEncoder().encode(text), kind: 'ascii' };
}

async function secrets(): Promise<void> {
  const data = Object.fromEntries(SECRETS.map(({ bytes }, i) => [`k${i}`, Buffer.from(bytes).toString('base64')]));
  const auths = { 'registry.example.com': { username: 'me', password: LOGIN.text, auth: btoa(`me:${LOGIN.text}`) } };
  const kind = { apiVersion: 'v1', kind: 'Secret' };
  await c.apply(
    { ...kind, metadata: { name: 'planted' }, stringData: { password: PASSWORD.text }, data },
    {
      ...kind,
      metadata: { name: 'pull' },
      type: 'kubernetes.io/dockerconfigjson',
      stringData: { '.dockerconfigjson': JSON.stringify({ auths }) },
    },
  );
}

async function busyMinute(): Promise<void> {
  await secrets();
  const from = [
    { name: 'FROM_SECRET', valueFrom: { secretKeyRef: { name: 'planted', key: 'password' } } },
    { name: 'PLAIN', value: VARIABLE.text ?? '' },
  ];
  const readiness = { exec: { command: ['true'] }, periodSeconds: 1 };
  const more = { env: from, envFrom: [{ secretRef: { name: 'planted' } }], volumeMounts: [{ name: 's', mountPath: '/s' }] };
  await c.create(
    'uses',
    {
      containers: [{ ...sh('main', `echo $(FROM_SECRET) >/dev/null; ${STAY}`, more), readinessProbe: readiness }],
      imagePullSecrets: [{ name: 'pull' }],
      volumes: [{ name: 's', secret: { secretName: 'planted' } }],
    },
    { team: LABEL },
  );
  // The credentials are sent nowhere: this registry is not there.
  await c.create('pulls', {
    containers: [{ ...steady(), image: 'registry.example.com/team/app:1', imagePullPolicy: 'Always' }],
    imagePullSecrets: [{ name: 'pull' }],
  });
  await c.create('crashes', { containers: [sh('main', 'exit 3')] });
  const says = `i=0; while [ $i -lt 60 ]; do echo "line $i: ключ ${WORDS.text}"; i=$((i+1)); done; exit 3`;
  await c.create('says', { containers: [{ ...sh('main', says), terminationMessagePolicy: 'FallbackToLogsOnError' }] });
  await c.create('broken', { containers: [{ ...sh('main', ''), command: ['/no/such/program'] }] });
  for (let i = 0; i < 5; i++) await c.create(`burst-${i}`, { containers: [steady()] }, { app: 'burst' });
  await c.ready('uses');
  for (let i = 0; i < 5; i++) await c.ready(`burst-${i}`);
  await c.podWhere('says', 'has ended', ({ status }) => /words/.test(JSON.stringify(status.containerStatuses)));
  await startKubectl(c.plane, ['exec', 'uses', '--', 'sh', '-c', 'cat /s/password']).result;
  await c.kubectl('logs', 'crashes');
  await c.nodePage('/stats/summary');
}

interface Played {
  pod: string;
  recorded: string;
  unchanged: string;
  changed: string;
  later?: { unchanged: string };
}
/** Without the change, pods end as they did; with it, those that find no room are refused, also in the API. */
async function experiment(path: string): Promise<void> {
  const io = toldTo();
  await runWhatIf(io, { path, json: true, set: ['maxPods=6'], drop: [], fault: undefined });
  const { pods, untold } = JSON.parse(io.told()) as { pods: Played[]; untold: string[] };
  expect(untold).toEqual([]);
  // What was between two states when the daemon was killed may be in either.
  const quiet = pods.filter(({ pod }) => /uses|burst/.test(pod));
  // What was on its way when the recording ended has come to its end soon after.
  for (const { recorded, unchanged, later } of quiet) expect([unchanged, later?.unchanged]).toContain(recorded);
  const refused = pods.filter(({ changed }) => changed?.endsWith('; in the API Failed'));
  expect(refused).toHaveLength(pods.some(({ recorded }) => recorded !== 'gone') ? pods.length - 6 : 0);
}

it.each([
  ['', []],
  [' of people either', ['--private']],
])('does again what it did, also around a kill -9, and holds no secret%s', async (_, args) => {
  const folder = join(dir, `inputs${args.join('')}`);
  await c.daemon.ctl('record', 'start', folder, ...args);
  await c.daemon.wait('it is recorded', async () => /inputs\.zst/.test(await c.daemon.ctl('record').catch(() => '')));
  await busyMinute();
  await c.daemon.end('SIGKILL');
  await c.daemon.start();
  // What it has not asked for when the pods are deleted, a what-if cannot know.
  const settled = async () => (await c.daemon.ctl('pods')).match(/syncing\.settled/g)?.length === PODS;
  await c.daemon.wait('each pod is settled in its second life', settled);
  await c.kubectl('delete', 'pod', '--all');
  for (const name of ['uses', 'crashes', 'says', 'burst-0', 'pulls', 'broken']) await c.gone(name);
  await c.daemon.ctl('record', 'stop');
  const files = readdirSync(folder).sort();
  expect(files).toHaveLength(2);
  for (const file of files) {
    const { header, next, more } = await openInputs(join(folder, file));
    const result = await replayed(header, next, more);
    expect({ file, ...result }).toMatchObject({ divergence: null, failure: null });
    expect(result.inputs).toBeGreaterThan(500);
    // One of them was cut by the kill.
    if (args.length === 0) await experiment(join(folder, file));
    const text = zstdDecompressSync(readFileSync(join(folder, file)), { finishFlush: constants.ZSTD_e_flush }).toString();
    const found = [...SECRETS, PASSWORD, VARIABLE, LOGIN, WORDS].flatMap((secret) =>
      foundIn(text, secret).map((way) => `${secret.kind}, ${secret.bytes.length} bytes: ${way}`),
    );
    expect(found).toEqual([]);
    expect(text.includes(LABEL)).toBe(args.length === 0);
    expect(text).not.toContain('PRIVATE KEY');
    for (const [, claims = ''] of text.matchAll(/eyJ[\w-]+\.(eyJ[\w-]+)\./g))
      expect(Buffer.from(claims, 'base64url').toString()).not.toContain('system:');
  }
});
