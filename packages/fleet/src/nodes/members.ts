/** The machines of a fleet: those of its file, and those that come and go. */
import { createFeatureGates } from '@actorlet/kubelet/machines/config/gates.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { HostFs } from '@actorlet/kubelet/ports/ports.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { FleetSpec } from '../file.ts';
import type { Front } from '../front/front.ts';
import type { FleetTurns } from '../pace/turns.ts';
import { imagesOf } from '../pods/images.ts';
import { compiledRules, rulesOf } from '../pods/rules.ts';
import type { GroupSpec } from '../spec/groups.ts';
import type { FleetWorld } from '../types.ts';
import { Member } from './member.ts';

export interface Place {
  name: string;
  labels?: Readonly<Record<string, string>>;
  providerID: string;
  group: GroupSpec;
  /** Its node is somebody else's: it neither creates nor removes it. Rules of its own group count, and those of this one. */
  adopted?: { shape: string };
}
export interface MembersOptions {
  spec: FleetSpec;
  world: FleetWorld;
  rng: SimRng;
  turns: FleetTurns;
  front: Front;
  connect(node: string, disk: HostFs): KubeApi;
}

export class Members {
  readonly #o: MembersOptions;
  readonly #byName = new Map<string, Member>();
  readonly #rules: ReturnType<typeof compiledRules>;
  readonly #images: ReturnType<typeof imagesOf>;
  readonly #gates = createFeatureGates({}).gates;
  #list: readonly Member[] | undefined;
  /** By group, and whether it is adopted: what its nodes share. */
  readonly #behaviours = new Map<string, ConstructorParameters<typeof Member>[0]['behaviour']>();
  /** Of machines that are gone. */
  readonly past = { podReady: [] as number[], podStart: [] as number[] };

  constructor(o: MembersOptions) {
    this.#o = o;
    this.#rules = compiledRules(o.spec.pods);
    this.#images = imagesOf(o.spec.images);
  }

  get list(): readonly Member[] {
    this.#list ??= [...this.#byName.values()];
    return this.#list;
  }

  get count(): number {
    return this.#byName.size;
  }

  /** Undefined: none of this fleet. */
  get(name: string): Member | undefined {
    return this.#byName.get(name);
  }

  add({ name, labels = {}, providerID, group, adopted }: Place): Member {
    const { spec, world, rng, turns, front, connect } = this.#o;
    const own = rng.fork(name);
    const member = new Member({
      ...{ name, labels, providerID, fleet: spec.name, group, storage: spec.storage, isAdopted: adopted !== undefined },
      behaviour: this.#behaviourOf(group, adopted?.shape),
      making: turns,
      rng: { next: () => own.next() },
      world: {
        ...world,
        yield: turns,
        net: front.of(name, world.net),
        connect: adopted === undefined ? connect : (node, disk) => withoutCreation(connect(node, disk), node),
      },
      gates: this.#gates,
    });
    this.#byName.set(name, member);
    this.#list = undefined;
    return member;
  }

  /** Its machine is gone, and its daemon has ended. */
  drop(name: string): void {
    const member = this.#byName.get(name);
    if (member === undefined) return;
    member.losePower();
    this.past.podReady.push(...member.times.createdSeconds);
    this.past.podStart.push(...member.times.seenSeconds);
    this.#byName.delete(name);
    this.#list = undefined;
  }

  #behaviourOf({ name, bytesPerSecond }: GroupSpec, shape = name): ConstructorParameters<typeof Member>[0]['behaviour'] {
    const key = `${name} ${shape} ${bytesPerSecond ?? ''}`;
    let behaviour = this.#behaviours.get(key);
    if (behaviour === undefined) {
      const { heartbeatMs } = this.#o.spec;
      behaviour = { rules: rulesOf(this.#rules, [name, shape]), image: this.#images(bytesPerSecond), heartbeatMs };
      this.#behaviours.set(key, behaviour);
    }
    return behaviour;
  }
}

const FORBIDDEN = 403;

/** A node that was deleted while its kubelet began would be made again. */
function withoutCreation(own: KubeApi, node: string): KubeApi {
  return {
    server: own.server,
    request: async (request, opts) => {
      if (request.verb !== 'POST' || request.path !== '/api/v1/nodes') return own.request(request, opts);
      const message = `the node ${node} was deleted, and its machine goes with it`;
      return { ok: false, failure: { code: FORBIDDEN, reason: 'Forbidden', message, outcome: 'failed' } };
    },
    watch: (request, opts) => own.watch(request, opts),
    closeConnections: (of) => own.closeConnections(of),
    reload: async () => own.reload?.(),
    close: () => own.close(),
  };
}
