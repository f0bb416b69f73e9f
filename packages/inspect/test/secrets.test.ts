/** Nothing secret leaves through the inspectors: planted values are looked for in every frame of every protocol. */
import { expect, it } from 'vitest';
import { pod, virtualNode } from '../../../test/integration/virtualNode.ts';
import { Bridge } from '../src/bridges/bridge.ts';
import { projectContext, projectEvent, projectSnapshot } from '../src/project.ts';
import { attach, hubOf, INSPECT, inspectedOf, viewer, watch } from './rig.ts';

const SECRET = 'hunter2-planted';

it('shows no environment, argument, label or annotation of a pod in any frame of the page and of both bridges', async () => {
  await using h = await virtualNode(INSPECT);
  const hub = hubOf(h);
  const bridges = (['stately', 'classic'] as const).map((kind) => new Bridge(kind, inspectedOf(h)));
  const listeners = bridges.map((bridge) => {
    const v = viewer();
    bridge.join(v)?.message('{"type":"xstate.inspecting"}');
    return v;
  });
  const manifest = pod('web', {
    spec: {
      containers: [
        {
          name: 'main',
          image: 'hollow/run',
          command: ['sh', '-c', SECRET],
          args: [SECRET],
          env: [
            { name: 'PASSWORD', value: SECRET },
            { name: 'message', value: SECRET },
          ],
        },
      ],
    },
  }) as { metadata: Record<string, unknown> };
  manifest.metadata.annotations = { reason: SECRET };
  manifest.metadata.labels = { name: SECRET };
  h.write('web', manifest);
  await h.until('web is known', () => h.record('web') !== undefined);
  const page = viewer();
  const joined = attach(hub, page);
  const seen: string[] = [];
  const visit = async (state: { path: string; children: readonly object[] }) => {
    watch(joined, { actor: state.path, pod: h.uid('web'), decisions: true });
    await h.advance(100);
    seen.push(state.path);
    for (const child of state.children) await visit(child as typeof state);
  };
  await visit(h.tree.state());
  await h.advance(10_000);
  await visit(h.tree.state());
  watch(joined, { actor: `${h.workerPath('web')}>container:main` });
  h.remove('web');
  await h.advance(60_000);
  expect(seen.length).toBeGreaterThan(40);
  const texts = [page, ...listeners].flatMap((v) => v.texts);
  expect(texts.length).toBeGreaterThan(200);
  expect(texts.filter((t) => t.includes(SECRET))).toEqual([]);
  for (const bridge of bridges) bridge.close();
});

it('hides by name and by default', () => {
  const shown = JSON.stringify(
    projectContext({
      token: SECRET,
      authHeader: { name: SECRET },
      env: { name: SECRET },
      data: new Map([['name', SECRET]]),
      credentials: [{ name: SECRET }],
      something: SECRET,
      list: [SECRET, { anything: SECRET }],
      ledgers: new Map([['key', SECRET]]),
      tlsPrivateKey: SECRET,
    }),
  );
  expect(shown).not.toContain(SECRET);
  expect(shown).toContain(`(text, ${SECRET.length})`);
  expect(JSON.stringify(projectEvent({ type: 'pod.update', pod: { spec: { image: SECRET } }, message: 'shown' }))).toBe(
    '{"type":"pod.update","pod":{"spec":"(hidden)"},"message":"shown"}',
  );
});

it('is bounded for whatever a context holds', () => {
  const endless: Record<string, unknown> = {};
  endless.self = endless;
  const wide = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, { name: 'x'.repeat(10_000), more: [i, i, i] }]));
  const text = JSON.stringify(
    projectContext({ endless, wide, again: wide, deep: JSON.parse(`${'{"a":'.repeat(500)}1${'}'.repeat(500)}`) as unknown }),
  );
  expect(text.length).toBeLessThan(100_000);
  expect(text).toContain('(seen above)');
});

it('bounds what a machine shows itself, and says where that failed', () => {
  const showing = (project: unknown) => ({ machine: { root: { meta: { project } } }, context: {} });
  const long = JSON.stringify(
    projectSnapshot(showing(() => ({ texts: Array.from({ length: 1_000 }, () => 'x'.repeat(1_000)), env: SECRET }))),
  );
  expect(long.length).toBeLessThan(10_000);
  expect(long).toContain('… 976 more');
  expect(long).not.toContain(SECRET);
  expect(projectSnapshot(showing(() => ({ any: 'text', none: [] })))).toEqual({ any: 'text', none: [] });
  const failing = showing(() => {
    throw new Error(SECRET);
  });
  expect(projectSnapshot(failing)).toBe('(its own projection failed)');
});
