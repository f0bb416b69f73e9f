/** A benchmark's view of a real API server: requests on kept connections, and one watch that notes what became of each pod and when. */
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { watchLines } from '../../src/boot/dependencies/kube/lines.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import type { ControlPlane } from '../../test/e2e/lab/cluster/controlPlane.ts';

/** Connections of the benchmark itself: as many as hurry a burst along without a handshake for each pod. */
const SOCKETS_MAX = 20;
export const NAMESPACE = 'default';
export const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
const ADMIN = { name: 'kubernetes-admin', groups: ['system:masters'] };

/** Times are `performance.now()` of this process, milliseconds. */
export interface PodHistory {
  name: string;
  uid: string;
  /** The API server's 201 arrived. */
  acceptedMs: number;
  boundMs?: number;
  readyMs?: number;
  /** The answer to DELETE arrived. */
  deletedMs?: number;
  goneMs?: number;
  /** Times that Ready went from True to something else while nobody was deleting the pod. */
  flips: number;
  restarts: number;
}

export class ClusterView {
  readonly pods = new Map<string, PodHistory>();
  readonly #plane: ControlPlane;
  readonly #agent: Agent;
  readonly #ended = new AbortController();
  #failure: Error | undefined;
  #waiting: (() => void)[] = [];

  private constructor(plane: ControlPlane) {
    this.#plane = plane;
    const { certFile, keyFile } = plane.ca.issue('admin', ADMIN);
    const [ca, cert, key] = [plane.ca.certFile, certFile, keyFile].map((file) => readFileSync(file, 'utf8'));
    this.#agent = new Agent({ keepAlive: true, maxSockets: SOCKETS_MAX, ca, cert, key });
  }

  /** Follows the pods of {@link NAMESPACE} from now on. */
  static async open(plane: ControlPlane): Promise<ClusterView> {
    const view = new ClusterView(plane);
    const { body } = await view.request('GET', PODS);
    const { resourceVersion } = (body as { metadata: { resourceVersion: string } }).metadata;
    void view.#follow(resourceVersion);
    return view;
  }

  /** The API server ends a watch whose client falls behind on a busy machine: it goes on from the last event. */
  async #follow(from: string): Promise<void> {
    let last = from;
    while (!this.#ended.signal.aborted && this.#failure === undefined) {
      await this.watch(
        `${PODS}?watch=true&timeoutSeconds=36000&resourceVersion=${last}`,
        (type, object) => {
          if (type === 'ERROR') throw new Error(`the watch of pods failed: ${JSON.stringify(object)}`);
          last = (object as Pod).metadata.resourceVersion ?? last;
          this.#take(type, object as Pod);
        },
        { goesOn: true },
      );
    }
  }

  close(): void {
    this.#ended.abort();
    this.#agent.destroy();
  }

  request(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }> {
    const data = body === undefined ? '' : JSON.stringify(body);
    const length = String(Buffer.byteLength(data));
    const headers = { 'content-type': 'application/json', accept: 'application/json', 'content-length': length };
    return new Promise((resolve, reject) => {
      const req = request(new URL(path, this.#plane.url), { method, agent: this.#agent, headers }, (res) => {
        let text = '';
        res.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        res.once('error', reject);
        res.once('end', () => resolve({ status: res.statusCode ?? 0, body: text.startsWith('{') ? JSON.parse(text) : text }));
      });
      req.once('error', reject);
      req.end(data);
    });
  }

  /** Gives each event of a watch to `take` until `close()`. A watch that ends by itself fails every waiter, unless the caller goes on. */
  async watch(path: string, take: (type: string, object: unknown) => void, o: { goesOn?: boolean } = {}): Promise<void> {
    try {
      const { signal } = this.#ended;
      const res = await new Promise<IncomingMessage>((resolve, reject) => {
        request(new URL(path, this.#plane.url), { agent: this.#agent, signal }, resolve).once('error', reject).end();
      });
      for await (const line of watchLines(res, () => {})) {
        const { type, object } = JSON.parse(line) as { type: string; object: unknown };
        take(type, object);
        const woken = this.#waiting;
        this.#waiting = [];
        for (const wake of woken) wake();
      }
      if (o.goesOn !== true) throw new Error(`the watch ${path} ended`);
    } catch (error) {
      if (this.#ended.signal.aborted) return;
      this.#failure = error instanceof Error ? error : new Error(String(error));
      for (const wake of this.#waiting) wake();
    }
  }

  /** Waits for what the watch shows; looks after every event. */
  async until(what: string, timeoutMs: number, holds: () => boolean): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (!holds()) {
      if (this.#failure !== undefined) throw this.#failure;
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) throw new Error(`waited ${timeoutMs} ms for ${what}`);
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, leftMs);
      await Promise.race([late.promise, new Promise<void>((resolve) => this.#waiting.push(resolve))]);
      clearTimeout(timer);
    }
  }

  /** Creates a pod; settles when the server has accepted it. */
  async create(pod: { metadata: { name: string } }): Promise<PodHistory> {
    const { name } = pod.metadata;
    // The watch may be faster than the answer.
    const history: PodHistory = { name, uid: '', acceptedMs: Number.NaN, flips: 0, restarts: 0 };
    this.pods.set(name, history);
    const { status, body } = await this.request('POST', PODS, pod);
    history.acceptedMs = performance.now();
    if (status !== 201) throw new Error(`creating ${name}: ${status} ${JSON.stringify(body)}`);
    history.uid = (body as Pod).metadata.uid;
    return history;
  }

  /** Settles when the server has accepted the deletion. */
  async remove(history: PodHistory, graceSeconds: number): Promise<void> {
    const { status } = await this.request('DELETE', `${PODS}/${history.name}`, { gracePeriodSeconds: graceSeconds });
    history.deletedMs = performance.now();
    if (status !== 200) throw new Error(`deleting ${history.name}: ${status}`);
  }

  ready(all: readonly PodHistory[], timeoutMs: number): Promise<void> {
    return this.until(`${all.length} pods to be Ready`, timeoutMs, () => all.every((p) => p.readyMs !== undefined));
  }
  gone(all: readonly PodHistory[], timeoutMs: number): Promise<void> {
    return this.until(`${all.length} pods to be gone`, timeoutMs, () => all.every((p) => p.goneMs !== undefined));
  }

  #take(type: string, pod: Pod): void {
    const at = performance.now();
    const history = this.pods.get(pod.metadata.name);
    if (history === undefined) return;
    if (type === 'DELETED') {
      history.goneMs = at;
      return;
    }
    if (pod.spec.nodeName) history.boundMs ??= at;
    history.restarts = Math.max(history.restarts, ...(pod.status.containerStatuses ?? []).map((c) => c.restartCount));
    const ready = pod.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
    if (ready) history.readyMs ??= at;
    const deleting = pod.metadata.deletionTimestamp !== undefined && pod.metadata.deletionTimestamp !== null;
    if (!deleting && this.#wasReady.has(pod.metadata.uid) && !ready) history.flips++;
    if (ready) this.#wasReady.add(pod.metadata.uid);
    else this.#wasReady.delete(pod.metadata.uid);
  }
  readonly #wasReady = new Set<string>();
}
