/** Documents that are decoded in a thread of their own: what comes of them, what ends it, and what is left of it. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { CHEAP_YAML_BYTES_MAX, isCheap } from '../../../src/actors/pods/sources/document.ts';
import { createEntropy } from '../../../src/boot/dependencies/clock.ts';
import { createDocuments, type DocumentsOptions } from '../../../src/boot/dependencies/documents/documents.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const SOURCE = { source: 'file', where: '/m/web.yaml', nodeName: 'n1', preventApiReferences: false } as const;
const pod = (name: string, more = '') =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\nspec: {containers: [{name: c, image: i}]}\n${more}`;
/** Not cheap: it has an anchor. */
const rare = (name: string) => bytes(pod(name, 'status: &a {}\n'));
/** Takes seconds and hundreds of MiB: a megabyte of small values. */
const large = () => bytes(pod('large', `status: [${'a,'.repeat(700_000)}]\n`));

function open(o: Partial<DocumentsOptions> = {}) {
  const documents = createDocuments({ entropy: createEntropy(), ...o });
  onTestFinished(() => documents[Symbol.dispose]());
  return documents;
}
const it = test.extend('documents', () => open());
const threads = () => process.getActiveResourcesInfo().filter((r) => r === 'MessagePort').length;

describe('documents', () => {
  it('in the thread come to the same pods as on the spot', async ({ documents }) => {
    const here = await documents.decode(bytes(pod('web')), SOURCE);
    const there = await documents.decode(rare('web'), SOURCE);
    expect(here).toMatchObject({ ok: true, pods: [{ metadata: { name: 'web-n1' } }] });
    expect(there).toMatchObject({ ok: true, pods: [{ metadata: { name: 'web-n1' } }] });
    expect(here).toEqual(await open().decode(bytes(pod('web', `# ${'x'.repeat(CHEAP_YAML_BYTES_MAX)}\n`)), SOURCE));
  });

  it('that are cheap and many leave the main thread to others in between', async ({ documents }) => {
    let turns = 0;
    let over = false;
    const count = (): void => {
      turns += 1;
      if (!over) setImmediate(count);
    };
    setImmediate(count);
    const all = await Promise.all(Array.from({ length: 2_000 }, (_, i) => documents.decode(bytes(pod(`many-${i}`)), SOURCE)));
    over = true;
    expect(all.filter((d) => d.ok)).toHaveLength(2_000);
    // Each takes 0.2 ms and more, and a turn 5 ms.
    expect(turns).toBeGreaterThan(3);
    expect(threads()).toBe(0);
  });

  it.each([
    [{ timeoutMs: 500 }, 'takes longer than 500 ms to decode'],
    [{ memoryMiB: 48 }, 'takes more than 48 MiB of memory to decode'],
  ])('beyond %j are refused by what they exceeded, and the others are decoded', async (bounds, error) => {
    const documents = open(bounds);
    const all = await Promise.all([
      documents.decode(rare('a'), SOURCE),
      documents.decode(large(), SOURCE),
      documents.decode(rare('b'), SOURCE),
    ]);
    expect(all).toEqual([
      expect.objectContaining({ ok: true }),
      { ok: false, errors: [error], holds: '*' },
      expect.objectContaining({ ok: true }),
    ]);
  });

  it('are given to the thread ahead: between two of them it does not wait for the main thread', async ({ documents }) => {
    await documents.decode(rare('first'), SOURCE);
    const turns = { between: 0 };
    const all = Promise.all(Array.from({ length: 20 }, (_, i) => documents.decode(rare(`p${i}`), SOURCE).then(() => turns.between)));
    // Every turn of the loop takes long.
    const busy = setInterval(() => {
      turns.between += 1;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
    }, 0);
    const seen = await all;
    clearInterval(busy);
    expect(Math.max(...seen)).toBeLessThan(10);
  });

  it('leave no thread behind once there was nothing to do for a while', async () => {
    const documents = open({ idleMs: 20 });
    const before = threads();
    await documents.decode(rare('a'), SOURCE);
    await expect.poll(threads).toBe(before);
    expect(await documents.decode(rare('b'), SOURCE)).toMatchObject({ ok: true });
  });

  it('are rejected where the port is closed', async ({ documents }) => {
    const waiting = documents.decode(rare('a'), SOURCE);
    documents[Symbol.dispose]();
    await expect(waiting).rejects.toThrow('has ended');
    await expect(documents.decode(rare('a'), SOURCE)).rejects.toThrow('has ended');
  });
});

describe('what is decoded on the main thread', () => {
  it.each([
    ['a small manifest', pod('web', 'status: {}\n'), true],
    ['with a shell command', pod('web', "x: [sh, -c, 'a && b *.txt']\n"), true],
    ['with an anchor', 'a: &x 1', false],
    ['with an alias', 'a: [*x]', false],
    ['with a tag', '- !!binary x', false],
    ['with a key that is no text', '? [a]\n: b', false],
    ['with a directive', '%YAML 1.1\n---\na: b', false],
    ['deep in brackets', `${'['.repeat(17)}`, false],
    ['far to the right', `${' '.repeat(65)}a: b`, false],
    ['long YAML', `a: ${'b'.repeat(CHEAP_YAML_BYTES_MAX)}`, false],
    ['JSON of the same length', `{"a": "${'b'.repeat(CHEAP_YAML_BYTES_MAX)}"}`, true],
    ['long text that begins like JSON', `{"a": "${'b'.repeat(CHEAP_YAML_BYTES_MAX)}"`, false],
    ['longer JSON', `{"a": "${'b'.repeat(65_536)}"}`, false],
  ])('%s: %#', (_, text, cheap) => expect(isCheap(bytes(text))).toBe(cheap));
});
