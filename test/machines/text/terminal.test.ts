/** Text of others on its way to a terminal. */
import { textOf } from '@actorlet/check/src/findings.ts';
import { paint } from '@actorlet/ctl/src/render.ts';
import { expect, it } from 'vitest';
import { oneLine, onTerminal } from '../../../src/machines/text/oneLine.ts';
import { printable, renderTable } from '../../../src/machines/text/table.ts';

const EVIL = [
  ...['\u0000', '\u0007', '\u0008', '\u000b', '\u001b]0;title\u0007', '\u001b[6n', '\u007f', '\u009b31m', '\u0085'],
  ...['\u00ad', '\u180e', '\u200b', '\u2060', '\ufeff', '\ufff9', '\ufffb'],
  ...['\u061c', '\u200e', '\u200f', '\u2028', '\u2029', '\u202a', '\u202b', '\u202c', '\u202d', '\u202e'],
  ...['\u2066', '\u2067', '\u2068', '\u2069', '\u206a', '\u206f', '\u{e0001}', '\u{e0041}', '\u{e007f}', 'old\rnew'],
];
const SHOWN = /^[\t\n\r\u0020-\u007e]*$/;

it.each(EVIL.map((evil) => [JSON.stringify(evil).replaceAll(/[^\x20-\x7e]/g, (c) => `\\u${c.charCodeAt(0).toString(16)}`), evil]))(
  '%s is written out in a line, in a table, in a check and in anything else',
  (_, evil) => {
    const text = `a${evil}b`;
    const finding = { level: 'note' as const, where: text, what: text, todo: text };
    const shown = [oneLine(text), printable(text), renderTable(['HEAD'], [[text]]).join('\n'), onTerminal(text), textOf([finding])].join(
      '\n',
    );
    expect(shown).toMatch(SHOWN);
    expect(shown).not.toContain('\r');
  },
);

it('leaves letters of all people, and what programs of ours say to a terminal, as they are', () => {
  const words = ['Grüße', 'שלום', 'سلام', '日本語', '👩‍👩‍👧', 'a\tb\nc\r\n', '\r\u001b[K', '\u001b[H\u001b[2Jx', `\r[##..] 2/4\u001b[K`];
  for (const text of [...words, '\u001b[1;32mok\u001b[0m', paint('failed', 'failed', true)]) expect(onTerminal(text)).toBe(text);
  expect(JSON.parse(onTerminal(JSON.stringify({ a: '\u202e\u009b' })))).toEqual({ a: '\u202e\u009b' });
});
