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

it('the same cluster is known by another address, and by its own name behind a proxy', async () => {
  using local = await claimed({ server: 'https://127.0.0.1:443', cluster: 'c-1', fleet: 'near', shard: whole });
  expect(local).toBeDefined();
  for (const other of ['https://localhost/', 'https://127.0.0.1'])
    await expect(claimed({ server: other, fleet: 'near', shard: whole })).rejects.toThrow('the fleet near runs on this machine already');
  const proxied = { server: 'https://127.0.0.1:7443', fleet: 'near', shard: whole };
  await expect(claimed({ ...proxied, cluster: 'c-1' })).rejects.toThrow('the fleet near runs on this machine already');
  // What was refused has claimed nothing.
  (await claimed({ ...proxied, cluster: 'c-2' }))[Symbol.dispose]();
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
