/** Which bundles of deaths go, how large one is, what is hidden in it, and hostile text on its page. */

import { queued, surplus } from '@actorlet/deaths/src/keeping.ts';
import type { Death, DeathHead } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';
import { describe, expect, it } from 'vitest';
import { bundleOf, bundleText, type DeathFacts, readBundle } from '../src/deaths/bundle.ts';
import { deathHtml } from '../src/deaths/html.ts';
import { logTail } from '../src/deaths/logTail.ts';
import { redacted } from '../src/deaths/redact.ts';
import { deathLines } from '../src/deaths/text.ts';

const death = (uid: string, n: number, more: Partial<Death> = {}): Death => ({
  ...{ kind: 'exit', pod: { uid, name: uid, namespace: 'default' }, owner: '', container: 'main', init: false, atMs: n * 60_000 },
  ...{ key: `${uid} ${n}`, reason: '', message: '', restartCount: n, image: 'app:1', ...more },
});
const head = (uid: string, n: number, owner = ''): DeathHead => {
  const { kind, pod, container, atMs, key } = death(uid, n);
  return { id: `${uid}-${n}`, kind, pod, owner, container, atMs, key, title: '', nth: n };
};
const facts = (more: Partial<DeathFacts> = {}): DeathFacts => ({
  ...{ death: death('web', 1), id: '20260101-000000-aaaaaa', nth: 1, nowMs: 61_000, limits: {}, stopSaid: '', why: [], causes: [] },
  ...{ history: { steps: [], calls: [], containers: [], left: 0 }, worker: 'node/pods/workers/web', probes: [], usage: [], group: null },
  ...{ kernel: [], log: { lines: [], note: '' }, events: [], graceSeconds: 30, nextStartAtMs: null },
  node: { name: 'n1', version: '', runtime: '', kernel: '', pressures: [], conditions: [], memory: null, startedAtMs: 0 },
  ...{ replay: { recording: '', inputs: '' }, hidden: (text: string) => text, said: (text: string) => text, image: (text: string) => text },
  ...more,
});

describe('of many bundles', () => {
  it('those in the middle of a loop go first, then those of who has the most, and a lonely one stays', () => {
    const loop = [1, 2, 3, 4, 5].map((n) => head('loop', n));
    expect(surplus(loop, 50).map(({ id }) => id)).toEqual(['loop-2', 'loop-3']);
    const replicas = Array.from({ length: 20 }, (_, i) => head(`replica${i}`, i + 2, 'ReplicaSet/many'));
    const gone = surplus([head('lonely', 1), ...replicas], 10).map(({ id }) => id);
    expect(gone).toHaveLength(11);
    expect(gone).not.toContain('lonely-1');
    expect(gone).not.toContain('replica0-2');
    expect(gone).not.toContain('replica19-21');
  });

  it('one of each loop waits, no more than there is room for, and the same is not kept twice', () => {
    const many = Array.from({ length: 5_000 }, (_, i) => death(`pod${i}`, 1));
    const queue = queued({ waiting: [], left: 0 }, many, []);
    expect([queue.waiting.length, queue.left]).toEqual([200, 4_800]);
    expect(queued({ waiting: [], left: 0 }, [death('a', 1), death('a', 2)], [])).toMatchObject({ waiting: [{ restartCount: 2 }], left: 1 });
    expect(queued({ waiting: [], left: 0 }, [death('a', 1)], [head('a', 1)]).waiting).toEqual([]);
  });
});

it('a bundle is never larger than it may be, whatever is in it, and can be read back', () => {
  const text = 'ü"\\\u0000'.repeat(3_000);
  const lines = Array.from({ length: 200 }, () => ({ at: '', stream: 'stdout', text: 'x'.repeat(2_000) }));
  const events = Array.from({ length: 100 }, () => ({ atMs: 1, type: 'Warning' as const, reason: 'R', message: text, count: 1 }));
  const large = bundleOf(facts({ log: { lines, note: '' }, events, why: Array.from({ length: 500 }, () => text), kernel: [text, text] }));
  for (const bytesMax of [16 * 1024, 64 * 1024, 256 * 1024]) {
    const file = bundleText(large, bytesMax) ?? '';
    expect(new TextEncoder().encode(file).length).toBeLessThanOrEqual(bytesMax);
    expect(readBundle(file)?.head).toEqual(large.head);
  }
  for (const file of ['', '\n', '{}\n{}\n', '{}\n{"format":1,"head":{}}\n', 'null\nnull\n', '[]\n{"format":2}\n'])
    expect(readBundle(file)).toBeNull();
});

it('a start that failed is told in the words of the lowest layer', () => {
  const wrapped = 'failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed';
  const message = `${wrapped}: unable to start container process: error during container init: exec: "/bin/x": no such file or directory`;
  const { head } = bundleOf(facts({ death: death('web', 1, { kind: 'start', reason: 'RunContainerError', message }) }));
  expect(head.title).toBe('could not be started: RunContainerError: exec: "/bin/x": no such file or directory');
});

it('its page and its text obey nothing that a pod, a runtime or a log says', () => {
  const evil = '</pre><script>alert(1)</script><img src=x onerror="a()">\u202egnp.exe\u001b[2J\' & \u0007';
  const pod = { uid: evil, name: evil, namespace: evil };
  const b = bundleOf(
    facts({
      death: death('web', 1, { pod, container: evil, message: evil, reason: evil, image: evil, kind: 'start' }),
      log: { lines: [{ at: '', stream: 'stdout', text: evil }], note: evil },
      events: [{ atMs: 60_000, type: 'Warning', reason: evil, message: evil, count: 2 }],
      history: {
        steps: [{ atMs: 59_000, from: '', to: evil, event: evil, reason: evil }],
        calls: [{ method: evil as 'Version', about: evil, startMs: 1, endMs: null, error: evil }],
        containers: [{ name: evil, init: false, state: evil, reason: evil, restartCount: 0, lastExit: evil, fromMs: 1 }],
        left: 0,
      },
      why: [evil],
    }),
  );
  const page = deathHtml(b);
  expect(page).not.toMatch(/<script|<img|onerror="/);
  expect(page.replaceAll('\n', '')).not.toMatch(/\p{Cc}|[\u202a-\u202e\u2066-\u2069]/u);
  expect([...page.matchAll(/<(\w+)/g)].map(([, tag]) => tag).filter((tag) => ['script', 'img', 'iframe', 'a'].includes(tag ?? ''))).toEqual(
    [],
  );
  expect(page).toContain("default-src 'none'");
  for (const line of deathLines(b)) expect(line).not.toMatch(/\p{Cc}|[\u202a-\u202e\u2066-\u2069]/u);
});

it.each([
  ['password=hunter2 next', 'password=<masked> next'],
  ['{"dbPassword": "hun ter2", "port": 1}', '{"dbPassword": "<masked>", "port": 1}'],
  ['--api-token hunter2 --v 4', '--api-token <masked> --v 4'],
  ['Authorization: Bearer hunter2hunter2', 'Authorization: <masked>'],
  ['used Basic aHVudGVyMjp4 there', 'used Basic <masked> there'],
  ['X-Auth-Token: hunter2', 'X-Auth-Token: <masked>'],
  ['a\n-----BEGIN EC PRIVATE KEY-----\nhunter2\n-----END EC PRIVATE KEY-----\nb', 'a\n<masked>\nb'],
  ['hunter2\n-----END EC PRIVATE KEY-----\nb', '<masked>\nb'],
  ['aws AKIAABCDEFGHIJKLMNOP', 'aws <masked>'],
  ['3 tokens left, no secret here', '3 tokens left, no secret here'],
])('what looks like a secret is hidden: %s', (text, shown) => {
  expect(redacted(text)).toBe(shown);
});

it('a log is hidden before it is cut, its pieces are joined, and half a line at its beginning is left out', () => {
  const stamp = '2026-01-01T00:00:01.000000000Z stdout';
  const log = `half a secret\n${stamp} P one \n${stamp} F line\nno log line\n${stamp} F ${'x'.repeat(1_990)}hunter2-hunter2\n`.replace(
    'one \n',
    'one \n',
  );
  const hidden = (text: string) => text.replaceAll('hunter2-hunter2', '<masked>');
  const { lines, note } = logTail(new TextEncoder().encode(log), { whole: false, linesMax: 10, hidden });
  expect(lines.map(({ text }) => text.slice(0, 20))).toEqual(['one line', 'x'.repeat(20)]);
  expect(JSON.stringify(lines)).not.toContain('hunter');
  expect(note).toBe('the last 2 lines');
  expect(logTail(new TextEncoder().encode('x'.repeat(100)), { whole: false, linesMax: 10, hidden }).note).toContain('longer than');
});
