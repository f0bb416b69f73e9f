import { afterEach, describe, expect, it } from 'vitest';
import { httpSourceSpec } from '../../../src/actors/pods/sources/http.ts';
import type { Net } from '../../../src/ports/sockets/net.ts';
import { errorsSent, names, type Running, run, sets, until, yaml } from './harness.ts';

type Answer = { status: number; body: string } | Error;
let r: Running | null = null;
afterEach(() => {
  r?.stop();
  r = null;
});

const URL_WITH_SECRET = 'http://user:secret@host/pods?token=x';

/** Answers polls from the list, one each; the last one again and again. */
function start(answers: Answer[]): Running & { asked: Parameters<Net['httpGet']>[] } {
  const asked: Parameters<Net['httpGet']>[] = [];
  const net: Net = {
    httpGet: async (...args) => {
      const answer = answers[Math.min(asked.length, answers.length - 1)];
      asked.push(args);
      if (answer === undefined || answer instanceof Error) throw answer ?? new Error('no answer');
      return { status: answer.status, body: new TextEncoder().encode(answer.body) };
    },
    serveHttp: () => Promise.reject(new Error('not here')),
  };
  r = run(
    httpSourceSpec({
      url: URL_WITH_SECRET,
      headers: { 'X-Key': ['k'] },
      checkFrequencyMs: 20_000,
      nodeName: 'n1',
      preventApiReferences: true,
    }),
    { net },
  );
  return Object.assign(r, { asked });
}
const ok = (body: string): Answer => ({ status: 200, body });
const settled = (s: Running) => !s.state().includes('fetching');
async function polls(s: Running, count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    await until(s, () => settled(s), { ticking: false });
    await s.ports.advance(20_000);
  }
  await until(s, () => settled(s), { ticking: false });
}

describe('the HTTP source', () => {
  it('posts the pods of a document once, with headers, time-out and limit', async () => {
    const s = start([ok(yaml('web'))]);
    await polls(s, 2);
    expect(names(s)).toEqual(['web-n1']);
    expect(sets(s)).toHaveLength(1);
    expect(s.asked).toHaveLength(3);
    expect(s.asked[0]?.[1]).toMatchObject({ headers: { 'X-Key': ['k'] }, timeoutMs: 10_000, bytesMax: 10 * 1024 * 1024 });
  });

  it('takes a PodList in JSON', async () => {
    const item = (name: string) => ({ metadata: { name }, spec: { containers: [{ name: 'c', image: 'i:1' }] } });
    const s = start([ok(JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items: [item('a'), item('b')] }))]);
    await polls(s, 0);
    expect(names(s)).toEqual(['a-n1', 'b-n1']);
  });

  it('does not count as seen while it fails, and says why without secrets', async () => {
    const s = start([new Error('connect ECONNREFUSED')]);
    await polls(s, 0);
    expect(sets(s)).toEqual([]);
    expect(errorsSent(s)[0]?.errors).toEqual([{ where: 'http://host/pods', message: 'connect ECONNREFUSED' }]);
    expect(JSON.stringify([s.ports.lines, s.sent])).not.toContain('secret');
    expect(s.state()).toBe('"failing"');
  });

  it('keeps the pods over failures, statuses and garbage, and takes the next good document', async () => {
    const s = start([ok(yaml('web')), new Error('down'), { status: 503, body: '' }, ok('<html>'), ok(yaml('web2'))]);
    await polls(s, 3);
    expect(sets(s)).toHaveLength(1);
    expect(errorsSent(s).map((e) => e.errors[0]?.message)).toEqual([
      'down',
      'HTTP status 503, expected 200',
      'the document is a bare string, not a Pod',
    ]);
    await polls(s, 1);
    expect(names(s)).toEqual(['web2-n1']);
  });

  it('does not parse a bad document again until it changes, and keeps reporting it', async () => {
    const s = start([ok('kind: Nope'), ok('kind: Nope'), new Error('down'), ok('kind: Nope')]);
    await polls(s, 3);
    expect(sets(s)).toEqual([]);
    expect(errorsSent(s).map((e) => e.errors[0]?.message.slice(0, 10))).toEqual(['apiVersion', 'apiVersion', 'down', 'apiVersion']);
  });

  it('clears a failure when the same good document comes back', async () => {
    const s = start([ok(yaml('web')), new Error('down'), ok(yaml('web'))]);
    await polls(s, 2);
    expect(errorsSent(s).map((e) => e.errors.length)).toEqual([1, 0]);
    expect(s.state()).toBe('"waiting"');
  });

  it('empties the source on an empty body, and reports it', async () => {
    const s = start([ok(yaml('web')), ok('')]);
    await polls(s, 1);
    expect(names(s)).toEqual([]);
    expect(sets(s).at(-1)?.errors[0]?.message).toBe('the body is empty: no pods');
  });

  it('is loud three times, says once that it falls silent, and is loud again after a success', async () => {
    const s = start([...Array.from({ length: 6 }, () => new Error('down')), ok(yaml('web')), new Error('down')]);
    await polls(s, 7);
    const levels = s.ports.lines.filter((l) => l.msg.includes('down')).map((l) => l.level);
    expect(levels).toEqual(['error', 'error', 'error', 'warn', 'debug', 'debug', 'error']);
  });
});

it('fails, and tries again, where a document cannot be looked at', async () => {
  const documents = { decode: () => Promise.reject(new Error('the thread that decodes documents cannot be started')) };
  const net: Net = {
    httpGet: async () => ({ status: 200, body: new TextEncoder().encode(yaml('web')) }),
    serveHttp: () => Promise.reject(new Error('not here')),
  };
  r = run(httpSourceSpec({ url: 'http://h/pods', headers: {}, checkFrequencyMs: 20_000, nodeName: 'n1', preventApiReferences: true }), {
    net,
    documents,
  });
  const s = r;
  await polls(s, 1);
  expect(sets(s)).toEqual([]);
  expect(errorsSent(s)).toHaveLength(2);
  expect(errorsSent(s)[0]?.errors[0]?.message).toBe('the thread that decodes documents cannot be started');
});
