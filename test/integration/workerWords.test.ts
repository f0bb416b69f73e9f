/** The tree, the page, `/pods` and `why` say the same of a pod's worker, in every state of its machine. */
import { momentOf } from '@actorlet/inspect/src/feed/live.ts';
import { podFrame } from '@actorlet/inspect/src/feed/podDetail.ts';
import { podRows } from '@actorlet/inspect/src/feed/rows.ts';
import type { PodSummary } from '@actorlet/shown/src/pods/podSummary.ts';
import { expect, it } from 'vitest';
import { INSPECT, inspectedOf } from '../../packages/inspect/test/rig.ts';
import { podsView } from '../../src/machines/pods/manager/messages.ts';
import { statusesView } from '../../src/machines/pods/status/messages.ts';
import { podWorkerMachine } from '../../src/machines/pods/workers/podWorkerMachine.ts';
import type { Ports } from '../../src/ports/ports.ts';
import type { HttpReply } from '../../src/ports/sockets/net.ts';
import { arranged, type KillCase } from './kill/killing.ts';
import { KILL_TABLES, leaves } from './kill/killTables.ts';
import { pod, virtualNode } from './virtualNode.ts';

type Handler = Parameters<Ports['net']['serveHttp']>[1];

const CASES = Object.values(KILL_TABLES)
  .flat()
  .filter((c, i, all) => c.covers.startsWith('podWorker ') && all.findIndex(({ covers }) => covers === c.covers) === i);
/** Left in the step that enters them: nobody sees them. */
const PASSING = [
  'beginning',
  'syncing.waking',
  'syncing.deciding',
  'syncing.acting',
  'terminating.choosing',
  'terminating.judging',
  'terminating.verified',
  'terminating.done',
];

/** The case on a node that is inspected, with the handler of its admin socket. */
function inspected(c: KillCase): { c: KillCase; ask(path: string, query?: Record<string, string>): Promise<unknown> } {
  let admin: Handler | undefined;
  const ports = (made: Ports): Ports => {
    const own = c.options?.ports?.(made) ?? made;
    const serveHttp: Ports['net']['serveHttp'] = (at, handler) => {
      if ('socketPath' in at) admin = handler;
      return own.net.serveHttp(at, handler);
    };
    return { ...own, net: { ...own.net, serveHttp } };
  };
  return {
    c: { ...c, options: { ...INSPECT, ...c.options, ports } },
    ask: async (path, query = {}) => {
      const { signal } = new AbortController();
      const request = { method: 'GET', path, query: new URLSearchParams(query), headers: {}, body: new Uint8Array(), signal };
      const reply: HttpReply | undefined = await admin?.(request);
      return JSON.parse(String(reply?.body));
    },
  };
}

it.each(CASES.map((c) => [c.covers, c] as const))('%s', async (_covers, of) => {
  const { c, ask } = inspected(of);
  const { h, path } = await arranged(c);
  await using _ = h;
  const uid = path.slice(path.lastIndexOf('/') + 1);
  const now = h.actor(path);
  const worker = h.tree.registry.read(podsView)?.value.records.get(uid)?.worker;
  const tree = { state: now?.state, reason: now?.reason, message: now?.message };
  expect(tree.reason).not.toBe('');
  expect(podFrame(momentOf(inspectedOf(h)), uid).pod?.worker, 'the page').toMatchObject(tree);
  expect(podRows(momentOf(inspectedOf(h)), [uid])[0]?.workerState, 'the row of the page').toBe(tree.state);
  const { pods } = (await ask('/pods')) as { pods: PodSummary[] };
  const row = pods.find((p) => p.uid === uid);
  expect(row?.workerState, '/pods').toBe(tree.state);
  // What is wrong with a container comes first.
  const { containerStatuses = [] } = h.tree.registry.read(statusesView)?.value.get(uid)?.status ?? {};
  const waits = containerStatuses.some((s) => s.state.waiting !== undefined) || worker?.containers.some((s) => s.reason !== '');
  if (waits !== true)
    expect({ reason: row?.reason, message: row?.message }, '/pods').toEqual({ reason: tree.reason, message: tree.message });
  const { lines } = (await ask('/why', { pod: uid })) as { lines: string[] };
  const line = lines[lines.indexOf('Worker') + 1];
  expect(line, 'why').toMatch(new RegExp(`^  ${tree.state} for `));
  expect(line?.slice(line.indexOf(': ') + 2), 'why').toBe([tree.reason, tree.message].filter((s) => s !== '').join(': '));
});

it('finished: what it reported last is said when it is no more in the tree', async () => {
  const { c, ask } = inspected({ covers: 'podWorker finished', path: (h) => h.workerPath('subject') });
  await using h = await virtualNode(c.options);
  h.write('subject', pod('subject', { life: 'run=1s', spec: { restartPolicy: 'Never' } }));
  await h.until('it has ended', () => h.record('subject')?.worker?.phase === 'finished');
  const uid = h.uid('subject');
  await h.until('its worker is gone', () => h.actor(h.workerPath('subject')) === undefined);
  const words = { state: 'finished', reason: 'Finished', message: '' };
  expect(podFrame(momentOf(inspectedOf(h)), uid).pod?.worker).toMatchObject(words);
  const { pods } = (await ask('/pods')) as { pods: PodSummary[] };
  expect(pods.find((p) => p.uid === uid)?.workerState).toBe('finished');
  const { lines } = (await ask('/why', { pod: uid })) as { lines: string[] };
  expect(lines[lines.indexOf('Worker') + 1]).toMatch(/^ {2}finished for .*: Finished$/);
});

it('has a case for each state', () => {
  const known = new Set(CASES.map((c) => c.covers.slice('podWorker '.length)));
  expect(leaves(podWorkerMachine.root).filter((state) => !known.has(state) && !PASSING.includes(state))).toEqual(['finished']);
});
