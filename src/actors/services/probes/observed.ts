/**
 * State held: the results of probes by container id, as the kubelet's statuses say them.
 * Lost on restart: all of it.
 * Rebuilt from: the statuses of pods in the API.
 */
import { apiView } from '../../../machines/api/messages.ts';
import type { ProbeLedger } from '../../../machines/pod/probes/probes.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';
import { statusesView } from '../../../machines/pods/status/messages.ts';
import { workersAddr } from '../../../machines/pods/workers/messages.ts';
import { type ProbesEvent, probesAddr, probesView } from '../../../machines/services/probes/messages.ts';
import { observedProbesMachine } from '../../../machines/services/probes/observedMachine.ts';
import type { ProbesFacts } from '../../../machines/services/probes/probesMachine.ts';
import { because } from '../../../machines/supervision/address.ts';
import { LazyMoment } from '../../../machines/xstate/facts.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';

/** The actor behind `addr.probes` on a node whose kubelet is another program. */
export function observedProbesSpec(o: { podsMax: number }): ActorSpec<ProbesEvent> {
  return {
    type: 'actor',
    id: 'probes',
    mailbox: {
      capacity: 4 * o.podsMax + 64,
      key: (e) => e.uid ?? '*',
      overflow: 'mark-resync',
      resync: () => ({ type: 'probes.look', uid: null }),
    },
    start: (ctx) => {
      const watching = ctx.registry.watch(apiView.pods, () => void ctx.registry.send(probesAddr, { type: 'probes.look', uid: null }));
      ctx.signal.addEventListener('abort', () => watching[Symbol.dispose](), { once: true });
      const logic = provided(
        observedProbesMachine,
        {
          actions: {
            publish: (_, { ledger }: { ledger: ProbeLedger }) => ctx.publish(probesView, ledger),
            sayChanged: (_, { uids }) => sayChanged(ctx, uids),
          },
        },
        () => new ObservedMoment(ctx),
      );
      return { logic };
    },
  };
}

class ObservedMoment extends LazyMoment implements ProbesFacts {
  readonly #ctx: ActorCtx<ProbesEvent>;

  constructor(ctx: ActorCtx<ProbesEvent>) {
    super(ctx.ports);
    this.#ctx = ctx;
  }
  phase(): number {
    return 0;
  }
  get pods(): ProbesFacts['pods'] {
    return this.#ctx.registry.read(podsView)?.value;
  }
  get statuses(): ProbesFacts['statuses'] {
    return this.#ctx.registry.read(statusesView)?.value;
  }
  get api(): ProbesFacts['api'] {
    return this.#ctx.registry.read(apiView.pods)?.value;
  }
}

function sayChanged(ctx: ActorCtx<ProbesEvent>, uids: readonly string[]): void {
  const what = 'the kubelet changed what its probes found';
  const causes = because(undefined, { atMs: ctx.ports.clock.wallMs(), by: ctx.path, what });
  for (const uid of uids) ctx.registry.send(workersAddr, { type: 'pod.dirty', uid, why: what, causes });
}
