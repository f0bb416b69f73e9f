/** Pods and files over which the real daemon died: set aside at its next start, on a real containerd, beside a pod that must not notice. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { NOTE, noteFile } from '../../../src/boot/process/handling.ts';
import { buildDaemon, createDaemon, type Daemon } from '../daemon.ts';
import { type Containerd, startContainerd } from '../lab/containerd.ts';
import { manifest, steady } from '../manifests.ts';
import { running } from '../runtime.ts';

let lab: Containerd;
let daemon: Daemon;

beforeAll(async () => {
  await buildDaemon();
  lab = await startContainerd();
  daemon = await createDaemon(lab, {});
});
afterAll(async () => {
  await daemon?.dispose();
  expect(await lab?.stop()).toEqual([]);
});

/** Kills the daemon as the kernel would for want of memory, in the middle of handling `subject`. */
async function dieOver(subject: string): Promise<void> {
  await daemon.end('SIGKILL');
  const note = readFileSync(noteFile(daemon.rootDir));
  expect(note.length).toBe(NOTE.bytes);
  note[NOTE.busy] = 1;
  note.writeUInt32LE(note.write(subject, NOTE.text), NOTE.length);
  writeFileSync(noteFile(daemon.rootDir), note);
  await daemon.start();
}

it('a pod: why tells, its containers end, the others run on, and another definition runs', async () => {
  await daemon.start();
  daemon.put('good.yaml', manifest('good', [steady()]));
  daemon.put('bad.yaml', manifest('bad', [steady('main', { args: ['one'] })], { uid: 'uid-bad' }));
  await daemon.phase('good', 'Running');
  await daemon.phase('bad', 'Running');
  const good = (await running(lab))['good/main'];
  await dieOver('pod uid-bad');
  await daemon.phase('bad', 'Running');
  await dieOver('pod uid-bad');
  await daemon.phase('bad', 'Failed');
  const why = (await daemon.why('bad')).lines.join('\n');
  expect(why).toContain('SetAside');
  expect(why).toMatch(/the daemon died 2 times while it handled this, last at .*suspects\/[0-9a-f]{16}\.json is removed/);
  await daemon.wait('its container to end', async () => (await running(lab))['bad/main'] === undefined);
  daemon.put('bad.yaml', manifest('bad', [steady('main', { args: ['two'] })], { uid: 'uid-bad' }));
  await daemon.phase('bad', 'Running');
  expect((await running(lab))['good/main']).toBe(good);
});

it('a file: it is not decoded until it changes, or the file that why names is removed', async () => {
  const path = join(daemon.manifests, 'file.yaml');
  const text = JSON.stringify(manifest('file', [steady()]));
  const digest = createHash('md5').update(text).digest('hex');
  daemon.put('file.yaml', text);
  await daemon.phase('file', 'Running');
  await dieOver(`file ${path} ${digest}`);
  await dieOver(`file ${path} ${digest}`);
  const why = await daemon.wait('why tells', async () => {
    const lines = (await daemon.why('file.yaml')).lines.join('\n');
    return lines.includes('set aside: the daemon died 2 times') && lines;
  });
  expect(why).toContain('suspects');
  const suspects = join(daemon.rootDir, 'actorlet', 'suspects');
  for (const name of readdirSync(suspects)) rmSync(join(suspects, name));
  await daemon.end('SIGTERM');
  await daemon.start();
  await daemon.phase('file', 'Running');
});
