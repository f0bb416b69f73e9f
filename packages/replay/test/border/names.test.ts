/** Names that are words of a recording's own format, or of a test's. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { testText } from '@actorlet/ctl/src/commands/replay/keep.ts';
import { expect, it } from 'vitest';
import type { Entry } from '../../src/entries.ts';
import { standIns } from '../../src/keep/names.ts';
import { renamedEntry } from '../../src/keep/renamed.ts';
import { Edit } from '../../src/lenient/edit.ts';

const ROOT = join(import.meta.dirname, '../../../..');
/** Of pods, each with an image of this name. */
const WORDS = ['x', 'f', 'B', 'call', 'get', 'stop', 'later', 'running', 'CriError', 'settled', 'web'];
const pods = WORDS.map((name) => ({ uid: `u-${name}`, name, namespace: 'default', spec: { containers: [{ name, image: name }] } }));
const edit = new Edit({ names: standIns({ pods, node: ['value'], texts: [], containers: true }) });

it.each<[Entry]>([
  [['settled', 1, 2, { $: 'x', v: '' }]],
  [['called', 1, 2, [{ $: 'f', v: 3, n: 'call' }, { $: 'B', v: 4 }, { 'get running': { $: 'f', v: 5, n: 'running' } }]]],
  [['failed', 1, 2, { $: 'e', c: 'CriError', n: 'CriError', m: 'no such image', p: {} }]],
  [['told', 1, 'stop']],
  [['ask', 'call', 'f', 'later', '']],
  [['ask', 'cri.call', '=', { value: null }, '']],
  [['step', 'node/foundation', 'running', 'stop', 'stop', '']],
])('%j stays, whatever a pod and its image are called', (entry) => {
  expect(renamedEntry(entry as Exclude<Entry, readonly ['body', string]>, edit)).toEqual(entry);
});

it('the names themselves are replaced beside them', () => {
  const [, , , value] = renamedEntry(['settled', 1, 2, { $: 'x', v: '{"name":"web","image":"docker.io/library/call:1"}' }], edit);
  expect(JSON.stringify(value)).not.toMatch(/web|call/);
  expect(value).toMatchObject({ $: 'x' });
});

it.each([["the pod's end"], ['a pod "web" that runs'], [`both ' and "`], [`${'long '.repeat(60)}\\ "`], ['plain']])(
  'a test that is written about %j is formatted like the others',
  (end) => {
    const text = testText(
      { recording: '/w/packages/replay/test/found/backOff.inputs.zst', support: '../regression.ts' },
      { divergence: null, end },
    );
    const argv = [
      join(ROOT, 'node_modules/@biomejs/biome/bin/biome'),
      'format',
      '--stdin-file-path=packages/replay/test/found/backOff.test.ts',
    ];
    expect(spawnSync(process.execPath, argv, { cwd: ROOT, input: text, encoding: 'utf8' }).stdout).toBe(text);
  },
);
