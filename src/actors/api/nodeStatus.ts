/**
 * Registers the node and reports its status.
 *
 * State held: whether the node is registered, when its status was last written, the images last listed.
 * Lost on restart: all of it; one report too many.
 * Rebuilt from: the node object in the API server, the runtime, the host.
 */

import { fromPromise } from 'xstate';
import { SILENCE_MAX_MS } from '../../machines/api/listWatchMachine.ts';
import { apiView, type NodeStatusEvent, type NodeVolumesView } from '../../machines/api/messages.ts';
import { type NodeEvent, nodeEvents, schedulableEvent } from '../../machines/api/node/nodeEvents.ts';
import {
  extendedOfOthers,
  fieldsNotKept,
  initialNode,
  type NodeObject,
  type NodeReadings,
  nodeStatus,
  nodeStatusPatch,
  reconcileNode,
  reportedMetadata,
  sameNodeStatus,
  versionShown,
} from '../../machines/api/node/nodeObject.ts';
import { type NodeOutcome, nodeStatusMachine } from '../../machines/api/nodeStatusMachine.ts';
import { sameData } from '../../machines/data/sameData.ts';
import { eventsAddr, eventsView } from '../../machines/foundation/messages.ts';
import {
  failureText,
  isKubeObject,
  isOlder,
  type KubeFailure,
  type KubeObject,
  type KubeRequest,
  kubePath,
  slim,
} from '../../machines/kube/request.ts';
import type { NodeIdentity } from '../../machines/nodeFacts.ts';
import { pressureView } from '../../machines/reclaim/eviction/messages.ts';
import { nodeShutdownView } from '../../machines/reclaim/nodeShutdown/messages.ts';
import { criView } from '../../machines/runtime/cri/messages.ts';
import { runtimePodsView } from '../../machines/runtime/pleg/messages.ts';
import { objectTtlView } from '../../machines/services/objects/messages.ts';
import { volumesInUseView } from '../../machines/services/volumes/messages.ts';
import { isRecord } from '../../machines/shape/conform.ts';
import { messageOf } from '../../machines/text/errors.ts';
import { momentOf } from '../../machines/xstate/facts.ts';
import { provided } from '../../machines/xstate/provide.ts';
import { nodeResources } from '../allocation/client.ts';
import { criClient } from '../runtime/client.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';
import { type KubeClient, kubeClient, kubePort } from './client.ts';
import { NodeImages } from './nodeImages.ts';
import { type NodeStartup, nodeStartup } from './nodeStartup.ts';

export interface NodeStatusOptions {
  identity: Omit<NodeIdentity, 'os' | 'arch'>;
  register: boolean;
  updateFrequencyMs: number;
  reportFrequencyMs: number;
  /** Deadline of one request: an answer that comes later is no heartbeat. */
  timeoutMs: number;
  addresses: readonly string[];
  capacity: Readonly<Record<string, string>>;
  allocatable: Readonly<Record<string, string>>;
  /** Resources without which the node is not Ready, besides cpu, memory and pods: `ephemeral-storage` with localStorageCapacityIsolation. */
  needed: readonly string[];
  kubeletVersion: string;
  /** Undefined: the node says nothing about what it can do. */
  declaredFeatures: readonly string[] | undefined;
  /** Swap of the machine. */
  swapBytes: number;
  /** Port of the kubelet's HTTPS server; 0 = none. */
  port: number;
  /** -1 = no cap. */
  imagesMax: number;
  /** Wall ms at which the daemon started. Default: now. */
  startedMs?: number | undefined;
}

/** Seconds that answers about secrets and config maps may be kept for, as the node controller thinks fit. */
const TTL_ANNOTATION = 'node.alpha.kubernetes.io/ttl';
const STARTING: NodeEvent = { type: 'Normal', reason: 'Starting', message: 'Starting kubelet.' };
/** Fences one such call behind the other; no pod has this UID. */
const RUNTIME_CONFIG_LANE = 'runtime-config';
/** Besides the time between two reports, which the watch hears of: what it is then silent for, and until its first bookmark. */
const HEARD_WITHIN_MS = 2 * SILENCE_MAX_MS;
/** An answer this young is not asked for again before the watch has begun. */
const JUST_NOW_MS = 2_000;

export function nodeStatusSpec(o: NodeStatusOptions): ActorSpec<NodeStatusEvent> {
  // The daemon's start, which outlives this actor.
  let startup: NodeStartup | undefined;
  return {
    type: 'actor',
    id: 'nodeStatus',
    mailbox: { capacity: 64, key: (e) => e.type },
    start: (ctx) => {
      const { host, metrics, clock } = ctx.ports;
      startup ??= nodeStartup(metrics, {
        nowMs: () => clock.wallMs(),
        bootMs: () => host.bootTimeMs?.(),
        startedMs: o.startedMs ?? clock.wallMs(),
      });
      const reporter = new Reporter(ctx, { ...o, startup });
      const logic = provided(
        nodeStatusMachine,
        {
          actors: {
            register: fromPromise<NodeOutcome>(({ signal }) => reporter.register(signal)),
            report: fromPromise<NodeOutcome, { fresh: boolean }>(({ input, signal }) => reporter.report(input, signal)),
          },
          actions: {
            failing: (_, { failures }) => {
              if (failures > 1) kubePort(ctx).closeConnections('heartbeat');
            },
          },
        },
        momentOf(ctx.ports),
      );
      const input = {
        name: o.identity.name,
        register: o.register,
        updateFrequencyMs: o.updateFrequencyMs,
      };
      return { logic, input };
    },
  };
}

function toNode(body: unknown): NodeObject | null {
  if (!isKubeObject(body)) return null;
  return { ...body, spec: body.spec ?? {}, status: body.status ?? {} } as unknown as NodeObject;
}

class Reporter {
  readonly #ctx: ActorCtx<NodeStatusEvent>;
  readonly #o: NodeStatusOptions & { startup: NodeStartup };
  readonly #client: KubeClient;
  #askedAtMonoMs = 0;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  /** Added to the next report that nothing but time asks for: nodes that changed together do not report together for ever. */
  #scatterMs = 0;
  #unschedulable = false;
  #podCidr = '';
  /** Fields that this server does not keep: to send them again with each report would be a write each time. */
  #notKept: string[] = [];
  readonly #images: NodeImages;
  #complained = '';
  /** The object as a request of this actor last got it. */
  #last: { object: KubeObject; atMs: number } | null = null;

  constructor(ctx: ActorCtx<NodeStatusEvent>, o: NodeStatusOptions & { startup: NodeStartup }) {
    this.#ctx = ctx;
    this.#o = o;
    this.#client = kubeClient(ctx);
    this.#images = new NodeImages(ctx, o.imagesMax);
    // Once in the life of the daemon, not of this actor.
    const said = ctx.registry.read(eventsView)?.value.some((e) => e.pod === undefined && e.reason === STARTING.reason);
    if (said !== true) this.#say([STARTING]);
  }

  async register(signal: AbortSignal): Promise<NodeOutcome> {
    this.#o.startup.asking();
    this.#askedAtMonoMs = this.#ctx.ports.clock.monoMs();
    const { name } = this.#o.identity;
    const initial = initialNode(this.#identity(), nodeStatus({}, await this.#readings(signal)));
    const found = await this.#request({ verb: 'GET', path: kubePath.node(name) }, signal);
    if (!found.ok) {
      if (found.failure.code !== 404) return this.#failed(found.request, found.failure);
      const made = await this.#request({ verb: 'POST', path: kubePath.nodes, body: initial }, signal);
      if (!made.ok) return this.#failed(made.request, made.failure);
      this.#ctx.log.info({ node: name }, 'node registered');
      this.#o.startup.registeredNew();
      this.#say(nodeEvents(name, {}, initial.status));
      return this.#took(made.body, { written: 'changed' });
    }
    const existing = toNode(found.body);
    if (existing === null) return this.#malformed(found.request);
    // Once in the life of the daemon, not of this actor: what others count from then on is theirs.
    const fresh = this.#ctx.registry.read(apiView.node) === undefined && nodeResources(this.#ctx).recreated;
    const change = reconcileNode(existing, initial, { resetExtended: fresh });
    if (change === null) return this.#took(found.body, { written: 'no' });
    const request: KubeRequest = { verb: 'PATCH', path: kubePath.nodeStatus(name), body: change, patchType: 'strategic' };
    const patched = await this.#request(request, signal);
    return patched.ok ? this.#took(patched.body, { written: 'no' }) : this.#failed(patched.request, patched.failure);
  }

  async report({ fresh }: { fresh: boolean }, signal: AbortSignal): Promise<NodeOutcome> {
    const { clock } = this.#ctx.ports;
    const { name } = this.#o.identity;
    let body = fresh ? null : this.#known();
    const known = body !== null;
    if (!known) {
      this.#askedAtMonoMs = clock.monoMs();
      // From the server's cache: what somebody else wrote into our conditions meanwhile is put right.
      const found = await this.#request({ verb: 'GET', path: kubePath.node(name), query: { resourceVersion: '0' } }, signal);
      if (!found.ok) {
        if (found.failure.code === 404) this.#gone();
        return this.#failed(found.request, found.failure);
      }
      body = found.body;
    }
    const node = toNode(body);
    if (node === null) return this.#malformed({ verb: 'GET', path: kubePath.node(name) });
    const sentCidr = await this.#sendPodCidr(node, signal);
    const due = clock.monoMs() - this.#writtenAtMs >= this.#o.reportFrequencyMs + this.#scatterMs;
    const next = nodeStatus(node.status, await this.#readings(signal));
    // Another server may know them by now.
    if (due) this.#notKept = [];
    for (const field of this.#notKept) delete next[field];
    const same = sameNodeStatus(node.status, next);
    this.#saySchedulable(node);
    const metadata = reportedMetadata(node, this.#identity());
    if (!due && !sentCidr && same && metadata === null) return this.#took(body, { written: 'no', known });
    const change = { ...(metadata === null ? {} : { metadata }), status: nodeStatusPatch(node.status, next) };
    const request: KubeRequest = { verb: 'PATCH', path: kubePath.nodeStatus(name), body: change, patchType: 'strategic' };
    const patched = await this.#request(request, signal);
    if (!patched.ok) return this.#failed(patched.request, patched.failure);
    this.#notKept = [...this.#notKept, ...fieldsNotKept(next, toNode(patched.body)?.status ?? next)];
    this.#say(nodeEvents(name, node.status, next));
    return this.#took(patched.body, { written: same && metadata === null ? 'again' : 'changed' });
  }

  /** The object as the watch or the last answer showed it; null where neither may be believed, and it must be asked for. */
  #known(): unknown {
    const { registry, ports } = this.#ctx;
    const nowMs = ports.clock.monoMs();
    const seen = registry.read(apiView.nodeObject)?.value;
    const live = registry.read(apiView.link)?.value.state === 'reachable';
    const last = this.#last;
    if (seen?.object === null || seen === undefined || !live || nowMs - seen.heardAtMonoMs > HEARD_WITHIN_MS + this.#o.reportFrequencyMs)
      return last !== null && nowMs - last.atMs <= JUST_NOW_MS ? last.object : null;
    this.#askedAtMonoMs = Math.max(this.#askedAtMonoMs, seen.heardAtMonoMs);
    const { object } = seen;
    // The watch may be behind the answer to a write of this node's own.
    const behind = last !== null && isOlder(object.metadata.resourceVersion ?? '', last.object.metadata.resourceVersion ?? '');
    return behind ? last.object : object;
  }

  #identity(): NodeIdentity {
    const machine = this.#ctx.ports.host.identity?.();
    return { ...this.#o.identity, os: machine?.os ?? 'linux', arch: machine?.arch ?? 'amd64' };
  }
  #say(events: readonly NodeEvent[]): void {
    for (const event of events) this.#ctx.registry.send(eventsAddr, { type: 'event.record', event });
  }
  #saySchedulable(node: NodeObject): void {
    const unschedulable = node.spec.unschedulable === true;
    const event = schedulableEvent(this.#o.identity.name, this.#unschedulable, unschedulable);
    this.#unschedulable = unschedulable;
    if (event !== null) this.#say([event]);
  }

  /** A runtime that makes the pods' network itself needs the range that the cluster gave this node. True: it was told. */
  async #sendPodCidr(node: NodeObject, signal: AbortSignal): Promise<boolean> {
    const podCidr = (node.spec.podCIDRs ?? []).join(',');
    if (podCidr === this.#podCidr || podCidr === '' || this.#ctx.registry.read(criView)?.value.state !== 'ready') return false;
    const call = { method: 'UpdateRuntimeConfig' as const, request: { runtimeConfig: { networkConfig: { podCidr } } } };
    try {
      await criClient(this.#ctx.registry).mutate(RUNTIME_CONFIG_LANE, null, call, { signal });
    } catch (error) {
      const err = messageOf(error);
      this.#ctx.log.warn({ err, podCidr }, 'the runtime was not told the range of pod addresses; it is told again with the next report');
      return false;
    }
    this.#podCidr = podCidr;
    this.#ctx.log.info({ podCidr }, 'the runtime was told the range of pod addresses');
    return true;
  }

  async #request(request: KubeRequest, signal: AbortSignal) {
    const result = await this.#client.request(request, { class: 'heartbeat', timeoutMs: this.#o.timeoutMs, signal });
    return { ...result, request };
  }

  #took(body: unknown, how: { written: 'no' | 'again' | 'changed'; known?: boolean }): NodeOutcome {
    const node = toNode(body);
    if (node === null)
      return { ok: false, failure: { code: 0, reason: 'MalformedAnswer', message: 'the answer holds no node', outcome: 'unknown' } };
    if (how.known !== true && isKubeObject(body)) this.#last = { object: slim(body), atMs: this.#ctx.ports.clock.monoMs() };
    if (how.written !== 'no') {
      this.#writtenAtMs = this.#ctx.ports.clock.monoMs();
      this.#scatterMs = how.written === 'again' ? 0 : (this.#ctx.ports.rng.next() - 0.5) * this.#o.reportFrequencyMs;
    }
    this.#complained = '';
    const { name, uid, deletionTimestamp } = node.metadata;
    const before = this.#ctx.registry.read(apiView.node)?.value;
    const now = {
      name,
      uid: uid ?? '',
      deleting: deletionTimestamp !== undefined,
      registered: true,
      addresses: node.status.addresses ?? [],
    };
    const same = before?.uid === now.uid && before.deleting === now.deleting && sameData(before.addresses, now.addresses);
    if (!same) this.#ctx.publish(apiView.node, now);
    this.#ctx.publish(apiView.placement, {
      labels: node.metadata.labels ?? {},
      taints: node.spec.taints ?? [],
      extended: this.#extended(node),
      readAtMonoMs: this.#askedAtMonoMs,
    });
    const volumes = nodeVolumes(node);
    if (!sameData(this.#ctx.registry.read(apiView.volumes)?.value ?? NO_VOLUMES, volumes)) this.#ctx.publish(apiView.volumes, volumes);
    const ttlMs = Number(node.metadata.annotations?.[TTL_ANNOTATION] ?? Number.NaN) * 1000;
    if (ttlMs >= 0 && this.#ctx.registry.read(objectTtlView)?.value !== ttlMs) this.#ctx.publish(objectTtlView, ttlMs);
    const ready = node.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
    if (ready) this.#o.startup.ready();
    return { ok: true, ready };
  }

  /** What is made for a node, its lease and mirror pods, is made for one that is there: the cluster removes what another one owned. */
  #gone(): void {
    const before = this.#ctx.registry.read(apiView.node)?.value;
    if (before?.registered === true) this.#ctx.publish(apiView.node, { ...before, uid: '', registered: false });
  }

  /** None while it is not known which of them this node's own managers count. */
  #extended({ status }: NodeObject): Record<string, string> {
    const { known, allocatable } = nodeResources(this.#ctx);
    return known ? extendedOfOthers(status, allocatable) : {};
  }

  #failed(request: KubeRequest, failure: KubeFailure): NodeOutcome {
    const text = failureText(request, failure);
    // The link says when the server is away; what the server says is said here, once.
    if (failure.code > 0 && this.#complained !== text) this.#ctx.log.warn({ node: this.#o.identity.name }, `${text}; it is tried again`);
    this.#complained = text;
    return { ok: false, failure: { ...failure, message: text } };
  }
  #malformed(request: KubeRequest): NodeOutcome {
    return this.#failed(request, { code: 0, reason: 'MalformedAnswer', message: 'the answer holds no node', outcome: 'failed' });
  }

  async #readings(signal: AbortSignal): Promise<NodeReadings> {
    const { registry, ports } = this.#ctx;
    const cri = registry.read(criView)?.value;
    const allocated = nodeResources(this.#ctx);
    const machine = ports.host.identity?.();
    const runtime = cri === undefined || cri.runtimeName === '' ? 'Unknown' : `${cri.runtimeName}://${versionShown(cri.runtimeVersion)}`;
    return {
      ...{ addresses: this.#o.addresses, externalCloud: this.#o.identity.externalCloud, hostname: this.#o.identity.hostname },
      capacity: { ...this.#o.capacity, ...allocated.capacity },
      allocatable: { ...this.#o.allocatable, ...allocated.allocatable },
      needed: this.#o.needed,
      nodeInfo: {
        ...{ bootID: ports.host.bootId(), machineID: machine?.machineId ?? '', systemUUID: machine?.systemUuid ?? '' },
        ...{ kernelVersion: machine?.kernelVersion ?? '', osImage: machine?.osImage ?? '' },
        ...{ operatingSystem: machine?.os ?? 'linux', architecture: machine?.arch ?? 'amd64' },
        containerRuntimeVersion: runtime,
        kubeletVersion: this.#o.kubeletVersion,
        kubeProxyVersion: '',
      },
      ...{ swapBytes: this.#o.swapBytes, port: this.#o.port },
      images: await this.#images.list(signal),
      runtimeHandlers: (cri?.handlers ?? []).map(({ name, recursiveReadOnlyMounts, userNamespaces }) => ({
        name,
        features: { recursiveReadOnlyMounts, userNamespaces },
      })),
      declaredFeatures: this.#o.declaredFeatures,
      ...{ cri, listing: registry.read(runtimePodsView)?.value },
      shuttingDown: registry.read(nodeShutdownView)?.value.active === true,
      volumesInUse: registry.read(volumesInUseView)?.value,
      pressures: registry.read(pressureView)?.value.pressures ?? [],
      ...{ nowMonoMs: ports.clock.monoMs(), nowWallMs: ports.clock.wallMs() },
    };
  }
}

const NO_VOLUMES: NodeVolumesView = { inUse: [], attached: [] };
function nodeVolumes({ status }: NodeObject): NodeVolumesView {
  const { volumesInUse, volumesAttached } = status;
  const attached = Array.isArray(volumesAttached) ? volumesAttached : [];
  return {
    inUse: Array.isArray(volumesInUse) ? volumesInUse.filter((name) => typeof name === 'string') : [],
    attached: attached.flatMap((v) => (isRecord(v) && typeof v.name === 'string' ? [v.name] : [])),
  };
}
