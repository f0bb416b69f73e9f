/**
 * A node of a real cluster on containerd, recorded through a busy minute with a `kill -9` in it, and run again: this checkout
 * does what the node did, in both lives; and no secret that was planted is in the recording.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { openInputs } from '@actorlet/ctl/src/commands/replay/file.ts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { replayed } from '../../../packages/replay/test/replayed.ts';
import { sh, steady } from '../../e2e/manifests.ts';
import { type Cluster, STAY, startCluster, startKubectl } from '../cluster.ts';

const PLANTED = { secret: 'Correct-Horse-77', env: 'battery/Staple-4711', binary: 'AP8BgICAf3/+' };
let c: Cluster;
let dir: string;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-inputs-'));
  c = await startCluster({ args: [`--actorlet-record-inputs=${dir}`] });
});
afterAll(async () => {
  await c?.stop();
  rmSync(dir, { recursive: true, force: true });
});

async function busyMinute(): Promise<void> {
  await c.post('secrets', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'planted' },
    stringData: { password: PLANTED.secret },
    data: { raw: PLANTED.binary },
  });
  const from = [
    { name: 'FROM_SECRET', valueFrom: { secretKeyRef: { name: 'planted', key: 'password' } } },
    { name: 'PLAIN', value: PLANTED.env },
  ];
  const readiness = { exec: { command: ['true'] }, periodSeconds: 1 };
  await c.create('uses', {
    containers: [
      {
        ...sh('main', `echo $(FROM_SECRET) >/dev/null; ${STAY}`, { env: from, volumeMounts: [{ name: 's', mountPath: '/s' }] }),
        readinessProbe: readiness,
      },
    ],
    volumes: [{ name: 's', secret: { secretName: 'planted' } }],
  });
  await c.create('crashes', { containers: [sh('main', 'exit 3')] });
  for (let i = 0; i < 10; i++) await c.create(`burst-${i}`, { containers: [steady()] }, { app: 'burst' });
  await c.ready('uses');
  for (let i = 0; i < 10; i++) await c.ready(`burst-${i}`);
  await startKubectl(c.plane, ['exec', 'uses', '--', 'sh', '-c', 'cat /s/password']).result;
  await c.kubectl('logs', 'crashes');
  await c.nodePage('/stats/summary');
}

it('does again what it did, also around a kill -9, and holds no secret', async () => {
  await busyMinute();
  await c.daemon.end('SIGKILL');
  await c.daemon.start();
  for (let i = 0; i < 5; i++) await c.kubectl('delete', 'pod', `burst-${i}`);
  await c.kubectl('delete', 'pod', 'crashes', 'uses');
  for (const name of ['uses', 'crashes', 'burst-0']) await c.gone(name);
  await c.daemon.end('SIGTERM');
  const files = readdirSync(dir).sort();
  expect(files).toHaveLength(2);
  for (const file of files) {
    const { header, next, more } = await openInputs(join(dir, file));
    const result = await replayed(header, next, more);
    expect({ file, ...result }).toMatchObject({ divergence: null, failure: null });
    expect(result.inputs).toBeGreaterThan(500);
  }
  const text = zstdDecompressSync(readFileSync(join(dir, files[1] ?? ''))).toString();
  for (const secret of [PLANTED.secret, PLANTED.env, PLANTED.binary, btoa(PLANTED.secret)]) expect(text).not.toContain(secret);
  expect(text).not.toMatch(/eyJhbGciOi|PRIVATE KEY-----\\n(?!.*fake)M/);
});
