/** A container whose state the runtime does not know is stopped once, and then started anew even if it stays unknown. */
import { expect, it } from 'vitest';
import { pod, virtualNode } from '../../integration/virtualNode.ts';

it('is replaced', async () => {
  await using h = await virtualNode();
  h.write('web', pod('web'));
  await h.until('it runs', () => h.running('web').length === 1);
  const [old] = h.running('web');
  const unknown = <C extends { id?: string } | undefined>(c: C): C => (c?.id === old?.id ? { ...c, state: 'CONTAINER_UNKNOWN' } : c);
  h.faults.answer = (method, value) => {
    const answer = value as { status?: { id?: string }; containers?: { id: string }[] };
    if (method === 'ContainerStatus') return { ...answer, status: unknown(answer.status) };
    if (method === 'ListContainers') return { ...answer, containers: answer.containers?.map(unknown) };
    return value;
  };
  let stops = 0;
  h.faults.fault = (method) => {
    if (method === 'StopContainer') stops += 1;
    return undefined;
  };
  await h.until('another runs', () => h.running('web').some((c) => c.id !== old?.id), 180_000);
  expect(stops).toBe(1);
  expect(h.violations).toEqual([]);
  expect(h.running('web')[0]?.attempt).toBe(1);
});
