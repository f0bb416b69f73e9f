/** The stock clients of both xstate inspectors, from their npm packages, attached to a node that runs pods. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createWebSocketReceiver, type StatelyInspectionEvent } from '@statelyai/inspect';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { createMachine } from 'xstate';
import { type HollowNode, hollowNode, manifest, until } from '../../../test/integration/hollowNode.ts';
import { type InspectorServer, serveInspector } from '../src/boot/server.ts';

let h: HollowNode;
let server: InspectorServer;
let host = '';

beforeAll(async () => {
  h = await hollowNode({ flags: { inspect: '127.0.0.1:0' } });
  if (h.node.inspected === null) throw new Error('not inspected');
  server = await serveInspector(h.node.inspected, { at: '127.0.0.1:0' }, (page) => {
    host = new URL(page.url).host;
  });
});
afterAll(async () => {
  server[Symbol.dispose]();
  await h[Symbol.asyncDispose]();
});

const machinesNow = () => {
  let n = 0;
  const visit = (state: { path: string; children: readonly object[] }) => {
    if ((h.node.tree as unknown as { actorAt(path: string): unknown }).actorAt(state.path) !== null) n += 1;
    for (const child of state.children) visit(child as typeof state);
  };
  visit(h.node.tree.state());
  return n;
};

describe('@statelyai/inspect', () => {
  const attach = () => {
    const seen: StatelyInspectionEvent[] = [];
    createWebSocketReceiver({ server: `ws://${host}/stately` }).subscribe((e) => void seen.push(e));
    return seen;
  };

  it('hears of every actor, each state, each event and each end; a late client gets all that live', async () => {
    const seen = attach();
    const registered = () => new Map(seen.flatMap((e) => (e.type === '@xstate.actor' ? [[e.sessionId, e] as const] : [])));
    await until('all are registered', () => registered().size >= machinesNow());
    h.write('one.json', manifest('one'));
    const worker = await until('the worker of the pod', () =>
      [...registered().values()].find((a) => a.name.startsWith('node/pods/workers/one-')),
    );
    const definition = JSON.parse(worker.definition ?? '') as { id: string };
    expect(createMachine(definition).id).toBe('podWorker');
    const states = () =>
      seen.flatMap((e) =>
        e.type === '@xstate.snapshot' && e.sessionId === worker.sessionId
          ? [JSON.stringify((e.snapshot as { value?: unknown }).value)]
          : [],
      );
    await until('it settles', () => states().includes('{"syncing":"settled"}'));
    await until('its events', () =>
      seen.some((e) => e.type === '@xstate.event' && e.sessionId === worker.sessionId && e.event.type === 'container.report'),
    );
    const child = [...registered().values()].find((a) => a.parentId === worker.sessionId && a.name === 'container:main');
    expect(child?.rootId).toBe(worker.sessionId);

    const late = attach();
    await until('the late one has them', () => late.filter((e) => e.type === '@xstate.actor').length >= machinesNow());
    // Children that come meanwhile are told of before it.
    await until('the worker is among them', () => late.some((e) => e.sessionId === worker.sessionId));

    h.remove('one.json');
    await until('its end', () =>
      seen.some((e) => e.type === '@xstate.snapshot' && e.sessionId === worker.sessionId && e.snapshot.status !== 'active'),
    );
  });
});

interface ClassicEvent {
  type: string;
  sessionId: string;
  id?: string;
  machine?: { id: string; stateIds: string[] };
  state?: { value: unknown; matches(v: string): boolean };
  event?: { name: string };
}
interface ClassicReceiver {
  send(e: { type: string; [key: string]: unknown }): void;
  subscribe(fn: (e: ClassicEvent) => void): unknown;
}

describe('@xstate/inspect', () => {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-classic-'));
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  it('revives every machine and state with xstate 4, hears events and stops, and cannot send anything in', async () => {
    // The package wants xstate 4 under the name that is xstate 5 here; browsers give it its WebSocket.
    const file = join(dir, 'client.mjs');
    await build({
      stdin: { contents: "export { createWebSocketReceiver } from '@xstate/inspect/es/browser.js';", resolveDir: process.cwd() },
      alias: { xstate: 'xstate4' },
      bundle: true,
      format: 'esm',
      platform: 'node',
      outfile: file,
      logLevel: 'error',
    });
    const globals = globalThis as { WebSocket?: unknown };
    globals.WebSocket ??= WebSocket;
    const { createWebSocketReceiver: receiver } = (await import(pathToFileURL(file).href)) as {
      createWebSocketReceiver(o: { server: string }): ClassicReceiver;
    };
    const seen: ClassicEvent[] = [];
    const client = receiver({ server: `${host}/classic` });
    client.subscribe((e) => void seen.push(e));
    await until('all are registered', () => seen.filter((e) => e.type === 'service.register').length >= machinesNow());
    const manager = seen.find((e) => e.id === 'node/pods/podManager');
    expect(manager?.machine?.id).toBeDefined();
    h.write('two.json', manifest('two'));
    const worker = await until('the worker of the pod', () => seen.find((e) => e.id?.startsWith('node/pods/workers/two-')));
    expect(worker.machine?.stateIds).toContain('podWorker.syncing.settled');
    await until('it settles', () =>
      seen.some((e) => e.type === 'service.state' && e.sessionId === worker.sessionId && e.state?.matches('syncing.settled') === true),
    );
    await until('its events', () =>
      seen.some((e) => e.type === 'service.event' && e.sessionId === worker.sessionId && e.event?.name === 'container.report'),
    );

    const before = h.node.inspected?.recorder.recorded;
    client.send({
      type: 'xstate.event',
      event: JSON.stringify({ name: 'pod.kill', data: { type: 'pod.kill' }, origin: worker.sessionId }),
    });
    const figures = async () => ((await (await fetch(`http://${host}/api/figures`)).json()) as { classic: { refused: number } }).classic;
    await until('it is refused', () => true);
    for (let n = 0; n < 200 && (await figures()).refused === 0; n++) await new Promise((r) => setTimeout(r, 5));
    expect((await figures()).refused).toBe(1);
    const since = h.node.inspected?.recorder.since(before ?? 0, 1000) ?? [];
    expect(since.some((e) => e.what === 'pod.kill')).toBe(false);

    h.remove('two.json');
    await until('its stop', () => seen.some((e) => e.type === 'service.stop' && e.sessionId === worker.sessionId));
  });
});
