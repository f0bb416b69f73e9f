/**
 * Nodes that others make: a watch of all nodes, and a machine for each node that the fleet file adopts.
 *
 * State held: which nodes are adopted, and what becomes of each.
 * Lost on restart: where the watch came to, and how long a machine has waited.
 * Rebuilt from: the API server, and the record of this file, which outlasts its actors.
 */
import type { ActorSpec, AnySpec, DynamicSpec, Registry, SupervisorSpec } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { KubeObject, KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import { toApiPod } from '@actorlet/kubelet/machines/pods/sources/apiPod.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { provided } from '@actorlet/kubelet/machines/xstate/provide.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock, Logger } from '@actorlet/kubelet/ports/ports.ts';
import { fromPromise } from 'xstate';
import type { Member } from '../nodes/member.ts';
import { type NodeAnswer, type NodeEvent, nodesAddr } from '../nodes/messages.ts';
import { NODES_MAX } from '../spec/table.ts';
import { asked, CONFLICT, NOT_FOUND } from '../watches/asking.ts';
import { ListWatch } from '../watches/listWatch.ts';
import { listWatchSpec } from '../watches/listWatchSpec.ts';
import type { Adopters } from './choice.ts';
import { machineMachine } from './machineMachine.ts';
import { type Adopted, type MachineEvent, machinesAddr } from './messages.ts';

const END_MS = 600_000;
const NODES = '/api/v1/nodes';

export interface AdoptionOptions {
  adopters: Adopters;
  /** With the kubeconfig's own rights. */
  kube: KubeApi;
  clock: Clock;
  log: Logger;
  registry(): Registry;
  members: {
    has(name: string): boolean;
    /** The fleet made the node of that name itself. */
    isOwn(name: string): boolean;
    count(): number;
    add(adopted: Adopted): Member;
    drop(name: string): void;
  };
  /** Whether this process has the node of that name: others have the rest. */
  isOurs(name: string): boolean;
  /** The id that the machine of that name has in this fleet. */
  machineId(name: string): string;
}

export class Adoption {
  readonly #o: AdoptionOptions;
  /** By name of node. */
  readonly #adopted = new Map<string, Adopted>();
  readonly nodes: ListWatch;

  constructor(o: AdoptionOptions) {
    this.#o = o;
    const { kube, adopters } = o;
    this.nodes = new ListWatch({
      ...{ kube, path: NODES, selector: adopters.selector },
      seen: (node) => this.#seen(node),
      gone: (name) => this.#gone(name),
    });
  }

  spec(): SupervisorSpec {
    const children: AnySpec[] = [machinesSpec(this), listWatchSpec('watch', 'nodes', this.nodes)];
    const intensity = { max: 5, periodMs: 60_000 };
    return { type: 'supervisor', id: 'adoption', strategy: 'one_for_one', intensity, escalate: { parkMs: 60_000 }, children };
  }

  #seen(node: KubeObject): void {
    const { adopters, members, isOurs, log } = this.#o;
    const { name, uid } = node.metadata;
    const before = this.#adopted.get(name);
    if (before?.uid === uid) return;
    // The one before was deleted while nobody watched.
    if (before !== undefined) this.#gone(name);
    if (!isOurs(name) || members.isOwn(name)) return;
    if (this.#adopted.size >= NODES_MAX) return;
    const adopted = adopters.choose(node, this.#isKnown(node));
    if (adopted === null) return;
    this.#adopted.set(name, adopted);
    if (this.#adopted.size === NODES_MAX) log.warn({ node: name }, `${NODES_MAX} nodes are adopted: others are not`);
    void this.#o.registry().send(machinesAddr, { type: 'machine.seen', node: name, adopted });
  }

  /** Its kubelet was here before the fleet started again. */
  #isKnown({ metadata: { name }, status }: KubeObject): boolean {
    const info = isRecord(status) && isRecord(status.nodeInfo) ? status.nodeInfo : {};
    return info.machineID === this.#o.machineId(name);
  }

  #gone(name: string): void {
    if (!this.#adopted.delete(name)) return;
    void this.#o.registry().send(machinesAddr, { type: 'machine.gone', node: name });
  }

  /** Gives the node a kubelet, with the pods that it has. @throws Error with the words of the API server. */
  async come(adopted: Adopted, signal: AbortSignal): Promise<void> {
    const { members, registry } = this.#o;
    const { name } = adopted;
    if (!members.has(name)) {
      if (members.count() >= NODES_MAX) throw new Error(`a fleet has at most ${NODES_MAX} nodes: it waits until one goes`);
      const query = { fieldSelector: `spec.nodeName=${name}` };
      const list = await this.#ask({ verb: 'GET', path: '/api/v1/pods', query }, signal);
      const items = isRecord(list) && Array.isArray(list.items) ? list.items : [];
      if (signal.aborted) return;
      members.add(adopted).hold(items.flatMap((item: unknown) => toApiPod(item) ?? []));
    }
    void registry().send(nodesAddr, { type: 'node.on', node: name });
  }

  /** As a cloud without room: what asked for the machine finds its node gone, and an event that says why. @throws as {@link come} */
  async refuse({ name, uid }: Adopted, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#o;
    const at = new Date(clock.wallMs()).toISOString().replace(/\.\d+Z$/, 'Z');
    const event = {
      ...{ apiVersion: 'v1', kind: 'Event', metadata: { name: `${name}.${uid.slice(0, 8)}.nocapacity`, namespace: 'default' } },
      involvedObject: { apiVersion: 'v1', kind: 'Node', name, uid: name },
      ...{ type: 'Warning', reason: 'NoCapacity', message: 'there is no capacity for a machine of this type' },
      ...{ source: { component: 'actorlet-fleet' }, firstTimestamp: at, lastTimestamp: at, count: 1 },
    };
    await this.#ask({ verb: 'POST', path: '/api/v1/namespaces/default/events', body: event }, signal).catch((error: unknown) =>
      log.warn({ node: name, error: messageOf(error) }, 'the event about a node without capacity could not be written'),
    );
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid } };
    await this.#ask({ verb: 'DELETE', path: `${NODES}/${name}`, body }, signal);
  }

  /** Ends the kubelet of the node: its machine is gone. Never rejects. */
  async go({ name }: Adopted): Promise<void> {
    const { members, registry } = this.#o;
    if (!members.has(name)) return;
    await registry().ask<NodeEvent, NodeAnswer>(nodesAddr, (replyTo) => ({ type: 'node.end', node: name, replyTo }), { timeoutMs: END_MS });
    members.drop(name);
  }

  /** Null: there is no such object, or another one of its name. @throws Error with the words of the API server. */
  #ask(request: KubeRequest, signal: AbortSignal): Promise<unknown> {
    const { kube } = this.#o;
    return asked(request, { kube, signal }, { none: request.verb === 'GET' ? [] : [NOT_FOUND, CONFLICT] });
  }
}

function machinesSpec(adoption: Adoption): DynamicSpec<MachineEvent> {
  return {
    type: 'dynamic',
    id: 'machines',
    mailbox: { capacity: NODES_MAX * 2 },
    route: (e) => e.node,
    starts: (e) => e.type === 'machine.seen',
    // It was refused, and its node goes.
    unknown: () => {},
    child: (name, first) => {
      if (first.type !== 'machine.seen') throw new Error(`the node ${name} was not adopted`);
      return machineSpec(adoption, first.adopted);
    },
    release: (e) => e.type === 'machine.seen',
  };
}

function machineSpec(adoption: Adoption, adopted: Adopted): ActorSpec<MachineEvent> {
  return {
    type: 'actor',
    id: adopted.name,
    restart: 'transient',
    backoff: { minMs: 1_000, maxMs: 10_000 },
    start: () => ({
      logic: provided(machineMachine, {
        actors: {
          come: fromPromise<void, { adopted: Adopted }>((of) => adoption.come(of.input.adopted, of.signal)),
          refuse: fromPromise<void, { adopted: Adopted }>((of) => adoption.refuse(of.input.adopted, of.signal)),
          go: fromPromise<void, { adopted: Adopted }>((of) => adoption.go(of.input.adopted)),
        },
      }),
      input: { adopted },
    }),
  };
}
