/** A manifest that cannot be used, in a whole node. */
import { expect, it } from 'vitest';
import { virtualNode } from '../virtualNode.ts';

it('is one line of the log, which names the file and every fault', async () => {
  await using h = await virtualNode();
  h.write('bad', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'bad' }, spec: { restartPolicy: 'Sometimes', containers: [] } });
  const about = () => h.lines.filter((l) => l.msg.includes('bad.json'));
  await h.until('it is reported', () => about().length > 0);
  await h.advance(60_000);
  expect(about()).toEqual([
    expect.objectContaining({ level: 'warn', msg: expect.stringMatching(/bad\.json: .*containers.*; .*restartPolicy/) }),
  ]);
});
