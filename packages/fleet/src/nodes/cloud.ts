/** What a cloud does with machines of a fleet: it adds them, takes them away, and gives notice before. */
import type { ConfigTaint } from '@actorlet/kubelet/machines/config/config.ts';
import type { KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { FLEET_LABEL, type GroupSpec, nodeOf } from '../file.ts';
import type { Shard } from '../types.ts';
import { ApiError, asked, CONFLICT } from '../watches/asking.ts';
import type { Members } from './members.ts';

/** Of a change of a node that others change, too. */
const TRIES = 5;
const REGISTERED_MS = 30_000;
const LOOK_EVERY_MS = 200;
const NODES = '/api/v1/nodes';

interface Trouble {
  node: string;
  why: string;
}
export interface CloudOptions {
  fleet: string;
  groups: readonly GroupSpec[];
  members: Members;
  shard: Shard;
  /** With the kubeconfig's own rights. */
  kube: KubeApi;
  clock: Clock;
  signal: AbortSignal;
  /** The daemon of that node ends, and its actor with it. */
  end(name: string): Promise<void>;
}

export class Cloud {
  readonly #o: CloudOptions;
  /** By group: the number of the next node. */
  readonly #next = new Map<string, number>();

  constructor(o: CloudOptions) {
    this.#o = o;
  }

  /** Machines of nodes that are new: gives their names, those of other shards not among them. */
  async add(name: string, count: number): Promise<{ names: string[]; troubles: Trouble[] }> {
    const { groups, members, shard, fleet } = this.#o;
    const group = groups.find((of) => of.name === name);
    if (group === undefined) throw new Error(`this fleet has no group ${name}`);
    const from = this.#next.get(name) ?? group.count;
    this.#next.set(name, from + count);
    // Names that are written out do not go on.
    const going = { ...group, nodes: [], nodeName: group.nodeName === '' ? `${name}-{index}` : group.nodeName };
    const ours = Array.from({ length: count }, (_, i) => from + i).filter((index) => index % shard.count === shard.index);
    const [names, troubles]: [string[], Trouble[]] = [[], []];
    for (const index of ours) {
      const node = nodeOf(going, index);
      const why = await this.#taken(node.name).catch(messageOf);
      if (why !== null) troubles.push({ node: node.name, why });
      else if (members.get(node.name) === undefined) {
        members.add({ ...node, group: going });
        names.push(node.name);
      } else troubles.push({ node: node.name, why: `the fleet ${fleet} has it already` });
    }
    return { names, troubles };
  }

  async #taken(name: string): Promise<string | null> {
    const node = await this.#ask({ verb: 'GET', path: `${NODES}/${name}` });
    if (node === null) return null;
    const { labels } = isRecord(node) && isRecord(node.metadata) ? node.metadata : {};
    const ours = isRecord(labels) && labels[FLEET_LABEL] === this.#o.fleet;
    return ours ? null : `a node of that name is there that the fleet ${this.#o.fleet} did not make`;
  }

  /** The machine ends, and its node is deleted, as the controller of a cloud does. */
  async remove(names: readonly string[]): Promise<Trouble[]> {
    return await this.#each(names, async (name) => {
      await this.#o.end(name);
      this.#o.members.drop(name);
      await this.#ask({ verb: 'DELETE', path: `${NODES}/${name}` });
    });
  }

  /** Its end is told by a taint and by a condition. */
  async notice(names: readonly string[], { taint, noticeMs }: { taint: ConfigTaint; noticeMs: number }): Promise<Trouble[]> {
    const { clock } = this.#o;
    const time = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
    return await this.#each(names, async (name) => {
      await this.#taint(name, taint);
      const at = time(clock.wallMs());
      const condition = {
        ...{ type: 'Interruption', status: 'True', reason: 'SpotInterruption', lastHeartbeatTime: at, lastTransitionTime: at },
        message: `the machine ends at ${time(clock.wallMs() + noticeMs)}`,
      };
      const body = { status: { conditions: [condition] } };
      await this.#ask({ verb: 'PATCH', path: `${NODES}/${name}/status`, patchType: 'strategic', body });
    });
  }

  /** Taints are a list as a whole: a change of others in between must not be lost. */
  async #taint(name: string, { key, value, effect }: ConfigTaint): Promise<void> {
    const path = `${NODES}/${name}`;
    for (let left = TRIES; ; left -= 1) {
      const node = await this.#registered(path);
      if (!isRecord(node) || !isRecord(node.metadata)) throw new Error('its node is not there');
      const there = isRecord(node.spec) && Array.isArray(node.spec.taints) ? node.spec.taints.filter(isRecord) : [];
      const others = there.filter((of) => of.key !== key || of.effect !== effect);
      const { resourceVersion } = node.metadata;
      const body = { metadata: { resourceVersion }, spec: { taints: [...others, { key, ...(value === '' ? {} : { value }), effect }] } };
      try {
        await asked({ verb: 'PATCH', path, patchType: 'merge', body }, this.#o, { none: [] });
        return;
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== CONFLICT || left === 1) throw error;
      }
    }
  }

  /** A machine that was just switched on has no node yet. */
  async #registered(path: string): Promise<unknown> {
    const { clock, signal } = this.#o;
    for (const deadline = clock.monoMs() + REGISTERED_MS; ; ) {
      const node = await this.#ask({ verb: 'GET', path });
      if (node !== null || signal.aborted || clock.monoMs() > deadline) return node;
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, LOOK_EVERY_MS));
    }
  }

  async #each(names: readonly string[], act: (name: string) => Promise<void>): Promise<Trouble[]> {
    const told = names.map(async (node): Promise<Trouble[]> => {
      try {
        await act(node);
        return [];
      } catch (error) {
        return [{ node, why: messageOf(error) }];
      }
    });
    return (await Promise.all(told)).flat();
  }

  /** Null: there is no such object. @throws ApiError with the words of the API server. */
  #ask(request: KubeRequest): Promise<unknown> {
    return asked(request, this.#o);
  }
}
