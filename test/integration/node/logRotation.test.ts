/** Logs that have grown too large: what is made of them, and what is done when the runtime does not go along. A whole node in virtual time. */
import { describe, expect } from 'vitest';
import type { KubeletConfiguration } from '../../../src/machines/config/config.ts';
import { itWith } from '../onNode.ts';
import { pod, type VirtualNode, virtualNode } from '../virtualNode.ts';

const LOGS = '/var/log/actorlet/pods';
const LARGE = 'x'.repeat(1024);
const EVERY_MS = 10_000;

const dirOf = (h: VirtualNode, name: string) => `${LOGS}/default_${name}-n1_${h.uid(name)}/main`;
const logOf = (h: VirtualNode, name: string) => `${dirOf(h, name)}/0.log`;
const files = (h: VirtualNode, name: string) =>
  h.fs
    .below(dirOf(h, name))
    .map((path) => path.slice(dirOf(h, name).length + 1))
    .sort();
const reopened = (h: VirtualNode) => h.calls.filter((c) => c.method === 'ReopenContainerLog').length;

/** A runtime that writes logs: one is there from the start, and made anew when it is asked to. */
async function start(
  o: { config?: Partial<KubeletConfiguration>; names?: readonly string[]; writes?: boolean } = {},
): Promise<VirtualNode> {
  const h = await virtualNode({ config: { containerLogMaxSize: '1Ki', containerLogMaxFiles: 5, ...o.config } });
  const names = o.names ?? ['web'];
  for (const name of names) h.write(name, pod(name));
  await h.until('they run', () => names.every((name) => h.phase(name) === 'Running'));
  h.faults.answer = (method, value) => {
    if (method === 'ReopenContainerLog' && o.writes !== false)
      for (const name of names) if (!h.fs.has(logOf(h, name))) h.fs.put(logOf(h, name), '');
    return value;
  };
  if (o.writes !== false) for (const name of names) h.fs.put(logOf(h, name), 'short');
  return h;
}
const it = itWith(start);
async function grow(h: VirtualNode, name: string, text: string): Promise<void> {
  h.fs.put(logOf(h, name), text);
  const before = files(h, name).join();
  await h.until('it is rotated', () => files(h, name).join() !== before && h.fs.textOf(logOf(h, name)) === '');
}

describe('a log that has grown too large', () => {
  it('resources trap 37: the newest rotated one is not compressed, the others are, and there are as many as may be in all', async ({
    h,
  }) => {
    await h.advance(2 * EVERY_MS);
    expect(files(h, 'web')).toEqual(['0.log']);
    for (let i = 1; i <= 6; i++) await grow(h, 'web', `${i} ${LARGE}`);
    const there = files(h, 'web');
    expect(there).toHaveLength(5);
    expect(there[0]).toBe('0.log');
    expect(there.slice(1, 4).every((name) => /^0\.log\.\d{8}-\d{6}\.gz$/.test(name))).toBe(true);
    expect(there[4]).toMatch(/^0\.log\.\d{8}-\d{6}$/);
    // In their order: the sixth as it was, the three before it compressed.
    expect(there.slice(1).map((name) => h.fs.textOf(`${dirOf(h, 'web')}/${name}`)?.replace(/ x+$/, ''))).toEqual([
      'compressed 3',
      'compressed 4',
      'compressed 5',
      '6',
    ]);
  });

  it('of as many bytes as may be is too large, and of one less is not', async () => {
    await using h = await start({ names: ['web', 'db'] });
    h.fs.put(logOf(h, 'web'), 'x'.repeat(1023));
    h.fs.put(logOf(h, 'db'), 'x'.repeat(1024));
    await h.until('the larger one is rotated', () => files(h, 'db').length === 2);
    await h.advance(2 * EVERY_MS);
    expect(files(h, 'web')).toEqual(['0.log']);
  });

  it('is rotated with two files in all by dropping the one before', async () => {
    await using h = await start({ config: { containerLogMaxFiles: 2 } });
    for (let i = 1; i <= 3; i++) await grow(h, 'web', `${i} ${LARGE}`);
    expect(files(h, 'web')).toHaveLength(2);
    expect(h.fs.textOf(`${dirOf(h, 'web')}/${files(h, 'web')[1]}`)).toMatch(/^3 x/);
  });

  it('clears away what an interrupted compression left', async ({ h }) => {
    const dir = dirOf(h, 'web');
    for (const name of ['0.log.20240101-000000', '0.log.20240101-000000.gz', '0.log.20240102-000000', '0.log.20240102-000000.tmp'])
      h.fs.put(`${dir}/${name}`, name);
    await grow(h, 'web', LARGE);
    expect(files(h, 'web')).toMatchObject([
      '0.log',
      '0.log.20240101-000000.gz',
      '0.log.20240102-000000.gz',
      expect.stringMatching(/^0\.log\.\d{8}-\d{6}$/),
    ]);
    expect(h.fs.textOf(`${dir}/0.log.20240101-000000.gz`)).toBe('0.log.20240101-000000.gz');
    expect(h.fs.textOf(`${dir}/0.log.20240102-000000.gz`)).toBe('compressed 0.log.20240102-000000');
  });

  it('stays where no size is set', async () => {
    await using h = await start({ config: { containerLogMaxSize: '-1' } });
    h.fs.put(logOf(h, 'web'), LARGE);
    await h.advance(3 * EVERY_MS);
    expect(files(h, 'web')).toEqual(['0.log']);
    expect(h.actor('node/reclaim/logRotation')).toBeUndefined();
  });
});

describe('a runtime that does not open a log anew', () => {
  it('resources trap 38: leaves it its name and content; that is said once, others are rotated, and so is it when the runtime can', async () => {
    await using h = await start({ names: ['web', 'db'] });
    const [refused] = h.containers('web');
    h.faults.fault = (m, req) =>
      m === 'ReopenContainerLog' && (req as { containerId: string }).containerId === refused?.id
        ? { kind: 'refuse', code: 13, details: 'cannot reopen' }
        : undefined;
    for (const name of ['web', 'db']) h.fs.put(logOf(h, name), `${name} ${LARGE}`);
    await h.until('the other is rotated', () => files(h, 'db').length === 2);
    await h.advance(3 * EVERY_MS);
    expect(files(h, 'web')).toEqual(['0.log']);
    expect(h.fs.textOf(logOf(h, 'web'))).toBe(`web ${LARGE}`);
    const said = h.lines.filter((l) => l.level === 'warn' && l.msg.startsWith('a log cannot be rotated'));
    expect(said).toHaveLength(1);
    expect(said[0]?.fields).toMatchObject({ pod: 'default/web-n1', container: 'main', file: logOf(h, 'web') });
    h.faults.fault = () => undefined;
    await h.until('it is rotated', () => files(h, 'web').length === 2);
  });

  it('keeps the new log where the runtime opened it and did not say so', async ({ h }) => {
    let lost = 0;
    h.faults.fault = (m) => {
      if (m !== 'ReopenContainerLog' || lost++ > 0) return undefined;
      h.fs.put(logOf(h, 'web'), 'written since');
      return { kind: 'timeout', effect: true };
    };
    h.fs.put(logOf(h, 'web'), LARGE);
    await h.until('it was asked', () => lost > 0);
    await h.advance(2 * EVERY_MS);
    expect(h.fs.textOf(logOf(h, 'web'))).toBe('written since');
    expect(files(h, 'web')).toHaveLength(2);
  });

  it('writes into no file that loses its name, when it opens it after it was asked in vain (seed 3600794)', async ({ h }) => {
    let asked = 0;
    h.faults.fault = (m) => (m === 'ReopenContainerLog' && asked++ === 0 ? { kind: 'timeout', effect: false } : undefined);
    // It may open the log in the very moment in which its name is put back.
    const { rename } = h.fs;
    const overwritten: string[] = [];
    h.fs.rename = (from, to) => {
      if (to === logOf(h, 'web')) overwritten.push(from);
      return rename.call(h.fs, from, to);
    };
    h.fs.put(logOf(h, 'web'), LARGE);
    await h.until('it is asked again', () => asked === 2);
    await h.until('there is a new one', () => h.fs.textOf(logOf(h, 'web')) === '');
    expect(overwritten).toEqual([]);
    expect(files(h, 'web')).toHaveLength(2);
  });

  it('is asked again by the next daemon for a log that lost its name', async ({ h }) => {
    h.fs.drop(logOf(h, 'web'));
    h.fs.put(`${dirOf(h, 'web')}/0.log.20240101-000000`, LARGE);
    await h.until('there is a new one', () => h.fs.textOf(logOf(h, 'web')) === '');
    expect(reopened(h)).toBe(1);
  });

  it('and writes none at all is asked once', async () => {
    await using h = await start({ writes: false });
    await h.advance(10 * EVERY_MS);
    expect(reopened(h)).toBe(1);
  });
});

it('a stop is held up by no reopening that is not answered', async ({ h }) => {
  h.faults.latencyMs.ReopenContainerLog = 600_000;
  h.fs.put(logOf(h, 'web'), LARGE);
  await h.until('it is being reopened', () => files(h, 'web').length === 1 && files(h, 'web')[0] !== '0.log');
  h.remove('web');
  await h.until('the pod is gone', () => h.containers('web').every((c) => c.state !== 'CONTAINER_RUNNING'), 5_000);
});
