/** How the xstate inspectors' bridges treat clients that come late, ask too often, or do not read. */
import { expect, it } from 'vitest';
import { pod, type VirtualNode, virtualNode } from '../../../test/integration/virtualNode.ts';
import { Bridge } from '../src/bridges/bridge.ts';
import { BACKLOG_BYTES_MAX, type Joined } from '../src/feed/viewer.ts';
import { INSPECT, inspectedOf, viewer } from './rig.ts';

const INSPECTING = '{"type":"xstate.inspecting"}';
const PODS = 40;

interface Frame {
  type: string;
  sessionId: string;
  parent?: string;
  parentId?: string;
}
const framesOf = (v: { texts: readonly string[] }) => v.texts.map((t) => JSON.parse(t) as Frame);
const sessionsOf = (frames: readonly Frame[]) =>
  frames.filter((f) => f.type === '@xstate.actor' || f.type === 'service.register').map((f) => f.sessionId);

function join(bridge: Bridge, v: ReturnType<typeof viewer>): Joined {
  const joined = bridge.join(v);
  if (joined === null) throw new Error('no room for a viewer');
  joined.message(INSPECTING);
  return joined;
}
async function busyNode(): Promise<VirtualNode> {
  const h = await virtualNode(INSPECT);
  for (let i = 0; i < PODS; i++) h.write(`web${i}`, pod(`web${i}`));
  await h.until('all run', () => Array.from({ length: PODS }, (_, i) => h.phase(`web${i}`)).every((p) => p === 'Running'), 120_000);
  return h;
}

it.each(['stately', 'classic'] as const)('%s: tells a late client of every actor once, parents first, some in each turn', async (kind) => {
  await using h = await busyNode();
  const bridge = new Bridge(kind, inspectedOf(h));
  const early = viewer();
  join(bridge, early);
  // Nothing of it holds up whoever is at work now.
  expect(early.texts).toEqual([]);
  await h.advance(1);
  expect(early.texts.length).toBeLessThan(40);
  await h.advance(1_000);
  const known = sessionsOf(framesOf(early));
  expect(known.length).toBeGreaterThan(2 * PODS);
  expect(new Set(known).size).toBe(known.length);

  const late = viewer();
  const joined = join(bridge, late);
  await h.advance(2);
  // One comes and one goes while it is being told.
  h.write('new', pod('new'));
  h.remove('web0');
  await h.advance(10_000);
  joined.message(INSPECTING);
  await h.advance(1_000);
  const frames = framesOf(late);
  const told = sessionsOf(frames);
  expect(new Set(told).size).toBe(told.length);
  const heard = new Set<string>();
  for (const f of frames) {
    if (f.type !== '@xstate.actor' && f.type !== 'service.register') expect(heard, f.type).toContain(f.sessionId);
    else {
      const above = f.parent ?? f.parentId;
      if (above !== undefined) expect(heard).toContain(above);
      heard.add(f.sessionId);
    }
  }
  expect(sessionsOf(framesOf(early)).filter((s) => s.startsWith(h.workerPath('new'))).length).toBeGreaterThan(0);
  expect(told.filter((s) => s.startsWith(h.workerPath('new')))).toEqual(
    sessionsOf(framesOf(early)).filter((s) => s.startsWith(h.workerPath('new'))),
  );
  bridge.close();
});

it('lets go of a client that never reads, and looks at no actor any more', async () => {
  await using h = await virtualNode(INSPECT);
  const bridge = new Bridge('stately', inspectedOf(h));
  const stuck = viewer();
  stuck.stuckBytes = BACKLOG_BYTES_MAX + 1;
  join(bridge, stuck);
  await h.advance(40_000);
  expect(stuck.closed).toBe('it did not read what it was sent');
  expect(bridge.figures.viewers).toBe(0);
  const { serialised } = bridge.figures;
  h.write('web', pod('web'));
  await h.advance(10_000);
  expect(bridge.figures.serialised).toBe(serialised);
});

it('tells a client that has caught up of everything again', async () => {
  await using h = await virtualNode(INSPECT);
  const bridge = new Bridge('stately', inspectedOf(h));
  const slow = viewer();
  join(bridge, slow);
  await h.advance(1_000);
  const all = sessionsOf(framesOf(slow)).length;
  slow.stuckBytes = BACKLOG_BYTES_MAX + 1;
  await h.run('web', pod('web'));
  expect(bridge.figures.skipped).toBeGreaterThan(0);
  const before = slow.texts.length;
  slow.stuckBytes = 0;
  await h.advance(2_000);
  const again = sessionsOf(framesOf({ texts: slow.texts.slice(before) }));
  expect(again.length).toBeGreaterThan(all);
  expect(again.some((s) => s.startsWith(h.workerPath('web')))).toBe(true);
  bridge.close();
});
