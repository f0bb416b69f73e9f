/** Hears what the nodes of a run and the parts beside them do: for the trace, the counts of edges and the checkers. */

import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import type { NodeWatcher, SimNode } from '@actorlet/world/src/node/types.ts';
import type { CallSeen } from '@actorlet/world/src/runtime/types.ts';
import { traceText } from '@actorlet/world/src/trace.ts';
import { targetOf } from '../invariants/checker.ts';
import type { Checks } from './checks.ts';

export interface ObserverOptions {
  checks: Checks;
  inspect: NodeWatcher['inspect'];
  between: NodeWatcher['between'];
  /** For the trace. */
  note(who: string, what: string): void;
}

/** Actors of pods, by where they stand: the same machine under many names is one. */
const OF_PODS: readonly (readonly [below: string, kind: string])[] = [
  ['node/pods/workers/', 'worker'],
  ['node/api/podWriters/', 'podWriter'],
];
function kindOf(path: string): string {
  return OF_PODS.find(([below]) => path.startsWith(below))?.[1] ?? path;
}

export class Observer implements NodeWatcher {
  readonly inspect: NodeWatcher['inspect'];
  readonly between: NodeWatcher['between'];
  /** Times each edge was taken. */
  readonly edges = new Map<string, number>();
  /** Paths of the workers that began an inspection since this was last cleared. */
  readonly looked = new Set<string>();
  readonly #checks: Checks;
  readonly #note: ObserverOptions['note'];
  readonly #uids = new Map<string, Set<string>>();

  constructor({ checks, inspect, between, note }: ObserverOptions) {
    this.inspect = inspect;
    this.between = between;
    this.#checks = checks;
    this.#note = note;
  }

  /** UIDs of all pods that ever got a sandbox there. */
  uidsOf(node: SimNode): Set<string> {
    const known = this.#uids.get(node.name) ?? new Set<string>();
    this.#uids.set(node.name, known);
    return known;
  }

  /** Hears of the API server's requests, and of what changes in it. */
  heedKube(kube: SimKube, nodes: readonly SimNode[]): void {
    const ofPod = (path: string) => nodes.find((n) => path.split('/').some((part) => part.endsWith(`-${n.name}`)));
    kube.onRequest = (request, name) => {
      const node = nodes.find((n) => n.name === name) ?? ofPod(request.path);
      if (node !== undefined) this.#checks.ask('request', node, request);
    };
    kube.store.onEvent((e) => {
      const node = ofPod(e.object.metadata.name);
      if (node !== undefined) this.#checks.ask('object', node, e);
    });
  }

  /** Hears of the calls that reach what is beside this node's daemon. */
  heedMachine(node: SimNode): void {
    const checks = this.#checks;
    node.runtime.watcher = {
      arrived: (call) => this.#arrived(node, call),
      pulls: (call) => checks.ask('pulls', node, call),
      removesImage: (call) => checks.ask('removesImage', node, call),
      settled: (call, outcome) => checks.settled(node, call, outcome),
    };
    node.drivers.onCall = (call) => checks.ask('served', node, call);
    node.dra.onCall = (call) => checks.ask('prepares', node, call);
    node.logind.onRelease = () => checks.ask('released', node);
    node.disk.onRemove = (path) => checks.ask('removing', node, path);
  }

  supervision(node: SimNode, e: Parameters<NodeWatcher['supervision']>[1]): void {
    const { who, what } = traceText(e);
    this.#note(`${node.name} ${who}`, what);
    if (e.kind === 'transition') {
      if (e.to === 'syncing.inspecting') this.looked.add(e.path);
      const edge = `${kindOf(e.path)}: ${e.from} -> ${e.to}`;
      this.edges.set(edge, (this.edges.get(edge) ?? 0) + 1);
    }
    this.#checks.ask('supervision', node, e);
  }
  statuses(node: SimNode, statuses: Parameters<NodeWatcher['statuses']>[1]): void {
    this.#checks.ask('statuses', node, statuses);
  }
  log(node: SimNode, level: string, text: string): void {
    this.#checks.ask('logged', node, text);
    if (level === 'error' && text.startsWith('fault in the supervision')) this.broken(node, text);
  }
  booted(node: SimNode): void {
    this.#note(node.name, `boot ${node.boots}`);
    this.#checks.ask('booted', node);
  }
  judged(node: SimNode, problems: readonly string[]): void {
    this.#checks.ask('judged', node, problems);
  }
  exited(node: SimNode, why: string): void {
    this.#note(node.name, why);
    this.#checks.exited(node);
  }
  broken(node: SimNode, what: string): void {
    this.#checks.fail('nothing-escapes', `${node.name}: ${what}`);
  }

  #arrived(node: SimNode, call: CallSeen): void {
    const { uid, id } = targetOf(call, node.runtime.hollow.dump());
    this.#note(`${node.name} runtime`, `${call.method} ${uid} ${id}`);
    if (call.method === 'RunPodSandbox') this.uidsOf(node).add(uid);
    this.#checks.ask('arrived', node, call);
  }
}
