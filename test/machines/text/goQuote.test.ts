/** Values as Go quotes them; expected texts are what `fmt.Printf("%q")` prints. */
import { describe, expect, it } from 'vitest';
import { fieldValue } from '../../../src/machines/pods/workers/config/env.ts';
import { goQuote } from '../../../src/machines/text/go/goQuote.ts';
import { container, FACTS, pod } from '../pods/fixtures.ts';

describe('a quoted text', () => {
  it.each([
    ['', '""'],
    ['plain <b>&amp;</b>', '"plain <b>&amp;</b>"'],
    ['a "b" \\ c', '"a \\"b\\" \\\\ c"'],
    ['\u0007\b\f\n\r\t\v', '"\\a\\b\\f\\n\\r\\t\\v"'],
    ['\u0000\u001b\u007f', '"\\x00\\x1b\\x7f"'],
    ['grüße, 世界, e\u0301, 🙂', '"grüße, 世界, e\u0301, 🙂"'],
    // Not seen: a space that is none, a zero-width one, the ends of lines and paragraphs, one for private use.
    ['\u00a0\u200b\u2028\u2029\ue000', '"\\u00a0\\u200b\\u2028\\u2029\\ue000"'],
    ['\u{e0001}', '"\\U000e0001"'],
  ])('%j is %s', (text, quoted) => {
    expect(goQuote(text)).toBe(quoted);
  });

  it('is what a pod reads of its annotations', () => {
    const input = {
      pod: pod({}, { metadata: { annotations: { b: '\u001b[1m', a: 'x\ny' } } }),
      container: container('web'),
      podIPs: [],
      facts: FACTS,
    };
    expect(fieldValue('metadata.annotations', input)).toEqual({ ok: true, value: 'a="x\\ny"\nb="\\x1b[1m"' });
  });
});
