/** Host names of probes: how often the system is asked for them. */
import dns, { type LookupAddress } from 'node:dns';
import { expect, it, vi } from 'vitest';
import { sharedLookup } from '../../src/boot/dependencies/probe/lookup.ts';
import { createProber } from '../../src/boot/dependencies/prober.ts';

function bench() {
  const asked: string[] = [];
  const answers = new Map<string, PromiseWithResolvers<LookupAddress[]>>();
  const lookup = sharedLookup((name) => {
    asked.push(name);
    const answer = Promise.withResolvers<LookupAddress[]>();
    answers.set(name, answer);
    return answer.promise;
  });
  const find = (name: string) =>
    new Promise<unknown>((resolve, reject) => {
      lookup(name, {}, (error, address) => (error === null ? resolve(address) : reject(error)));
    });
  const settled = () => new Promise((done) => setImmediate(done));
  return { asked, answers, find, settled };
}

it('attempts that were given up leave one look-up behind', async () => {
  using asked = vi.spyOn(dns, 'lookup').mockImplementation((() => {}) as never);
  const prober = createProber();
  for (let n = 0; n < 5; n++) {
    const given = new AbortController();
    const o = { headers: {}, host: null, bytesMax: 10, signal: given.signal };
    const attempts = [
      prober.tcpDial({ host: 'hangs.test', port: 1 }, { signal: given.signal }),
      prober.httpGet('http://hangs.test:1/', o),
      prober.httpGet('https://hangs.test:1/', o),
    ].map((attempt) => attempt.catch(() => 'given up'));
    await new Promise((done) => setTimeout(done, 20));
    given.abort();
    expect(await Promise.all(attempts)).toEqual(['given up', 'given up', 'given up']);
  }
  expect(asked).toHaveBeenCalledTimes(1);
});

it('the system is asked once for a name, and for two at a time, however often they are probed', async () => {
  const b = bench();
  const found = ['hangs', 'a', 'b', 'hangs', 'b'].map(b.find);
  await b.settled();
  expect(b.asked).toEqual(['hangs', 'a']);
  b.answers.get('a')?.resolve([{ address: '192.0.2.1', family: 4 }]);
  await b.settled();
  expect(b.asked).toEqual(['hangs', 'a', 'b']);
  b.answers.get('b')?.reject(new Error('ENOTFOUND'));
  expect(await found[1]).toBe('192.0.2.1');
  await expect(found[2]).rejects.toThrow('ENOTFOUND');
  await expect(found[4]).rejects.toThrow('ENOTFOUND');
  void b.find('b').catch(() => {});
  await b.settled();
  expect(b.asked).toEqual(['hangs', 'a', 'b', 'b']);
});

it('localhost waits for no other name', async () => {
  const b = bench();
  for (const name of ['one', 'two']) void b.find(name);
  expect(await b.find('localhost')).toBe('127.0.0.1');
  expect(b.asked).not.toContain('localhost');
});
