/** A pod that is set aside, on a whole node: refused by name, none of it handled, and given another chance. */
import { expect, it } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import type { Handling } from '../../../src/ports/handling.ts';
import { pod, virtualNode } from '../virtualNode.ts';

/** Pods with that argument are set aside, and so are files. */
function aside(): Handling & { subjects: string[]; documents: Set<string> } {
  const subjects: string[] = [];
  const documents = new Set<string>();
  return {
    subjects,
    documents,
    of(subject, fn) {
      subjects.push(subject);
      return fn();
    },
    documentAside: (subject) => (documents.has(subject.split(' ')[1] ?? '') ? 'the daemon died 2 times' : null),
    podAside: (p) => (p.spec.containers[0]?.args?.[0] === 'bomb' ? 'the daemon died 2 times' : null),
  };
}

it('is refused with an event and a reason that why tells, asks the runtime for nothing, and runs when it is mended', async () => {
  const handling = aside();
  await using h = await virtualNode({ handling });
  const bomb = pod('web', { uid: 'pinned', container: { args: ['bomb'], env: [{ name: 'E', value: 'of the bomb' }] } });
  h.write('good', pod('good'));
  h.write('web', bomb);
  await h.until('it is refused', () => h.phase('web') === 'Failed', 60_000);
  await h.until('the other runs', () => h.phase('good') === 'Running', 60_000);
  expect(h.status('web')?.status).toMatchObject({ reason: 'SetAside', message: 'Pod was rejected: the daemon died 2 times' });
  const said = (h.tree.registry.read(eventsView)?.value ?? []).filter((e) => e.reason === 'SetAside');
  expect(said).toMatchObject([{ type: 'Warning', message: 'the daemon died 2 times', pod: { uid: 'pinned' } }]);
  expect(JSON.stringify(h.record('web')?.pod)).not.toContain('of the bomb');
  expect(h.runtime.dump().sandboxes).toHaveLength(1);
  await h.advance(120_000);
  expect(h.phase('web')).toBe('Failed');
  h.write('web', pod('web', { uid: 'pinned', container: { args: ['fine'] } }));
  await h.until('it runs', () => h.phase('web') === 'Running' && h.running('web').length === 1, 60_000);
});

it('was running before: its containers are stopped within their grace, and nothing is left of it', async () => {
  const handling = aside();
  await using h = await virtualNode({ handling });
  const bomb = pod('web', { uid: 'pinned', container: { args: ['bomb'] } });
  const { podAside } = handling;
  handling.podAside = () => null;
  await h.run('web', bomb);
  await h.crash();
  handling.podAside = podAside;
  await h.boot();
  await h.until('nothing runs of it', () => h.phase('web') === 'Failed' && h.running('web').length === 0, 120_000);
});

it('a file that is set aside is an error of that file alone, and is read again when it changes', async () => {
  const handling = aside();
  handling.documents.add('/manifests/web.json');
  await using h = await virtualNode({ handling, manifests: { web: pod('web'), good: pod('good') } });
  await h.until('the other runs', () => h.phase('good') === 'Running', 60_000);
  expect(h.record('web')).toBeUndefined();
  expect(h.lines.some((l) => JSON.stringify(l).includes('set aside: the daemon died 2 times'))).toBe(true);
  handling.documents.clear();
  h.write('web', pod('web', { container: { args: ['changed'] } }));
  await h.until('it runs', () => h.phase('web') === 'Running', 60_000);
});

it('each pod is handled in its own name, from its file to its containers', async () => {
  const handling = aside();
  await using h = await virtualNode({ handling });
  await h.run('web', pod('web', { uid: 'pinned' }));
  expect(handling.subjects.some((s) => /^file \/manifests\/web\S* [0-9a-f]{32}$/.test(s))).toBe(true);
  expect(handling.subjects.filter((s) => s === 'pod pinned').length).toBeGreaterThan(20);
});
