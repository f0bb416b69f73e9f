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
import {
  isKubeObject,
  isOlder,
  type KubeFailure,
  type KubeObject,
  type KubeRequest,
  kubePath,
  TOO_LARGE,
  wasAnswered,
} from '../../machines/kube/request.ts';
import type { WireLease, WireOwner } from '../../machines/kube/wire.ts';
import { isRecord } from '../../machines/shape/conform.ts';
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
      const watching = ctx.registry.watch(apiView.nodeObject, () => calls.heardOfNode());
      ctx.signal.addEventListener('abort', () => watching[Symbol.dispose](), { once: true });
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
  /** At which the node was last seen when the lease was written, or first seen after; '': never. */
  #nodeVersion = '';
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
        const [had, has] = [versionOf(this.#lease), versionOf(found.body)];
        // Only this node writes it.
        if (isOlder(has, had)) return this.#restored(`its lease is of version ${has}, and was of version ${had}`);
        this.#lease = found.body;
        return this.renew(signal);
      }
      if (found.failure.code !== 404) return failed(found.failure);
      if (this.#lease !== undefined) {
        const why = await this.#lacksNode(signal);
        if (typeof why === 'object') return failed(why);
        if (why !== '') return this.#restored(why);
        this.#lease = undefined;
      }
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
    const { ownerReferences: owners } = lease.metadata;
    // It may be of a node object that there was before.
    const owned = owner === null || (Array.isArray(owners) && owners.some((o) => isRecord(o) && o.uid === owner.uid));
    const metadata = { ...lease.metadata, ...(owned ? {} : { ownerReferences: [owner] }) };
    const body = { ...lease, metadata, spec: this.#spec() };
    const path = kubePath.lease(NAMESPACE, this.#o.nodeName);
    return this.#took(await this.#request({ verb: 'PUT', path, body }, signal));
  }

  /**
   * A backup may be from before this node. Then the server has not come to the version at which the node was seen, or had no node then.
   * '' where it had one, which was deleted since, and where that is too long ago to tell.
   */
  async #lacksNode(signal: AbortSignal): Promise<string | KubeFailure> {
    const version = this.#nodeVersion;
    if (version === '') return '';
    const query = { fieldSelector: `metadata.name=${this.#o.nodeName}`, resourceVersion: version, resourceVersionMatch: 'Exact' };
    const listed = await this.#request({ verb: 'GET', path: kubePath.nodes, query }, signal);
    if (listed.ok) {
      const items = isRecord(listed.body) && Array.isArray(listed.body.items) ? listed.body.items : [];
      return items.length === 0 ? `it had no node ${this.#o.nodeName} at version ${version}` : '';
    }
    if (listed.failure.reason === TOO_LARGE) return `it has not come to version ${version} yet`;
    return wasAnswered(listed.failure) ? '' : listed.failure;
  }

  #restored(why: string): LeaseOutcome {
    const message = `the API server was restored from a backup: ${why}`;
    this.#ctx.log.warn({}, `${message}; what is known of it is read anew`);
    this.#ctx.publish(apiView.restored, { why });
    return failed({ code: 0, reason: 'Restored', message, outcome: 'failed' });
  }

  #took(result: Awaited<ReturnType<KubeClient['request']>>): LeaseOutcome {
    if (!result.ok) return failed(result.failure);
    if (!isKubeObject(result.body)) return malformed();
    this.#lease = result.body;
    this.#seeNode();
    return { ok: true };
  }

  /** The lease may be written before the watch has heard of the node. */
  heardOfNode(): void {
    if (this.#lease !== undefined && this.#nodeVersion === '') this.#seeNode();
  }
  #seeNode(): void {
    const node = this.#ctx.registry.read(apiView.nodeObject)?.value.object ?? undefined;
    if (node !== undefined) this.#nodeVersion = versionOf(node);
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
const versionOf = (object: KubeObject | undefined): string => object?.metadata.resourceVersion ?? '';
function malformed(): LeaseOutcome {
  return failed({ code: 0, reason: 'MalformedAnswer', message: 'the answer holds no lease', outcome: 'unknown' });
}
