/**
 * The CSI drivers that a fleet plays, as far as they are one for a cluster: they make volumes, take them away, and attach them. What
 * they do on a node is in `nodes/drivers.ts`.
 *
 * State held: what is under way, and the faults that are at work.
 * Lost on restart: how long something has been under way.
 * Rebuilt from: the API server, and the record of this file, which outlasts its actors.
 */
import type { ActorSpec, AnySpec, DynamicSpec, Registry, SupervisorSpec } from '@actorlet/kubelet/actors/supervision/types.ts';
import { isKubeObject, type KubeObject, type KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { provided } from '@actorlet/kubelet/machines/xstate/provide.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock, Rng } from '@actorlet/kubelet/ports/ports.ts';
import { fromPromise } from 'xstate';
import { drawn } from '../spec/delay.ts';
import type { StorageSpec } from '../spec/hardware/storage.ts';
import { asked, CONFLICT, NOT_FOUND } from '../watches/asking.ts';
import { keyOf, ListWatch } from '../watches/listWatch.ts';
import { listWatchSpec } from '../watches/listWatchSpec.ts';
import type { WatchOutcome } from '../watches/messages.ts';
import { type Task, type TaskEvent, type TaskOutcome, tasksAddr } from './messages.ts';
import { taskMachine } from './taskMachine.ts';
import { type ActiveFault, attachmentOf, faultOf, isLeft, provisionerOf, volumeFor } from './volumes.ts';

const TASKS_MAX = 200_000;
const VOLUMES = '/api/v1/persistentvolumes';
const STORAGE_API = '/apis/storage.k8s.io/v1';
const ATTACHMENTS = `${STORAGE_API}/volumeattachments`;

export interface StorageOptions {
  storage: readonly StorageSpec[];
  /** With the kubeconfig's own rights. */
  kube: KubeApi;
  clock: Clock;
  rng: Rng;
  registry(): Registry;
}

export class Storage {
  readonly #o: StorageOptions;
  readonly #faults = new Map<string, ActiveFault>();
  /** By kind of watch and key of the object: the key of its task. */
  readonly #tasks = new Map<string, string>();

  constructor(o: StorageOptions) {
    this.#o = o;
  }

  spec(): SupervisorSpec {
    const claims = this.#watch('claims', '/api/v1/persistentvolumeclaims', (claim) => this.#ofClaim(claim));
    const children: AnySpec[] = [
      tasksSpec(this),
      // Claims name the class, so it is made before they are looked at.
      listWatchSpec('claims', 'persistentvolumeclaims', {
        list: (signal) => this.#begin(claims, signal),
        read: (signal) => claims.read(signal),
      }),
      listWatchSpec(
        'volumes',
        'persistentvolumes',
        this.#watch('volumes', VOLUMES, (volume) => this.#ofVolume(volume)),
      ),
      listWatchSpec(
        'attachments',
        'volumeattachments',
        this.#watch('attachments', ATTACHMENTS, (of) => this.#ofAttachment(of)),
      ),
    ];
    const intensity = { max: 5, periodMs: 60_000 };
    return { type: 'supervisor', id: 'storage', strategy: 'one_for_one', intensity, escalate: { parkMs: 60_000 }, children };
  }

  /** Volumes that it selects are not attached, until that is healed. `nodes`: null = to no node. */
  inject(fault: ActiveFault): void {
    this.#faults.set(fault.name, fault);
  }

  heal(name: string): void {
    this.#faults.delete(name);
  }

  #watch(kind: string, path: string, taskOf: (object: KubeObject) => Omit<Task, 'key' | 'object'> | null): ListWatch {
    const over = (at: string): void => {
      const key = this.#tasks.get(at);
      if (key === undefined) return;
      this.#tasks.delete(at);
      void this.#o.registry().send(tasksAddr, { type: 'task.gone', key });
    };
    return new ListWatch({
      ...{ kube: this.#o.kube, path },
      seen: (object) => {
        const [at, task] = [`${kind} ${keyOf(object)}`, taskOf(object)];
        const key = `${kind}-${String(object.metadata.uid)}`;
        if (this.#tasks.get(at) !== key) over(at);
        if (task === null) return over(at);
        if (this.#tasks.has(at)) return;
        this.#tasks.set(at, key);
        void this.#o.registry().send(tasksAddr, { type: 'task.seen', key, task: { ...task, key, object: keyOf(object) } });
      },
      gone: (key) => over(`${kind} ${key}`),
    });
  }

  #ofClaim(claim: KubeObject): Omit<Task, 'key' | 'object'> | null {
    const of = provisionerOf(claim, this.#o.storage);
    return of === undefined ? null : { kind: 'provision', afterMs: this.#drawn(of.provision) };
  }

  #ofVolume(volume: KubeObject): Omit<Task, 'key' | 'object'> | null {
    return isLeft(volume, this.#o.storage) ? { kind: 'delete', afterMs: 0 } : null;
  }

  #ofAttachment(object: KubeObject): Omit<Task, 'key' | 'object'> | null {
    const of = attachmentOf(object, this.#o.storage);
    return of === null || of.attachment.isAttached ? null : { kind: 'attach', afterMs: this.#drawn(of.of.attach) };
  }

  #drawn(delay: StorageSpec['attach']): number {
    return drawn(delay, () => this.#o.rng.next());
  }

  /** The classes and drivers are there. Never rejects. */
  async #begin(claims: ListWatch, signal: AbortSignal): Promise<WatchOutcome> {
    try {
      for (const of of this.#o.storage) await this.#ensure(of, signal);
      return await claims.list(signal);
    } catch (error) {
      return { failure: messageOf(error) };
    }
  }

  async #ensure({ name, driver, binding }: StorageSpec, signal: AbortSignal): Promise<void> {
    const head = { apiVersion: 'storage.k8s.io/v1' };
    const ofDriver = { ...head, kind: 'CSIDriver', metadata: { name: driver }, spec: { attachRequired: true, podInfoOnMount: false } };
    await this.#ask({ verb: 'POST', path: `${STORAGE_API}/csidrivers`, body: ofDriver }, signal);
    const ofClass = { ...head, kind: 'StorageClass', metadata: { name }, provisioner: driver, volumeBindingMode: binding };
    if ((await this.#ask({ verb: 'POST', path: `${STORAGE_API}/storageclasses`, body: ofClass }, signal)) !== null) return;
    const there = await this.#ask({ verb: 'GET', path: `${STORAGE_API}/storageclasses/${name}` }, signal);
    if (isRecord(there) && there.provisioner !== driver)
      throw new Error(`the StorageClass ${name} is there, of ${String(there.provisioner)}: choose another name in spec.storage`);
  }

  /** @throws Error with the words of the API server. */
  async act({ kind, object }: Task, signal: AbortSignal): Promise<TaskOutcome> {
    if (kind === 'provision') return this.#provision(object, signal);
    if (kind === 'attach') return this.#attach(object, signal);
    await this.#ask({ verb: 'DELETE', path: `${VOLUMES}/${object}` }, signal);
    return { what: 'done' };
  }

  async #provision(object: string, signal: AbortSignal): Promise<TaskOutcome> {
    const [namespace, name] = object.split('/');
    const claim = await this.#ask({ verb: 'GET', path: `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}` }, signal);
    const of = isKubeObject(claim) ? provisionerOf(claim, this.#o.storage) : undefined;
    if (isKubeObject(claim) && of !== undefined) await this.#ask({ verb: 'POST', path: VOLUMES, body: volumeFor(claim, of) }, signal);
    return { what: 'done' };
  }

  async #attach(object: string, signal: AbortSignal): Promise<TaskOutcome> {
    const present = await this.#ask({ verb: 'GET', path: `${ATTACHMENTS}/${object}` }, signal);
    const of = isKubeObject(present) ? attachmentOf(present, this.#o.storage) : null;
    if (of === null || of.attachment.isAttached) return { what: 'done' };
    const { attachment } = of;
    const volume =
      this.#faults.size === 0 || attachment.volume === ''
        ? null
        : await this.#ask({ verb: 'GET', path: `${VOLUMES}/${attachment.volume}` }, signal);
    const hit = faultOf(this.#faults.values(), attachment, isKubeObject(volume) ? volume : null);
    if (hit?.fault.fault === 'attach-hangs') return { what: 'hangs', fault: hit.name };
    const attachError = hit === undefined ? null : { time: this.#now(), message: hit.fault.message };
    const body = { status: { attached: hit === undefined, attachError } };
    await this.#ask({ verb: 'PATCH', path: `${ATTACHMENTS}/${object}/status`, patchType: 'merge', body }, signal);
    return hit === undefined ? { what: 'done' } : { what: 'failed', why: hit.fault.message };
  }

  #now(): string {
    return new Date(this.#o.clock.wallMs()).toISOString().replace(/\.\d+Z$/, 'Z');
  }

  /** Null: there is no such object, or there is one already. @throws ApiError with the words of the API server. */
  #ask(request: KubeRequest, signal: AbortSignal): Promise<unknown> {
    const { kube } = this.#o;
    return asked(request, { kube, signal }, { none: [request.verb === 'POST' ? CONFLICT : NOT_FOUND] });
  }
}

function tasksSpec(storage: Storage): DynamicSpec<TaskEvent> {
  return {
    type: 'dynamic',
    id: 'tasks',
    mailbox: { capacity: TASKS_MAX },
    route: (e) => e.key,
    starts: (e) => e.type === 'task.seen',
    // It was done.
    unknown: () => {},
    child: (key, first) => {
      if (first.type !== 'task.seen') throw new Error(`nothing is to be done for ${key}`);
      return taskSpec(storage, first.task);
    },
    release: (e) => e.type === 'task.seen',
  };
}

function taskSpec(storage: Storage, task: Task): ActorSpec<TaskEvent> {
  return {
    type: 'actor',
    id: task.key,
    restart: 'transient',
    backoff: { minMs: 1_000, maxMs: 30_000 },
    start: () => ({
      logic: provided(taskMachine, {
        actors: { act: fromPromise<TaskOutcome, { task: Task }>((of) => storage.act(of.input.task, of.signal)) },
      }),
      input: { task },
    }),
  };
}
