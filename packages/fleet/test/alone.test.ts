/** Two processes of one machine do not run the same fleet. */
import { expect, it } from 'vitest';
import { claimed } from '../src/boot/alone.ts';

const server = 'https://192.0.2.7:6443';
const whole = { index: 0, count: 1 };

it('a fleet that runs is refused a second time in words, until it has ended', async () => {
  const first = await claimed({ server, fleet: 'demo', shard: whole });
  const why = 'the fleet demo runs on this machine already, on the API server https://192.0.2.7:6443: stop it first';
  await expect(claimed({ server, fleet: 'demo', shard: whole })).rejects.toThrow(why);
  first[Symbol.dispose]();
  (await claimed({ server, fleet: 'demo', shard: whole }))[Symbol.dispose]();
});

it('other fleets, other API servers and other shards run beside it', async () => {
  const others = [
    { server, fleet: 'demo', shard: whole },
    { server, fleet: 'other', shard: whole },
    { server: 'https://192.0.2.8:6443', fleet: 'demo', shard: whole },
    { server, fleet: 'demo', shard: { index: 0, count: 2 } },
    { server, fleet: 'demo', shard: { index: 1, count: 2 } },
  ];
  const claims = await Promise.all(others.map(claimed));
  await expect(claimed({ server, fleet: 'demo', shard: { index: 1, count: 2 } })).rejects.toThrow('shard 1/2 of the fleet demo runs');
  for (const claim of claims) claim[Symbol.dispose]();
});
