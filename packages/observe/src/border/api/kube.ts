/** The API server behind the border: it is read, and a write is waited for, as the kubelet makes it. */
import {
  isKubeObject,
  isRefusal,
  type KubeFailure,
  type KubeObject,
  type KubeRequest,
  type KubeResult,
  kubePath,
} from '@actorlet/kubelet/machines/kube/request.ts';
import { ANNOTATION_MIRROR } from '@actorlet/kubelet/machines/pod/names.ts';
import { STATUS_UNKNOWN_REASON } from '@actorlet/kubelet/machines/pods/status/containers.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { KubeApi, KubeCallOptions, KubeWatch } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { ASKED_AGAIN_MS, type Expectations } from '../expectations.ts';
import { knownDifference } from '../kinds.ts';
import { isUnsaid } from '../releases.ts';
import { type KubeWrite, writeOf } from '../table.ts';
import { untilShown, type WaitEnd } from '../waiting.ts';
import type { Wanted } from '../wanted.ts';
import { NODE_WAIT_MS, nodeWish } from './nodeStatus.ts';
import {
  endedBy,
  hasEnded,
  isAhead,
  isCreating,
  isRefused,
  isUnseen,
  isWaiting,
  PULLED,
  type StateOf,
  statusWords,
  withoutAddress,
  withoutOtherEnds,
  withoutPast,
} from './podStatus.ts';
import { SeenObjects } from './seenObjects.ts';
import { missingOf, missingOfPod } from './shows.ts';

const POD = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)$/;
const LEASES = 'kube-node-lease';
const CONFLICT = 409;
const STATUS_WAIT_MS = 2_000;
/** Of one object, in words. */
const DIFFERENCES_MAX = 8;
/** A watch of the lease that ended is opened again after this. */
const WATCH_AGAIN_MS = 5_000;
const WATCH_TIMEOUT_MS = 10_000;
/** A kubelet renews its lease every 10 s: a reader sees that within the bound of the kind. */
const LEASE_READ_MS = 8_000;
/** One that was to be renewed so long ago is read so often. */
const LEASE_LATE_MS = 4_000;
const LEASE_READ_LATE_MS = 2_000;
/** Rights seldom change. */
const REFUSED_WATCH_AGAIN_MS = 600_000;
/** What stands in the place of a token: nobody is given it. */
const NO_TOKEN = 'observed';

interface KubeBorderOptions {
  clock: Clock;
  expectations: Expectations;
  stateOf: StateOf;
  /** A container of this pod runs. */
  isRunning(uid: string): boolean;
  gates: Readonly<Record<string, boolean>>;
}

export class KubeBorder {
  readonly #kube: KubeApi;
  readonly #clock: Clock;
  readonly #expectations: Expectations;
  readonly #seen: SeenObjects;
  readonly #ended = new AbortController();
  #leaseWatched = false;
  /** By pod, while its status is looked for. */
  readonly #following = new Map<string, AbortController>();
  /** The renewal after which the next is waited for. The tree asks again when its call is over: what came meanwhile is it. */
  #renewedBefore: { ms: number; askedMs: number } | null = null;

  readonly #stateOf: StateOf;
  readonly #isRunning: KubeBorderOptions['isRunning'];

  readonly #gates: Readonly<Record<string, boolean>>;

  /** `gates`: as the configuration of the kubelet sets them. */
  constructor(kube: KubeApi, o: KubeBorderOptions) {
    this.#kube = kube;
    this.#gates = o.gates;
    this.#stateOf = o.stateOf;
    this.#isRunning = o.isRunning;
    this.#clock = o.clock;
    this.#expectations = o.expectations;
    this.#seen = new SeenObjects(o.clock, o.expectations);
  }

  get seen(): SeenObjects {
    return this.#seen;
  }

  request = async (request: KubeRequest, opts: KubeCallOptions): Promise<KubeResult> => {
    if (request.verb === 'GET') {
      const known = this.#known(request);
      if (known !== undefined) return { ok: true, code: 200, body: known };
      const result = await this.#kube.request(request, opts);
      this.#seen.learn(request, result);
      return result;
    }
    const write = writeOf(request);
    if (write === null) return { ok: false, failure: refusal(request) };
    return this.#expected(write, request, opts);
  };

  watch = async (request: Pick<KubeRequest, 'path' | 'query'>, opts: KubeCallOptions): Promise<KubeWatch> => {
    const opened = await this.#kube.watch(request, opts);
    return opened.ok ? { ok: true, lines: this.#seen.hearing(request.path, opened.lines) } : opened;
  };

  /** Ends what it opened by itself. */
  close = (): void => {
    this.#ended.abort();
    this.#kube.close();
  };

  /** A pod is asked for after a conflict, and its watch has shown it already. */
  #known({ path }: KubeRequest): KubeObject | undefined {
    const [, namespace, name] = POD.exec(path) ?? [];
    return namespace === undefined || name === undefined ? undefined : this.#seen.byName('pods', namespace, name);
  }

  #expected(write: KubeWrite, request: KubeRequest, opts: KubeCallOptions): Promise<KubeResult> {
    const body = isRecord(request.body) ? request.body : {};
    switch (write.kind) {
      case 'podStatus':
        return this.#podStatus(write, body, opts);
      case 'podDeletion': {
        const { namespace, name } = write;
        const uid = uidOf(body.preconditions);
        const look = (): KubeResult | undefined => {
          const pod = this.#seen.byName('pods', namespace, name);
          if (pod === undefined || (uid !== '' && pod.metadata.uid !== uid)) return { ok: true, code: 200, body: {} };
          // A static pod took the UID of its mirror meanwhile: the tree decides anew.
          const mirrored = isRecord(pod.metadata.annotations) ? pod.metadata.annotations[ANNOTATION_MIRROR] : undefined;
          const isKept = typeof mirrored === 'string' && this.#expectations.has(mirrored);
          return isKept ? { ok: false, failure: conflict(name) } : undefined;
        };
        return this.#until({ kind: 'PodDeletion', pod: `${namespace}/${name}`, uid, what: 'removed the pod from the API' }, look, opts);
      }
      case 'mirrorPod': {
        const { namespace } = write;
        const { name = '', annotations } = isRecord(body.metadata) ? (body.metadata as Partial<KubeObject['metadata']>) : {};
        const look = (): KubeResult | undefined => {
          const pod = this.#seen.byName('pods', namespace, name);
          const isMirror = isRecord(pod?.metadata.annotations) && pod.metadata.annotations[ANNOTATION_MIRROR] !== undefined;
          return pod !== undefined && isMirror && isRecord(annotations) ? { ok: true, code: 201, body: pod } : undefined;
        };
        const uid = isRecord(annotations) ? String(annotations[ANNOTATION_MIRROR]) : '';
        // A kubelet makes none for a pod that has ended.
        const isJudged = () => this.#isRunning(uid);
        return this.#until({ kind: 'MirrorPod', pod: `${namespace}/${name}`, uid: '', what: 'made the mirror pod', isJudged }, look, opts);
      }
      case 'nodeStatus':
        return this.#nodeStatus(body, opts);
      case 'lease':
        return this.#lease(body, opts);
      case 'csiNode':
        return this.#csiNode(request, opts);
      case 'event':
        // Nobody waits for an event.
        return Promise.resolve({ ok: true, code: 201, body });
      case 'token':
        return Promise.resolve({ ok: true, code: 201, body: this.#token(body) });
    }
  }

  #podStatus({ namespace, name }: { namespace: string; name: string }, body: Record<string, unknown>, opts: KubeCallOptions) {
    const uid = uidOf(body.metadata);
    const status = withoutPast(body.status);
    const what = `written ${statusWords(status)}`;
    const now = this.#seen.byName('pods', namespace, name);
    const isJudged = () => {
      const has = this.#seen.byName('pods', namespace, name);
      // The kubelet has said something since: the tree decides anew.
      if (has?.metadata.resourceVersion !== now?.metadata.resourceVersion) return false;
      // Of a pod that is to end, the kubelet alone knows what it has not begun.
      if (has?.metadata.deletionTimestamp !== undefined && endedBy(status).has(STATUS_UNKNOWN_REASON)) return false;
      // It tells of containers that this tree has not come to yet.
      if (isAhead(has?.status, status, this.#stateOf)) return false;
      if (!isCreating(has?.status)) return true;
      // A kubelet pulls one image after the other, and says nothing of a pod that waits for one: also of one that is to end.
      const isSilent = has?.metadata.deletionTimestamp !== undefined || this.#expectations.awaits('PullImage');
      // That a pull failed, the tree knows from another pod of that image. A container that was made is told of.
      return !isSilent && (isAhead(status, has?.status, this.#stateOf) || !isWaiting(status, PULLED));
    };
    const wanted: Wanted = { kind: 'PodStatus', pod: `${namespace}/${name}`, uid, what, oneAtATime: true, isJudged };
    // A tree that begins, or came too late to see a container end, completes what it finds; the kubelet was there, and is believed.
    if (now !== undefined && (this.#seen.hadEnded(uid) || isUnseen(status, now.status) || isRefused(now.status, status)))
      return Promise.resolve({ ok: true as const, code: 200, body: now });
    const missing = (pod: KubeObject): string[] => {
      const wish = withoutOtherEnds(status, pod.status);
      return missingOfPod(hasEnded(pod.status) ? withoutAddress(wish) : wish, pod);
    };
    const look = (): KubeResult | undefined => {
      const pod = this.#seen.byName('pods', namespace, name);
      if (pod === undefined || (uid !== '' && pod.metadata.uid !== uid))
        return { ok: false, failure: notFound(`pods "${name}" not found`) };
      if (this.#shows(wanted, missing(pod))) return { ok: true, code: 200, body: pod };
      const isSame = pod.metadata.resourceVersion === now?.metadata.resourceVersion;
      if (!isSame || isAhead(pod.status, status, this.#stateOf))
        this.#expectations.excused((act) => act.kind === 'PodStatus' && act.uid === pod.metadata.uid);
      // The kubelet said something else meanwhile: the tree decides anew, and its new wish has its own time.
      return isSame ? undefined : { ok: false, failure: conflict(name) };
    };
    const isShown = (): true | undefined => {
      const pod = this.#seen.byName('pods', namespace, name);
      const isIt = pod !== undefined && (uid === '' || pod.metadata.uid === uid);
      // What is no longer otherwise begins anew when it is so again.
      return isIt && this.#shows(wanted, missing(pod)) ? true : undefined;
    };
    return this.#followed(wanted, isShown, () => this.#untilDecidedAnew(wanted, look, { name, opts }));
  }

  /** Whether it is as this tree would have written it, but for what is known to differ. */
  #shows(wanted: Wanted, missing: readonly string[]): boolean {
    const release = { version: this.#kubeletVersion(), gates: this.#gates };
    const unsaid = (difference: string): boolean => isUnsaid({ kind: wanted.kind, difference }, release);
    const unknown = missing.filter((what) => knownDifference(wanted.kind, what) === null && !unsaid(what));
    const shown = unknown.slice(0, DIFFERENCES_MAX);
    if (shown.length > 0) this.#expectations.instead(wanted, shown.join('; '), shown.map(fieldOf));
    else for (const what of missing) if (!unsaid(what)) this.#expectations.known(wanted, what);
    return unknown.length === 0;
  }

  #kubeletVersion(): string | null {
    for (const { status } of this.#seen.all('nodes')) {
      const info = isRecord(status) && isRecord(status.nodeInfo) ? status.nodeInfo : {};
      if (typeof info.kubeletVersion === 'string') return info.kubeletVersion;
    }
    return null;
  }

  /** The tree is answered in time whatever is missing: the object is then as the kubelet has it. */
  async #nodeStatus(body: Record<string, unknown>, opts: KubeCallOptions): Promise<KubeResult> {
    const nodeNow = (): KubeObject | undefined => this.#seen.all('nodes')[Symbol.iterator]().next().value;
    const wish = nodeWish(body, nodeNow());
    const expectation = this.#expectations.expect(wish);
    const look = (): 'came' | 'known' | undefined => {
      const node = nodeNow();
      const missing = node === undefined ? ['the node'] : wish.missing(node, this.#clock.wallMs());
      if (!this.#shows(wish, missing)) return undefined;
      return missing.length === 0 ? 'came' : 'known';
    };
    const end = await this.#seen.until({ kind: 'nodes' }, look, {
      ...opts,
      timeoutMs: Math.min(opts.timeoutMs ?? NODE_WAIT_MS, NODE_WAIT_MS),
    });
    if (end.kind === 'late') expectation.unanswered();
    else if (end.kind === 'shown' && end.value === 'came') expectation.came();
    else expectation.withdrawn();
    const node = nodeNow();
    if (node !== undefined && end.kind !== 'given up') return { ok: true, code: 200, body: node };
    return { ok: false, failure: { code: 0, reason: 'Aborted', message: 'the wait for the kubelet was given up', outcome: 'unknown' } };
  }

  #lease(body: Record<string, unknown>, opts: KubeCallOptions): Promise<KubeResult> {
    const name = isRecord(body.metadata) && typeof body.metadata.name === 'string' ? body.metadata.name : '';
    this.#watchLease(name);
    this.#renewedBefore ??= { ms: renewedMs(this.#seen.byName('leases', LEASES, name) ?? body), askedMs: this.#clock.monoMs() };
    const before = this.#renewedBefore.ms;
    const look = (): KubeResult | undefined => {
      const lease = this.#seen.byName('leases', LEASES, name);
      if (lease === undefined || renewedMs(lease) <= before) return undefined;
      this.#renewedBefore = null;
      return { ok: true, code: 200, body: lease };
    };
    return this.#until({ kind: 'Lease', pod: '', uid: '', what: 'renewed the lease of the node' }, look, opts);
  }

  /** The tree never watches its own lease. A kubelet may read it and not watch it: then it is asked for while it is waited for. */
  #watchLease(name: string): void {
    if (this.#leaseWatched) return;
    this.#leaseWatched = true;
    const request = { path: kubePath.leasesIn(LEASES), query: { fieldSelector: `metadata.name=${name}`, allowWatchBookmarks: 'true' } };
    const { signal } = this.#ended;
    const opts = { class: 'heartbeat', timeoutMs: WATCH_TIMEOUT_MS, signal } as const;
    let refusedUntilMs = Number.NEGATIVE_INFINITY;
    const follow = async (): Promise<void> => {
      const opened = await this.#kube.watch(request, opts);
      if (opened.ok) {
        for await (const _ of this.#seen.hearing(request.path, opened.lines)) if (signal.aborted) return;
      } else if (isRefusal(opened.failure)) refusedUntilMs = this.#clock.monoMs() + REFUSED_WATCH_AGAIN_MS;
    };
    const read = { verb: 'GET' as const, path: kubePath.lease(LEASES, name) };
    const learn = async (): Promise<void> => this.#seen.learn(read, await this.#kube.request(read, opts));
    const isRefused = (): boolean => this.#clock.monoMs() < refusedUntilMs;
    const readAgainMs = (): number => {
      const waitedMs = this.#renewedBefore === null ? 0 : this.#clock.monoMs() - this.#renewedBefore.askedMs;
      return waitedMs > LEASE_LATE_MS ? LEASE_READ_LATE_MS : LEASE_READ_MS;
    };
    const again = (): void => {
      if (!signal.aborted) this.#clock.setTimeout(run, isRefused() ? readAgainMs() : WATCH_AGAIN_MS);
    };
    // How it ended does not matter: it is opened again.
    const run = (): void => void (isRefused() ? learn() : follow()).then(again, again);
    run();
  }

  async #csiNode(request: KubeRequest, opts: KubeCallOptions): Promise<KubeResult> {
    const body = isRecord(request.body) ? request.body : {};
    const name = request.path.split('/')[5] ?? (isRecord(body.metadata) ? String(body.metadata.name ?? '') : '');
    const wanted: Wanted = { kind: 'CSINode', pod: '', uid: '', what: 'written the drivers of the node' };
    const look = async (): Promise<KubeResult | undefined> => {
      const found = await this.#kube.request(
        { verb: 'GET', path: kubePath.csiNode(name) },
        { timeoutMs: WATCH_TIMEOUT_MS, signal: opts.signal },
      );
      if (!found.ok || !isKubeObject(found.body)) return undefined;
      return missingOf(body.spec, found.body.spec, 'spec').length === 0 ? found : undefined;
    };
    return this.#settled(wanted, opts, () => untilShown(this.#clock, { look, timeoutMs: opts.timeoutMs, signal: opts.signal }));
  }

  /** A tree that decides anew may want nothing then, and does not ask again: the status is looked for all the same. */
  async #followed(wanted: Wanted, isShown: () => true | undefined, ask: () => Promise<KubeResult>): Promise<KubeResult> {
    this.#following.get(wanted.pod)?.abort();
    const result = await ask();
    if (result.ok || result.failure.code !== CONFLICT) return result;
    const ended = new AbortController();
    this.#following.set(wanted.pod, ended);
    const opts = { timeoutMs: ASKED_AGAIN_MS, signal: ended.signal };
    void this.#seen.until({ kind: 'pods', pod: wanted.pod }, isShown, opts).then(({ kind }) => {
      if (kind === 'shown') this.#expectations.cameLater(wanted);
      if (this.#following.get(wanted.pod) === ended) this.#following.delete(wanted.pod);
    });
    return result;
  }

  /** Not for long: a tree that has come to know better does not say so before this one is answered. */
  async #untilDecidedAnew(wanted: Wanted, look: () => KubeResult | undefined, { name, opts }: { name: string; opts: KubeCallOptions }) {
    const timeoutMs = Math.min(opts.timeoutMs ?? STATUS_WAIT_MS, STATUS_WAIT_MS);
    const result = await this.#until(wanted, look, { ...opts, timeoutMs });
    return !result.ok && result.failure.reason === 'Timeout' ? { ok: false as const, failure: conflict(name) } : result;
  }

  #until(wanted: Wanted, look: () => KubeResult | undefined, opts: KubeCallOptions): Promise<KubeResult> {
    const of = wanted.kind === 'Lease' ? ({ kind: 'leases' } as const) : ({ kind: 'pods', pod: wanted.pod } as const);
    return this.#settled(wanted, opts, () => this.#seen.until(of, look, opts));
  }

  async #settled(wanted: Wanted, opts: KubeCallOptions, wait: () => Promise<WaitEnd<KubeResult>>) {
    const expectation = this.#expectations.expect(wanted);
    const end = await wait();
    if (end.kind === 'shown') {
      if (end.value.ok) expectation.came();
      else if (end.value.failure.code === CONFLICT) expectation.unanswered();
      else expectation.withdrawn();
      return end.value;
    }
    if (end.kind === 'late') expectation.unanswered();
    else expectation.withdrawn();
    const message =
      end.kind === 'late' ? `the kubelet has not ${wanted.what} within ${opts.timeoutMs} ms` : 'the wait for the kubelet was given up';
    const failure: KubeFailure = { code: 0, reason: end.kind === 'late' ? 'Timeout' : 'Aborted', message, outcome: 'unknown' };
    return { ok: false as const, failure };
  }

  #token(body: Record<string, unknown>): unknown {
    const spec = isRecord(body.spec) ? body.spec : {};
    const seconds = typeof spec.expirationSeconds === 'number' ? spec.expirationSeconds : 3_600;
    const expirationTimestamp = new Date(this.#clock.wallMs() + seconds * 1_000).toISOString();
    return { ...body, status: { token: NO_TOKEN, expirationTimestamp } };
  }
}

/** Of a difference, without its values. */
function fieldOf(difference: string): string {
  return difference.split(' ', 1)[0] ?? '';
}

function uidOf(metadata: unknown): string {
  return isRecord(metadata) && typeof metadata.uid === 'string' ? metadata.uid : '';
}

function renewedMs(lease: Readonly<Record<string, unknown>>): number {
  const { renewTime } = isRecord(lease.spec) ? lease.spec : {};
  return typeof renewTime === 'string' ? Date.parse(renewTime) : 0;
}

function conflict(name: string): KubeFailure {
  const message = `pods "${name}": the object has been modified`;
  return { code: CONFLICT, reason: 'Conflict', message, outcome: 'failed' };
}

function notFound(message: string): KubeFailure {
  return { code: 404, reason: 'NotFound', message, outcome: 'failed' };
}

function refusal({ verb, path }: KubeRequest): KubeFailure {
  return { code: 403, reason: 'Forbidden', message: `${verb} ${path} is refused: this node is only observed`, outcome: 'failed' };
}
