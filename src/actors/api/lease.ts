/**
 * Holds the lease of the node: the cluster's proof that this daemon lives.
 *
 * State held: the lease as it was last written.
 * Lost on restart: that.
 * Rebuilt from: the lease in the API server, which is renewed as soon as it is read.
 */
import { fromPromise } from 'xstate';
import { type LeaseOutcome, leaseMachine } from '../../machines/api/leaseMachine.ts';
import { apiView, type LeaseEvent } from '../../machines/api/messages.ts';
import { isKubeObject, type KubeFailure, type KubeObject, type KubeRequest, kubePath } from '../../machines/kube/request.ts';
import type { WireLease, WireOwner } from '../../machines/kube/wire.ts';
import { momentOf } from '../../machines/xstate/facts.ts';
import { provided } from '../../machines/xstate/provide.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';
import { type KubeClient, kubeClient, kubePort } from './client.ts';

export interface LeaseOptions {
  nodeName: string;
  durationMs: number;
  timeoutMs: number;
}

const NAMESPACE = 'kube-node-lease';

export function leaseSpec(o: LeaseOptions): ActorSpec<LeaseEvent> {
  return {
    type: 'actor',
    id: 'lease',
    backoff: { maxMs: 5_000 },
    mailbox: { capacity: 16, key: (e) => e.type },
    start: (ctx) => {
      const calls = new LeaseCalls(ctx, o);
      const logic = provided(
        leaseMachine,
        {
          actors: {
            acquire: fromPromise<LeaseOutcome>(({ signal }) => calls.acquire(signal)),
            renew: fromPromise<LeaseOutcome>(({ signal }) => calls.renew(signal)),
          },
          actions: {
            failing: (_, { failures }) => {
              if (failures > 1) kubePort(ctx).closeConnections('heartbeat');
            },
          },
        },
        momentOf(ctx.ports),
      );
      return { logic, input: { durationMs: o.durationMs } };
    },
  };
}

class LeaseCalls {
  readonly #ctx: ActorCtx<LeaseEvent>;
  readonly #o: LeaseOptions;
  readonly #client: KubeClient;
  #lease: KubeObject | undefined;
  /** The API server said that there is none: it is made as soon as the node is registered, without another question. */
  #absent = false;

  constructor(ctx: ActorCtx<LeaseEvent>, o: LeaseOptions) {
    this.#ctx = ctx;
    this.#o = o;
    this.#client = kubeClient(ctx);
  }

  async acquire(signal: AbortSignal): Promise<LeaseOutcome> {
    if (!this.#absent) {
      const found = await this.#request({ verb: 'GET', path: kubePath.lease(NAMESPACE, this.#o.nodeName) }, signal);
      if (found.ok) {
        if (!isKubeObject(found.body)) return malformed();
        this.#lease = found.body;
        return this.renew(signal);
      }
      if (found.failure.code !== 404) return failed(found.failure);
      this.#absent = true;
    }
    const owner = this.#owner();
    // Without its owner it would outlive the node.
    if (owner === null)
      return failed({ code: 0, reason: 'NotRegistered', message: 'the lease is made when the node is registered', outcome: 'failed' });
    const body: WireLease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: this.#o.nodeName, namespace: NAMESPACE, ownerReferences: [owner] },
      spec: this.#spec(),
    };
    this.#absent = false;
    const made = await this.#request({ verb: 'POST', path: kubePath.leasesIn(NAMESPACE), body }, signal);
    return this.#took(made);
  }

  async renew(signal: AbortSignal): Promise<LeaseOutcome> {
    const lease = this.#lease;
    if (lease === undefined) return this.acquire(signal);
    const owner = this.#owner();
    const owned = Array.isArray(lease.metadata.ownerReferences) && lease.metadata.ownerReferences.length > 0;
    const metadata = { ...lease.metadata, ...(owned || owner === null ? {} : { ownerReferences: [owner] }) };
    const body = { ...lease, metadata, spec: this.#spec() };
    const path = kubePath.lease(NAMESPACE, this.#o.nodeName);
    return this.#took(await this.#request({ verb: 'PUT', path, body }, signal));
  }

  #took(result: Awaited<ReturnType<KubeClient['request']>>): LeaseOutcome {
    if (!result.ok) return failed(result.failure);
    if (!isKubeObject(result.body)) return malformed();
    this.#lease = result.body;
    return { ok: true };
  }
  #request(request: KubeRequest, signal: AbortSignal) {
    return this.#client.request(request, { class: 'heartbeat', timeoutMs: this.#o.timeoutMs, signal });
  }
  #spec(): NonNullable<WireLease['spec']> {
    // Microseconds on the wire.
    const renewTime = new Date(this.#ctx.ports.clock.wallMs()).toISOString().replace('Z', '000Z');
    return { holderIdentity: this.#o.nodeName, leaseDurationSeconds: Math.round(this.#o.durationMs / 1000), renewTime };
  }
  #owner(): WireOwner | null {
    const node = this.#ctx.registry.read(apiView.node)?.value;
    if (node === undefined || node.uid === '') return null;
    return { apiVersion: 'v1', kind: 'Node', name: node.name, uid: node.uid };
  }
}

function failed(failure: KubeFailure): LeaseOutcome {
  // Gone, or written by somebody else: reading it again tells.
  return { ok: false, conflict: failure.code === 409 || failure.code === 404, failure };
}
function malformed(): LeaseOutcome {
  return failed({ code: 0, reason: 'MalformedAnswer', message: 'the answer holds no lease', outcome: 'unknown' });
}
