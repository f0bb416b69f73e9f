/** What is counted of requests: also those whose answers go on after their heads. */
import { expect, it } from 'vitest';
import { withRequestMetrics } from '../../../src/actors/edge/metrics/requestMetrics.ts';
import { createMetrics } from '../../../src/boot/dependencies/metrics/metrics.ts';
import type { Clock } from '../../../src/ports/ports.ts';
import type { HttpReply } from '../../../src/ports/sockets/net.ts';

async function* nothing(): AsyncGenerator<string> {}

function counting(answers: Readonly<Record<string, HttpReply>>) {
  const metrics = createMetrics();
  const time = { ms: 0 };
  const clock = { monoMs: () => time.ms } as Clock;
  const known = ['exec', 'portForward', 'containerLogs', 'pods'];
  const handle = withRequestMetrics({ metrics, clock }, { serverType: 'readwrite', known }, async ({ path }) => {
    const reply = answers[path];
    if (reply === undefined) throw new Error('no such page');
    return reply;
  });
  /** A request; the function it gives ends it. */
  const ask = async (path: string): Promise<() => void> => {
    const stop = new AbortController();
    const request = { method: 'GET', path, query: new URLSearchParams(), headers: {}, body: new Uint8Array(), signal: stop.signal };
    await handle(request).catch(() => undefined);
    return () => stop.abort();
  };
  const told = async (family: string) =>
    (await metrics.render((name) => name === `kubelet_http_${family}`)).split('\n').filter((l) => /_(requests|count|sum)\{/.test(l));
  const row = (family: string, path: string, long: boolean, value: number) =>
    `kubelet_http_${family}{method="GET",path="${path}",server_type="readwrite",long_running="${long}"} ${value}`;
  return { ask, told, row, time };
}

it('streams are in flight until they end, and take as long', async () => {
  const c = counting({
    '/exec/a/b/c': { status: 101, body: '', relay: 'http://127.0.0.1:1/' },
    '/portForward/a/b': { status: 101, body: '', relay: 'http://127.0.0.1:1/' },
    '/containerLogs/a/b/c': { status: 200, body: nothing() },
  });
  const ends = [await c.ask('/exec/a/b/c'), await c.ask('/portForward/a/b'), await c.ask('/containerLogs/a/b/c')];
  const rows = (family: string, value: number) => [
    c.row(family, 'exec', true, value),
    c.row(family, 'portForward', false, value),
    c.row(family, 'containerLogs', false, value),
  ];
  expect(await c.told('inflight_requests')).toEqual(rows('inflight_requests', 1));
  expect(await c.told('requests_duration_seconds')).toEqual([]);
  c.time.ms = 60_000;
  for (const end of ends) end();
  expect(await c.told('inflight_requests')).toEqual(rows('inflight_requests', 0));
  expect(await c.told('requests_duration_seconds')).toEqual(
    expect.arrayContaining([...rows('requests_duration_seconds_sum', 60), ...rows('requests_duration_seconds_count', 1)]),
  );
});

it('other answers and failures have ended with their heads', async () => {
  const c = counting({ '/pods': { status: 200, body: '{}' } });
  await c.ask('/pods');
  await c.ask('/unknown');
  expect(await c.told('inflight_requests')).toEqual([
    c.row('inflight_requests', 'pods', false, 0),
    c.row('inflight_requests', 'other', false, 0),
  ]);
});
