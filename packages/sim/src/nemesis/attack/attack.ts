/** One pod with an own UID, what happens to its definition, and trouble that is aimed at it: the words in which attacks are written. */

import type { FsOp } from '@actorlet/faults/src/types.ts';
import type { CriMethod } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../entries.ts';
import type { PodSource } from '../faults.ts';
import { nameObjects } from '../workload/objects.ts';
import { deletePod, drawPod, editImages, relabel } from '../workload/pods.ts';
import type { SimPod } from '../workload/subjects.ts';

export const WORKERS = 'node/pods/workers/*';
/** Pods that are drawn until one is as wanted; the last will do. */
const TRIES_MAX = 40;
export const CHANCE = { probability: 1 } as const;

export class Attack {
  readonly rng: SimRng;
  readonly spanMs: number;
  readonly node: number;
  readonly #add: Add;
  readonly #uid: string;
  readonly #name: string;
  #rev = 0;
  #pod: SimPod | undefined;
  #source: PodSource = 'file';

  constructor(rng: SimRng, o: { spanMs: number; node: number; name: string; uid: string; add: Add }) {
    this.rng = rng;
    this.spanMs = o.spanMs;
    this.node = o.node;
    this.#name = o.name;
    this.#uid = o.uid;
    this.#add = o.add;
  }

  /** The pods of this attack, for selectors: nodes add their own name. */
  get pods(): string[] {
    return [`${this.#name}-*`];
  }
  add(...args: Parameters<Add>): void {
    this.#add(...args);
  }
  /** Puts a pod whose containers run for good, or crash for ever; in the API one that names objects in every way there is. */
  begin(at: number, o: { fate?: 'steady' | 'loops'; containersMin?: number; full?: boolean; inApi?: boolean } = {}): void {
    const { fate = 'steady', containersMin = 1, full = false, inApi = false } = o;
    const draw = (i: number) => drawPod(this.rng.fork(`pod-${i}`), { name: this.#name, rev: this.#rev, uid: this.#uid, full });
    let pod = draw(0);
    for (let i = 1; i < TRIES_MAX && (pod.fate !== fate || pod.containers.length < containersMin); i++) pod = draw(i);
    this.#source = inApi ? 'api' : 'file';
    this.#put(at, inApi ? nameObjects(this.rng.fork('objects'), pod, { node: this.node, always: true }) : pod);
  }
  /** Another pod, whose end at `until` lets the node collect what is dead. */
  sibling(at: number, until: number): void {
    // Not a UID of another attack, which end in 90 and their number: two manifests with one UID are no pod's life.
    const uid = this.#uid.replace(/90(?=\d{6}$)/, '91');
    const pod = drawPod(this.rng.fork('sibling'), { name: `${this.#name}s`, rev: 0, uid });
    this.add(at, { kind: 'pod.put', pod, source: 'file' });
    this.add(until, { kind: 'pod.put', pod: deletePod(pod, 0), source: 'file' });
    this.remove(until + 5_000, pod.name);
  }
  edit(at: number): void {
    this.#change(at, (pod) => editImages(this.rng.fork(`edit-${this.#rev}`), pod, this.#rev));
  }
  relabel(at: number): void {
    this.#change(at, (pod) => relabel(pod, this.#rev));
  }
  /** Its source asks for its end; most are not even named any more some time after. */
  end(at: number, graceSeconds = this.rng.pick([0, 2, 30] as const) ?? 2): void {
    this.#change(at, (pod) => deletePod(pod, graceSeconds));
    if (this.rng.chance(0.7)) this.remove(at + this.rng.between(100, 8_000));
  }
  remove(at: number, name = this.#name): void {
    this.add(at, { kind: 'pod.remove', name });
  }
  calls(at: number, forMs: number, o: { methods: readonly CriMethod[]; probability?: number } & Troubled): void {
    const { methods, probability = 1, ...trouble } = o;
    const select = { methods, pods: this.pods };
    this.add(at, { kind: 'cri', probability, select, delayMs: 0, code: 13, ...trouble }, forMs);
  }
  disk(at: number, forMs: number, o: { ops: readonly FsOp[]; paths: readonly string[]; probability?: number }): void {
    const { ops, paths, probability = 1 } = o;
    this.add(at, { kind: 'disk.error', probability, select: { ops, paths }, code: 'EIO' }, forMs);
  }
  stopSandbox(at: number): void {
    this.add(at, { kind: 'sandbox.stop', ...CHANCE, select: { pods: this.pods } });
  }
  exit(at: number): void {
    this.add(at, { kind: 'container.exit', ...CHANCE, select: { pods: this.pods }, exitCode: 1, reason: '' });
  }
  kill(at: number, actor: string, ofPod = false): void {
    this.add(at, { kind: 'actor.kill', ...CHANCE, select: { actors: [actor], ...(ofPod ? { pods: this.pods } : {}) }, pick: 'one' });
  }
  die(at: number, downMs: number): void {
    this.add(at, { kind: 'node.kill', ...CHANCE, select: {}, action: 'process', downMs });
  }

  #put(at: number, pod: SimPod): void {
    this.#pod = pod;
    this.#rev += 1;
    this.add(at, { kind: 'pod.put', pod, source: this.#source });
  }
  #change(at: number, how: (pod: SimPod) => SimPod): void {
    if (this.#pod !== undefined) this.#put(at, how(this.#pod));
  }
}
type Troubled = { action: 'error'; code?: number } | { action: 'delay' | 'late-effect'; delayMs: number };

/** Moments from `from` on, `everyMs` apart at most. */
export function* beats(rng: SimRng, o: { from: number; count: number; everyMs: number }): Generator<number> {
  let at = o.from;
  for (let i = 0; i < o.count; i++) {
    yield at;
    at += rng.between(o.everyMs * 0.3, o.everyMs);
  }
}
