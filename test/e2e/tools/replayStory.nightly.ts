/**
 * The story of docs/replay.md in short: a node on a real containerd is recorded through injected faults and a `kill -9`. Another
 * checkout lives through it again, finds a planted bug, keeps it as a test that fails, and passes once the bug is mended.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Checkout } from '../../../packages/replay/test/checkout.ts';
import { buildDaemon, createDaemon, type Daemon } from '../daemon.ts';
import { type Containerd, startContainerd } from '../lab/containerd.ts';
import { manifest, sh, steady } from '../manifests.ts';

const LONG_MS = 60_000;
const KEPT_BYTES_MAX = 100 * 1024;
const BUG = 'a crashed container does not wait';
const FOUND = 'packages/replay/test/found/backOff';
const SECRET = 'hunter2-planted';
let inputs: string;
let lab: Containerd;
let daemon: Daemon;
let checkout: Checkout;

beforeAll(async () => {
  await buildDaemon();
  inputs = mkdtempSync(join(tmpdir(), 'actorlet-story-'));
  checkout = new Checkout();
  lab = await startContainerd();
  daemon = await createDaemon(lab, {}, ['--actorlet-fault-injection', `--actorlet-record-inputs=${inputs}`]);
});
afterAll(async () => {
  await daemon?.dispose();
  checkout?.[Symbol.dispose]();
  rmSync(inputs, { recursive: true, force: true });
  expect(await lab?.stop()).toEqual([]);
});

async function incident(): Promise<void> {
  await daemon.start();
  daemon.put('web.yaml', manifest('web', [steady('main', { env: [{ name: 'PASSWORD', value: SECRET }] })]));
  daemon.put('flaky.yaml', manifest('flaky', [sh('main', 'exit 3')]));
  await daemon.phase('web', 'Running', LONG_MS);
  await daemon.ctl('inject', 'cri', '--error', 'Unavailable', '--probability', '0.3', '--for', '2s');
  const restarts = (least: number) =>
    daemon.podWhere('flaky', `flaky to restart`, (p) => (p.status.containerStatuses?.[0]?.restartCount ?? 0) >= least, LONG_MS);
  // The first restart waits for nothing. Before the second it waited 10 s, which the kill cannot take out of the recording.
  await restarts(2);
  await daemon.end('SIGKILL');
  await daemon.start();
  daemon.put('late.yaml', manifest('late', [steady()]));
  await daemon.phase('late', 'Running', LONG_MS);
  await daemon.end('SIGTERM');
}

const textOf = (file: string): string => zstdDecompressSync(readFileSync(file)).toString();

it('an incident happens again, its bug is found, kept as a test, and mended', { timeout: 300_000 }, async () => {
  await incident();
  const files = readdirSync(inputs).sort();
  expect(files).toHaveLength(2);
  const [first = ''] = files.map((name) => join(inputs, name));

  const again = checkout.ctl('replay', inputs);
  expect(again).toMatchObject({ code: 0, out: expect.stringContaining('its daemon was killed') });
  expect(again.out.match(/No divergence/g)).toHaveLength(2);

  checkout.plant(BUG, true);
  const found = checkout.ctl('replay', first);
  expect(found).toMatchObject({ code: 1, out: expect.stringMatching(/DIVERGENCE.*then: a timer of \d+/s) });
  const kept = checkout.ctl('replay', first, '--to-test', `${FOUND}.test.ts`, '--runs', '20');
  expect(kept).toMatchObject({ code: 0, out: expect.stringContaining(' pods (') });
  expect(checkout.passes(`${FOUND}.test.ts`)).toBe(false);
  checkout.plant(BUG, false);
  expect(checkout.passes(`${FOUND}.test.ts`)).toBe(true);

  const small = join(checkout.dir, 'small.inputs.zst');
  const minimized = checkout.ctl('replay', first, '--minimize', '--pod', 'default/flaky-e2e', '--out', small, '--runs', '20');
  expect(minimized).toMatchObject({ code: 0, out: expect.stringContaining('the pod ends the same') });
  expect(checkout.ctl('replay', small)).toMatchObject({ code: 0, out: expect.stringContaining('No divergence') });
  for (const file of [small, join(checkout.dir, `${FOUND}.inputs.zst`)]) {
    expect(statSync(file).size).toBeLessThan(KEPT_BYTES_MAX);
    expect(textOf(file)).not.toMatch(/hunter2|flaky-e2e|docker\.io\/library\/busybox/);
  }

  const without = checkout.ctl('replay', first, '--drop', 'pod=default/web-e2e');
  expect(without.out).toMatch(
    /FIRST DIFFERENCE.*default\/web-e2e: DIFFERS.*\n +recorded: .*Running.*\n +unchanged: .*Running.*\n +changed: +gone/s,
  );
  expect(without).toMatchObject({ code: 0 });
});
