/** Checkpoints: written so that a crash at any moment leaves the old document or the new one, never half of one. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { checkpointSpec } from '../../src/actors/foundation/checkpoint.ts';
import { encodeCheckpoint } from '../../src/machines/foundation/checkpoint.ts';
import { ALLOCATED, type CheckpointEvent } from '../../src/machines/foundation/messages.ts';
import { fakePorts } from '../supervision/fakePorts.ts';
import { run } from './harness.ts';
import { type MemoryFs, memoryFs } from './memoryFs.ts';

const DIR = '/root/actorlet/state';
const FILE = `${DIR}/evictions.json`;
const sha256Hex = (text: string | Uint8Array) => createHash('sha256').update(text).digest('hex');
function start(fs: MemoryFs = memoryFs()) {
  const ports = fakePorts({ fs, entropy: { bytes: () => new Uint8Array(), md5Hex: () => '', sha256Hex } });
  const actor = run<CheckpointEvent>(checkpointSpec({ rootDir: '/root/' }), ports);
  const put = (value: unknown, name = 'evictions') => actor.send({ type: 'checkpoint.put', name, value });
  const get = (name = 'evictions') => actor.ask((replyTo) => ({ type: 'checkpoint.get', name, replyTo }));
  return { fs, ports, actor, put, get, errors: () => ports.lines.filter((l) => l.level === 'error') };
}
const it = test.extend('t', () => start());
/** What a later process reads, which waits for nothing that one before it began. */
const reread = (fs: MemoryFs, name?: string) => start({ ...fs }).get(name);

describe('a checkpoint', () => {
  it('is written to the side, synced, renamed, and its directory synced, at first with those above it', async ({ t }) => {
    t.put({ uid: 1 });
    await t.ports.settle();
    expect(t.fs.calls).toEqual([
      `mkdirp ${DIR}`,
      'fsyncDir /root/actorlet',
      'fsyncDir /root',
      `write ${DIR}/.evictions.json.tmp fsync`,
      `rename ${DIR}/.evictions.json.tmp ${FILE}`,
      `fsyncDir ${DIR}`,
    ]);
    t.fs.calls.length = 0;
    t.put({ uid: 1 });
    await t.ports.settle();
    expect(t.fs.calls.filter((c) => c.startsWith('fsyncDir'))).toEqual([`fsyncDir ${DIR}`]);
    expect(await reread(t.fs)).toEqual({ kind: 'reply', value: { found: true, value: { uid: 1 } } });
  });
  it('of the kubelet is where the kubelet looks for it, with its checksum', async ({ t }) => {
    t.put({ entries: { u: {} } }, ALLOCATED);
    await t.ports.settle();
    const file = t.fs.files.get(`/root/${ALLOCATED}`) ?? '';
    expect(String(file)).toBe('{"data":"{\\"entries\\":{\\"u\\":{}}}","checksum":1106369546}');
    expect(await reread(t.fs, ALLOCATED)).toEqual({ kind: 'reply', value: { found: true, value: { entries: { u: {} } } } });
  });
  it('is not there before anybody wrote it', async () => {
    expect(await start().get()).toEqual({ kind: 'reply', value: { found: false } });
  });
  it('answers with what was put last even while that is not on disk yet', async ({ t }) => {
    t.put('new');
    expect(await t.get()).toEqual({ kind: 'reply', value: { found: true, value: 'new' } });
  });
  it('written many times while a write is on its way costs one more write, with the newest value', async ({ t }) => {
    let open = () => {};
    t.fs.gate = () => new Promise((resolve) => (open = resolve));
    t.put(0);
    await t.ports.settle();
    for (let i = 1; i <= 50; i++) t.put(i);
    t.fs.gate = async () => undefined;
    open();
    await t.ports.settle();
    expect(t.fs.calls.filter((c) => c.startsWith('rename'))).toHaveLength(2);
    expect(await reread(t.fs)).toMatchObject({ value: { value: 50 } });
  });
  it('keeps the old document when the process dies between write and rename', async ({ t }) => {
    t.put('old');
    await t.ports.settle();
    t.fs.gate = (call) => (call.startsWith('rename') ? new Promise(() => {}) : Promise.resolve());
    t.put('new');
    await t.ports.settle();
    t.fs.gate = async () => undefined;
    expect(await reread(t.fs)).toMatchObject({ value: { value: 'old' } });
  });
  it('is not read by the next actor before what a killed one still writes is there', async ({ t }) => {
    let open = () => {};
    t.fs.gate = (call) => (call.startsWith('rename') ? new Promise((resolve) => (open = resolve)) : Promise.resolve());
    t.put('first');
    await t.ports.settle();
    t.fs.gate = async () => undefined;
    const next = start(t.fs);
    const read = next.get();
    await next.ports.settle();
    open();
    expect(await read).toMatchObject({ value: { value: 'first' } });
  });
  it.each([
    ['torn', (s: string) => s.slice(0, s.length / 2), 'corrupt', /not JSON/],
    ['empty', () => '', 'corrupt', /not JSON/],
    ['altered', (s: string) => s.replace('keep', 'kill'), 'corrupt', /checksum/],
    ['of another name', () => encodeCheckpoint('other', 'keep', sha256Hex), 'corrupt', /another name/],
    ['of a later format', (s: string) => s.replace('"format":1', '"format":2'), 'newer', /format 2/],
  ])('that is %s is set aside, logged, and counts as absent', async (_what, damage, kind, why) => {
    const fs = memoryFs();
    fs.files.set(FILE, damage(encodeCheckpoint('evictions', 'keep', sha256Hex)));
    const t = start(fs);
    expect(await t.get()).toEqual({ kind: 'reply', value: { found: false } });
    expect([...fs.files.keys()]).toEqual([expect.stringMatching(new RegExp(`^${FILE}\\.${kind}-\\d+$`))]);
    expect(t.errors()[0]).toMatchObject({
      msg: expect.stringContaining(`checkpoint is ${kind}`),
      fields: { file: FILE, why: expect.stringMatching(why) },
    });
  });
  it('refuses the question, rather than saying absent, when the disk cannot be read', async ({ t }) => {
    t.fs.failNext(/^read/, 'EIO');
    expect(await t.get()).toMatchObject({ kind: 'refused', reason: expect.stringContaining('EIO') });
  });
  it('is tried again with growing waits when the disk is full, and says so', async ({ t }) => {
    t.fs.failNext(/^write/, 'ENOSPC', 2);
    t.put('later');
    await t.ports.settle();
    expect(t.fs.files.has(FILE)).toBe(false);
    await t.ports.advance(999);
    expect(t.errors()).toHaveLength(1);
    await t.ports.advance(1);
    expect(t.errors().map((l) => l.fields.retryMs)).toEqual([1000, 2000]);
    await t.ports.advance(2000);
    expect(await reread(t.fs)).toMatchObject({ value: { value: 'later' } });
  });
  it('is on disk before an orderly stop ends', async ({ t }) => {
    t.put('last words');
    await t.actor.stop();
    expect(await reread(t.fs)).toMatchObject({ value: { value: 'last words' } });
    expect(t.ports.pendingTimers()).toBe(0);
  });
  it('does not hold up a stop when the disk fails, and names what was lost', async ({ t }) => {
    t.fs.failNext(/^write/, 'EROFS', 99);
    t.put('lost');
    await t.actor.stop();
    expect(t.errors().at(-1)).toMatchObject({ fields: { names: ['evictions'] } });
    expect(t.ports.pendingTimers()).toBe(0);
  });
  it('has a name that cannot leave its directory, and a value that is JSON', async ({ t }) => {
    t.put(1, '../../etc/passwd');
    t.put(10n);
    await t.ports.settle();
    expect(t.fs.files.size).toBe(0);
    expect(t.errors().map((l) => l.msg)).toEqual([
      expect.stringContaining('not a valid name'),
      expect.stringContaining('the file keeps the document before it'),
    ]);
    expect(await t.get('../x')).toMatchObject({ kind: 'refused' });
    expect(t.ports.pendingTimers()).toBe(0);
    t.actor.abort();
  });
});
