/** One directory that cannot be removed is said once and keeps no other from being removed. */
import { expect } from 'vitest';
import { itOnNode as it } from '../../integration/onNode.ts';
import { ROOT, type VirtualNode } from '../../integration/virtualNode.ts';

async function put(h: VirtualNode, path: string): Promise<void> {
  await h.fs.mkdirp(path.slice(0, path.lastIndexOf('/')), 0o755);
  h.fs.put(path, 'x');
}

it('under the pods of the root directory', async ({ h }) => {
  for (const uid of ['a', 'b', 'c']) await put(h, `${ROOT}/pods/${uid}/etc-hosts`);
  await put(h, `${ROOT}/pods/a/volumes/v/data`);
  h.fs.failing = (op, path) => (op === 'unlink' && path.startsWith(`${ROOT}/pods/b/`) ? 'EBUSY' : undefined);
  await h.advance(180_000);
  expect(h.fs.has(`${ROOT}/pods/c`)).toBe(false);
  expect(h.fs.has(`${ROOT}/pods/a/volumes/v/data`)).toBe(true);
  const said = h.lines.filter((l) => JSON.stringify(l).includes(`${ROOT}/pods/`)).map((l) => JSON.stringify(l));
  expect(said.filter((l) => l.includes('/pods/a"'))).toHaveLength(1);
  expect(said.filter((l) => l.includes('/pods/b"'))).toHaveLength(1);
});

it('under the log directory of pods', async ({ h }) => {
  const logs = '/var/log/actorlet/pods';
  for (const uid of ['a', 'b']) await put(h, `${logs}/default_p_${uid}/main/0.log`);
  h.fs.failing = (op, path) => (op === 'unlink' && path.startsWith(`${logs}/default_p_a/`) ? 'EBUSY' : undefined);
  await h.advance(240_000);
  expect(h.fs.has(`${logs}/default_p_b`)).toBe(false);
  expect(h.fs.has(`${logs}/default_p_a/main/0.log`)).toBe(true);
});
