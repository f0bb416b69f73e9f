/**
 * The interceptor in front of the runtime, for calls and for the event stream: before, after or without their effect,
 * told apart by pod and container.
 */

import type { RuntimeHint } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { CriMethod } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { type Cri, CriError } from '@actorlet/kubelet/ports/ports.ts';
import { describe, expect, it } from 'vitest';
import { injectorRig, NODE, watched } from './rig.ts';

const AT_ONCE = { timeoutMs: 10_000, signal: new AbortController().signal };
const POD = { metadata: { name: `web-${NODE}`, uid: 'u1', namespace: 'default', attempt: 0 } };

/** A runtime that answers after `latencyMs` of virtual time, set later; notes what reached it. */
function fakeCri() {
  const reached: string[] = [];
  const answers: Partial<Record<CriMethod, unknown>> = {
    RunPodSandbox: { podSandboxId: 's1' },
    CreateContainer: { containerId: 'c1' },
    ListContainers: { containers: [] },
    Status: {
      status: {
        conditions: [
          { type: 'RuntimeReady', status: true, reason: '', message: '' },
          { type: 'NetworkReady', status: true, reason: '', message: '' },
        ],
      },
      info: {},
    },
  };
  let hang = false;
  let push: (hint: RuntimeHint) => void = () => undefined;
  let closed = false;
  const cri: Partial<Cri> = {
    call: (async (method: CriMethod, _req: unknown, opts: { signal: AbortSignal }) => {
      reached.push(method);
      if (hang) {
        await new Promise((_, reject) => {
          opts.signal.addEventListener('abort', () => reject(new CriError({ method, code: 1, outcome: 'unknown', details: 'cancelled' })));
        });
      }
      return answers[method] ?? {};
    }) as Cri['call'],
    hints: async (signal) => {
      const waiting: RuntimeHint[] = [];
      let wake: () => void = () => undefined;
      signal.addEventListener('abort', () => {
        closed = true;
        wake();
      });
      push = (hint) => {
        waiting.push(hint);
        wake();
      };
      async function* stream(): AsyncGenerator<RuntimeHint> {
        for (;;) {
          const next = waiting.shift();
          if (next !== undefined) yield next;
          else if (signal.aborted) return;
          else
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
        }
      }
      return { via: 'cri', stream: stream() };
    },
    reconnect: () => void reached.push('reconnect'),
    close: () => undefined,
  };
  return {
    cri,
    reached,
    hang: (on: boolean) => {
      hang = on;
    },
    push: (hint: RuntimeHint) => push(hint),
    isClosed: () => closed,
  };
}

describe('calls to the runtime', () => {
  async function bed() {
    const fake = fakeCri();
    const r = await injectorRig({ cri: fake.cri });
    const start = (opts: { timeoutMs: number | null; signal: AbortSignal } = AT_ONCE) =>
      watched(r.ports.cri.call('StartContainer', { containerId: 'c1' }, opts));
    return { ...fake, r, start };
  }
  const code = (seen: { error?: Error }) =>
    seen.error instanceof CriError ? `${seen.error.code} ${seen.error.outcome}` : `no CriError: ${seen.error}`;

  it('pass untouched while nothing is injected', async () => {
    const b = await bed();
    const call = b.start();
    await b.r.base.settle();
    expect([call.state, b.reached]).toEqual(['done', ['StartContainer']]);
    b.r.ports.cri.reconnect();
    expect(b.reached).toEqual(['StartContainer', 'reconnect']);
  });

  it('fail with the code asked for, only the methods asked for, as often as asked for', async () => {
    const b = await bed();
    await b.r.begin([{ kind: 'cri', action: 'error', code: 'ResourceExhausted', times: 2, select: { methods: ['StartContainer'] } }]);
    const other = watched(b.r.ports.cri.call('StopContainer', { containerId: 'c1', timeout: 1 }, AT_ONCE));
    const calls = [b.start(), b.start(), b.start()];
    await b.r.base.settle();
    expect(other.state).toBe('done');
    expect(calls.map((c) => c.state)).toEqual(['failed', 'failed', 'done']);
    expect(code(calls[0] ?? {})).toBe('8 failed');
    expect(calls[0]?.error?.message).toContain('injected fault: ResourceExhausted');
    expect(b.reached).toEqual(['StopContainer', 'StartContainer']);
    expect((await b.r.list())[0]?.faults[0]?.hits).toBe(2);
    expect(b.r.records.filter((l) => l.includes('hit StartContainer'))).toHaveLength(2);
  });

  it('hit by probability, drawn from the node’s own generator', async () => {
    const b = await bed();
    await b.r.begin([{ kind: 'cri', action: 'error', probability: 0.5 }]);
    const calls = Array.from({ length: 200 }, () => b.start());
    await b.r.base.settle();
    const failed = calls.filter((c) => c.state === 'failed').length;
    expect(failed).toBeGreaterThan(60);
    expect(failed).toBeLessThan(140);
    expect(await b.r.metric(`actorlet_faults_injected_total{kind="cri"} ${failed}`)).toBe(true);
  });

  it('wait before their effect, and go on at once when healed', async () => {
    const b = await bed();
    const id = await b.r.begin([{ kind: 'cri', action: 'delay', delay: '4s' }]);
    const first = b.start();
    await b.r.base.advance(3_999);
    expect([first.state, b.reached]).toEqual(['open', []]);
    await b.r.base.advance(1);
    expect([first.state, b.reached]).toEqual(['done', ['StartContainer']]);
    const second = b.start();
    await b.r.base.advance(1_000);
    await b.r.stop(id);
    await b.r.base.settle();
    expect([second.state, b.reached.length]).toEqual(['done', 2]);
  });

  it('run into their deadline when the delay is longer, without effect', async () => {
    const b = await bed();
    await b.r.begin([{ kind: 'cri', action: 'delay', delay: '1m' }]);
    const call = b.start();
    await b.r.base.advance(10_000);
    expect([code(call), b.reached]).toEqual(['4 unknown', []]);
  });

  it('are lost, without their effect or with it', async () => {
    const b = await bed();
    const id = await b.r.begin([{ kind: 'cri', action: 'lost-without-effect' }]);
    const without = b.start();
    await b.r.base.advance(9_999);
    expect(without.state).toBe('open');
    await b.r.base.advance(1);
    expect([code(without), b.reached]).toEqual(['4 unknown', []]);
    await b.r.stop(id);
    const other = await b.r.begin([{ kind: 'cri', action: 'lost-with-effect' }]);
    const withEffect = b.start({ ...AT_ONCE, timeoutMs: null });
    await b.r.base.advance(3_600_000 / 12);
    expect([withEffect.state, b.reached]).toEqual(['open', ['StartContainer']]);
    // Whoever has no deadline is let go when the fault is healed.
    await b.r.stop(other);
    await b.r.base.settle();
    expect(code(withEffect)).toBe('4 unknown');
  });

  it('have their effect late; healed before, not at all', async () => {
    const b = await bed();
    const id = await b.r.begin([{ kind: 'cri', action: 'late-effect', delay: '30s' }]);
    const call = b.start();
    await b.r.base.advance(29_999);
    expect([code(call), b.reached]).toEqual(['4 unknown', []]);
    await b.r.base.advance(1);
    expect(b.reached).toEqual(['StartContainer']);
    b.start();
    await b.r.base.advance(20_000);
    await b.r.stop(id);
    await b.r.base.advance(60_000);
    expect(b.reached).toEqual(['StartContainer']);
  });

  it('end when the caller gives up', async () => {
    const b = await bed();
    await b.r.begin([{ kind: 'cri', action: 'lost-without-effect' }]);
    const timers = b.r.base.pendingTimers();
    const stop = new AbortController();
    const call = b.start({ timeoutMs: 10_000, signal: stop.signal });
    await b.r.base.settle();
    stop.abort();
    await b.r.base.settle();
    expect([code(call), b.r.base.pendingTimers()]).toEqual(['1 unknown', timers]);
  });

  it('are told apart by the pod and container they are about, learnt from the runtime’s answers', async () => {
    const b = await bed();
    const { cri } = b.r.ports;
    await cri.call('RunPodSandbox', { config: POD } as never, AT_ONCE);
    await cri.call(
      'CreateContainer',
      { podSandboxId: 's1', config: { metadata: { name: 'main', attempt: 0 } }, sandboxConfig: POD } as never,
      AT_ONCE,
    );
    await b.r.begin([{ kind: 'cri', action: 'error', select: { pods: ['web'], namespaces: ['def*'], containers: ['main'] } }]);
    const mine = b.start();
    const other = watched(cri.call('StartContainer', { containerId: 'c2' }, AT_ONCE));
    const sandbox = watched(cri.call('StopPodSandbox', { podSandboxId: 's1' }, AT_ONCE));
    const read = watched(cri.call('ListContainers', {}, AT_ONCE));
    await b.r.base.settle();
    expect([mine.state, other.state, sandbox.state, read.state]).toEqual(['failed', 'done', 'done', 'done']);
  });

  it('are cut when the runtime goes away, refused while it is, and pass again', async () => {
    const b = await bed();
    b.hang(true);
    const flying = b.start();
    await b.r.base.settle();
    await b.r.begin([{ kind: 'runtime.down', for: '5s' }]);
    await b.r.base.settle();
    expect(code(flying)).toBe('14 unknown');
    const refused = b.start();
    const hints = watched(b.r.ports.cri.hints(AT_ONCE.signal));
    await b.r.base.settle();
    expect([code(refused), code(hints)]).toEqual(['14 failed', '14 failed']);
    b.hang(false);
    await b.r.base.advance(5_000);
    const after = b.start();
    await b.r.base.settle();
    expect(after.state).toBe('done');
  });

  it('tell that the network is down', async () => {
    const b = await bed();
    const network = async () => {
      const { status } = await b.r.ports.cri.call('Status', {}, AT_ONCE);
      return status?.conditions.map((c) => `${c.type}=${c.status}`);
    };
    const id = await b.r.begin([{ kind: 'network.down' }]);
    expect(await network()).toEqual(['RuntimeReady=true', 'NetworkReady=false']);
    await b.r.stop(id);
    expect(await network()).toEqual(['RuntimeReady=true', 'NetworkReady=true']);
  });
});

describe('the event stream', () => {
  const hint = (id: string, kind: RuntimeHint['kind'] = 'started'): RuntimeHint => ({ kind, id });
  async function bed() {
    const fake = fakeCri();
    const r = await injectorRig({ cri: fake.cri });
    const got: string[] = [];
    const end: { how: string } = { how: 'open' };
    const { stream } = await r.ports.cri.hints(new AbortController().signal);
    const read = async () => {
      try {
        for await (const h of stream) got.push(h.id);
        end.how = 'ended';
      } catch (error) {
        end.how = String(error);
      }
    };
    void read();
    await r.base.settle();
    const push = async (...hints: RuntimeHint[]) => {
      for (const h of hints) fake.push(h);
      await r.base.settle();
    };
    return { ...fake, r, got, end, push };
  }

  it('loses, doubles, delays and reorders events', async () => {
    const b = await bed();
    await b.push(hint('a'));
    await b.r.begin([{ kind: 'hints', action: 'drop', select: { hints: ['stopped'] } }]);
    await b.push(hint('b', 'stopped'), hint('c'));
    expect(b.got).toEqual(['a', 'c']);
    await b.r.stop();
    await b.r.begin([{ kind: 'hints', action: 'duplicate', times: 1 }]);
    await b.push(hint('d'), hint('e'));
    expect(b.got.slice(2)).toEqual(['d', 'd', 'e']);
    await b.r.stop();
    await b.r.begin([{ kind: 'hints', action: 'reorder', times: 1 }]);
    await b.push(hint('f'), hint('g'));
    expect(b.got.slice(5)).toEqual(['g', 'f']);
    await b.r.stop();
    await b.r.begin([{ kind: 'hints', action: 'delay', delay: '5s', times: 2 }]);
    await b.push(hint('h'));
    await b.r.base.advance(5_000);
    expect(b.got.slice(7)).toEqual(['h']);
    await b.push(hint('i'));
    expect(b.got.slice(8)).toEqual([]);
    await b.r.stop();
    await b.r.base.settle();
    expect(b.got.slice(8)).toEqual(['i']);
  });

  it('passes on a reordered event that nothing follows', async () => {
    const b = await bed();
    await b.r.begin([{ kind: 'hints', action: 'reorder' }]);
    await b.push(hint('a'));
    expect(b.got).toEqual([]);
    await b.r.base.advance(1_000);
    expect(b.got).toEqual(['a']);
  });

  it('breaks, lets go of the real stream, and says when there was none to break', async () => {
    const b = await bed();
    await b.r.begin([{ kind: 'hints.cut' }]);
    await b.r.base.settle();
    expect(b.end.how).toContain('the event stream broke');
    expect(b.isClosed()).toBe(true);
    const again = await b.r.inject([{ kind: 'hints.cut' }]);
    expect(again.ok && again.injection.faults[0]?.missed).toBe('nothing is there that hints.cut could hit');
  });
});
