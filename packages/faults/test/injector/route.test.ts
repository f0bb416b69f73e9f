/** `/inject` on the admin socket: closed unless fault injection is on, and nothing is injected of what is refused. */

import type { ActorCtx } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { ServerEvent } from '@actorlet/kubelet/machines/edge/messages.ts';
import type { HttpReply, HttpRequest } from '@actorlet/kubelet/ports/sockets/net.ts';
import { describe, expect, it } from 'vitest';
import { faultRoute } from '../../src/injector/route.ts';
import { SCENARIO_BYTES_MAX } from '../../src/read/decode.ts';
import { injectorRig, type Rig } from './rig.ts';

const GOOD = 'apiVersion: actorlet.dev/v1alpha1\nkind: FaultScenario\nmetadata:\n  name: good\nspec:\n  faults:\n  - kind: disk.full\n';

interface Ask {
  method?: string;
  path?: string;
  type?: string | undefined;
  body?: string | Uint8Array;
}

async function bed(o: { off?: boolean } = {}): Promise<{ r: Rig; ask: (a: Ask) => Promise<{ status: number; text: string }> }> {
  const r = await injectorRig();
  const ctx = { registry: r.tree.registry } as ActorCtx<ServerEvent>;
  const ask = async ({ method = 'POST', path = '/inject', body = GOOD, ...a }: Ask) => {
    const type = 'type' in a ? a.type : 'application/yaml';
    const req: HttpRequest = {
      method,
      path,
      query: new URLSearchParams(),
      headers: type === undefined ? {} : { 'content-type': type },
      body: typeof body === 'string' ? new TextEncoder().encode(body) : body,
      signal: new AbortController().signal,
    };
    let reply: HttpReply | undefined;
    void faultRoute(ctx, req, o.off === true ? null : r.activeFaults).then((got) => {
      reply = got;
    });
    await r.base.settle();
    if (reply === undefined) throw new Error('no reply yet');
    return { status: reply.status, text: String(reply.body) };
  };
  return { r, ask };
}

describe('/inject', () => {
  it('is 403 with a reason while fault injection is off, whatever is asked', async () => {
    const { ask } = await bed({ off: true });
    for (const a of [{}, { method: 'GET' }, { method: 'DELETE' }, { method: 'DELETE', path: '/inject/x-1' }, { type: 'text/plain' }]) {
      const reply = await ask(a);
      expect(reply.status).toBe(403);
      expect(reply.text).toContain(
        'fault injection is off on this node. It is allowed by starting the daemon with --actorlet-fault-injection',
      );
    }
  });

  it('injects, lists and heals', async () => {
    const { r, ask } = await bed();
    expect(await ask({ method: 'GET' })).toEqual({ status: 200, text: '{"injections":[]}\n' });
    const first = await ask({});
    expect(first.status).toBe(200);
    expect(JSON.parse(first.text)).toMatchObject({ injection: { id: 'good-1', scenario: 'good' }, warnings: [] });
    // JSON is YAML.
    const json = JSON.stringify({
      apiVersion: 'actorlet.dev/v1alpha1',
      kind: 'FaultScenario',
      metadata: { name: 'json' },
      spec: { faults: [{ kind: 'disk.full' }] },
    });
    expect((await ask({ body: json, type: 'application/json; charset=utf-8' })).status).toBe(200);
    expect(JSON.parse((await ask({ method: 'GET' })).text)).toMatchObject({ injections: [{ id: 'good-1' }, { id: 'json-2' }] });
    expect(await ask({ method: 'DELETE', path: '/inject/good-1' })).toEqual({ status: 200, text: '{"stopped":["good-1"]}\n' });
    expect(await ask({ method: 'DELETE', path: '/inject/good-1' })).toEqual({
      status: 404,
      text: '404: nothing called "good-1" is injected; it may be over already\n',
    });
    expect(await ask({ method: 'DELETE' })).toEqual({ status: 200, text: '{"stopped":["json-2"]}\n' });
    expect(await ask({ method: 'DELETE' })).toEqual({ status: 200, text: '{"stopped":[]}\n' });
    expect(r.activeFaults.size).toBe(0);
  });

  it('refuses what is no scenario, and injects nothing of it', async () => {
    const { r, ask } = await bed();
    expect(await ask({ type: 'text/plain' })).toMatchObject({ status: 415, text: expect.stringContaining('not as text/plain') });
    expect(await ask({ type: undefined })).toMatchObject({ status: 415 });
    expect(await ask({ body: `${GOOD}#${'x'.repeat(SCENARIO_BYTES_MAX)}` })).toMatchObject({ status: 413 });
    expect(await ask({ body: new Uint8Array([0xff, 0xfe, 0x00]) })).toMatchObject({
      status: 400,
      text: '400: the scenario is not UTF-8 text\n',
    });
    expect(await ask({ body: '' })).toMatchObject({ status: 400, text: expect.stringContaining('is empty') });
    const typo = await ask({ body: GOOD.replace('disk.full', 'disk.fulll') });
    expect(typo).toMatchObject({ status: 400, text: expect.stringContaining('scenario:7: spec.faults[0].kind: ') });
    const live = await ask({ body: GOOD.replace('disk.full', 'node.stop') });
    expect(live).toMatchObject({ status: 400, text: expect.stringContaining('is only possible in the simulation') });
    const nobody = await ask({ body: GOOD.replace('disk.full', 'actor.kill\n    select:\n      actors: [pods/nobody]') });
    expect(nobody).toMatchObject({ status: 404, text: expect.stringContaining('line 7: fault fault-1: is aimed at nothing') });
    expect(await ask({ method: 'PUT' })).toMatchObject({ status: 405 });
    expect(await ask({ path: '/inject/good-1' })).toMatchObject({ status: 405 });
    expect(r.activeFaults.size).toBe(0);
  });
});
