/** The real iptables port, in a network namespace that this test makes: twice the same, and what another program removed. */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createIptables } from '../../../src/boot/dependencies/machine/iptables.ts';
import { actsOf, addRule, FIND_CANARY, FIND_FAMILY, findRule, KILLED, makeChain } from '../../../src/machines/services/iptables/rules.ts';

const namespace = `actorlet-${randomUUID().slice(0, 8)}`;
const inside = (...line: string[]): string => execFileSync('ip', ['netns', 'exec', namespace, ...line], { encoding: 'utf8' });
const port = createIptables({ prefix: ['ip', 'netns', 'exec', namespace] });
const { signal } = new AbortController();

beforeAll(() => void execFileSync('ip', ['netns', 'add', namespace]));
afterAll(() => void execFileSync('ip', ['netns', 'delete', namespace]));

it.each([4, 6] as const)('keeps the chains of IPv%s as the commands say', async (family) => {
  const program = family === 4 ? 'iptables' : 'ip6tables';
  expect((await port.run(family, FIND_FAMILY, signal)).code).toBe(0);
  expect((await port.run(family, FIND_CANARY, signal)).code).toBe(1);
  for (const act of actsOf(family)) {
    if (act.kind === 'chain') {
      expect((await port.run(family, makeChain(act.table, act.chain), signal)).code).toBe(0);
      // There already.
      expect((await port.run(family, makeChain(act.table, act.chain), signal)).code).toBe(1);
      continue;
    }
    expect((await port.run(family, findRule(act), signal)).code).toBe(1);
    expect(await port.run(family, addRule(act), signal)).toEqual({ code: 0, words: expect.any(String) });
    expect((await port.run(family, findRule(act), signal)).code).toBe(0);
  }
  expect((await port.run(family, FIND_CANARY, signal)).code).toBe(0);
  const shown = inside(program, '-t', 'filter', '-S');
  expect(shown.includes('-A INPUT -j KUBE-FIREWALL')).toBe(family === 4);
  expect(shown.includes('block incoming localnet connections')).toBe(family === 4);
  expect(inside(program, '-t', 'mangle', '-S')).toContain('-N KUBE-IPTABLES-HINT');
  inside(program, '-t', 'mangle', '-X');
  expect((await port.run(family, FIND_CANARY, signal)).code).toBe(1);
});

it('says why the program does not run', async () => {
  await expect(createIptables({ prefix: ['/nowhere/ip'] }).run(4, FIND_FAMILY, signal)).rejects.toThrow(/cannot be run: .*ENOENT/);
  const hung = await createIptables({ prefix: ['sh', '-c', 'exec sleep 60'], withinMs: 100 }).run(4, FIND_FAMILY, signal);
  expect(hung).toEqual({ code: KILLED, words: 'did not end within 0.1 s and was killed' });
});
