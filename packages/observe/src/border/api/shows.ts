/** Whether an object of the API shows what a patch would have written. Pure. */
import { shownImage, userOfImage } from '@actorlet/kubelet/machines/kube/imageRef.ts';
import { compareQuantity, parseQuantity } from '@actorlet/kubelet/machines/kube/quantity.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { withoutSecrets } from '@actorlet/kubelet/machines/pod/peers/withoutSecrets.ts';
import { imagesOfPod } from '@actorlet/kubelet/machines/reclaim/imageGc/imageGc.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { goQuote } from '@actorlet/kubelet/machines/text/go/goQuote.ts';
import { secretsOfPod } from '@actorlet/shown/src/deaths/gathered.ts';

/** Two programs never write the same second. */
const TIMES: ReadonlySet<string> = new Set([
  'lastTransitionTime',
  'lastProbeTime',
  'lastHeartbeatTime',
  'startTime',
  'startedAt',
  'finishedAt',
  'renewTime',
]);
/** By which the server merges lists. */
const MERGE_KEYS = ['type', 'name', 'ip'] as const;
/** What each program counts for itself. */
const OWN: ReadonlySet<string> = new Set(['observedGeneration', 'resourceVersion', 'uid']);

/** The same of a pod's status, without words of its commands and users of its images: each program may say them, or mask them. */
export function missingOfPod(wanted: unknown, pod: KubeObject): string[] {
  const { spec } = pod;
  const plain = missingOf(wanted, pod.status, 'status');
  if (plain.length === 0 || !isRecord(spec) || !Array.isArray(spec.containers)) return plain;
  const secrets = secretsOfPod(pod as KubeObject & Pod);
  const images = imagesOfPod(pod as KubeObject & Pod).filter((image) => userOfImage(image) !== null);
  const written = images.flatMap((image) => [image, goQuote(image).slice(1, -1)]);
  const hidden = (message: string): string =>
    withoutSecrets(
      written.reduce((text, image) => text.replaceAll(image, shownImage(image)), message),
      secrets,
    );
  const [without, has] = [wanted, pod.status].map((status) => withMessages(status, hidden));
  return missingOf(without, has, 'status');
}
function withMessages(value: unknown, of: (message: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => withMessages(item, of));
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).map(([key, v]) => [key, key === 'message' && typeof v === 'string' ? of(v) : withMessages(v, of)]);
  return Object.fromEntries(entries);
}

/** Where the object says something else: `status.phase is Pending, not Running`. Empty: it shows all of the patch. */
export function missingOf(wanted: unknown, has: unknown, path = ''): string[] {
  if (wanted === null || wanted === undefined) return has === null || has === undefined ? [] : [`${path} is ${brief(has)}, not absent`];
  if (Array.isArray(wanted)) return missingOfList(wanted, has, path);
  const other = [`${path} is ${brief(has)}, not ${brief(wanted)}`];
  if (!isRecord(wanted)) return sameWords(wanted, has) || sameAmount(path, wanted, has) ? [] : other;
  if (!isRecord(has)) return Object.keys(wanted).length === 0 ? [] : other;
  const missing: string[] = [];
  const isAlike = CONTAINERS.test(path) && (failedToStart(wanted.state, has.state) || backsOff(wanted, has));
  for (const [key, value] of Object.entries(wanted)) {
    if (isAlike && (key === 'state' || key === 'lastState')) continue;
    if (key.startsWith('$') || OWN.has(key)) continue;
    // A time says that it was then; that it is said at all is what both agree on.
    if (TIMES.has(key)) continue;
    missing.push(...missingOf(value, has[key], path === '' ? key : `${path}.${key}`));
  }
  if (STATES.test(path)) for (const key of Object.keys(has)) missing.push(...unsaid(wanted, has, { key, path }));
  return missing;
}

/**
 * A program that could not start a container says so until it looks at the pod again, 10 to 15 s later. Only then it says that it backs
 * off. The two do not look at the same moment.
 */
const CONTAINERS = /(?:^|\.)\w*[cC]ontainerStatuses\[[^\]]*\]$/;
const START_FAILED = 'RunContainerError';
const START_REASONS: readonly unknown[] = ['CrashLoopBackOff', 'StartError', START_FAILED];
function failedToStart(wanted: unknown, has: unknown): boolean {
  const reasonOf = (state: unknown, key: 'waiting' | 'terminated'): unknown =>
    isRecord(state) && isRecord(state[key]) ? state[key].reason : undefined;
  const both = [wanted, has].map((state) => reasonOf(state, 'waiting') ?? reasonOf(state, 'terminated'));
  return both.includes(START_FAILED) && both.every((reason) => START_REASONS.includes(reason));
}

/**
 * One says that the instance ended, the other that it backs off after that instance. When a kubelet last started it is in its memory: who
 * has not seen all instances counts from another start.
 */
function backsOff(ended: Readonly<Record<string, unknown>>, waits: Readonly<Record<string, unknown>>): boolean {
  const { state, lastState } = waits;
  const isWaiting = isRecord(state) && isRecord(state.waiting) && state.waiting.reason === 'CrashLoopBackOff';
  const id = terminatedId(ended.state);
  return isWaiting && id !== undefined && id === terminatedId(lastState);
}
function terminatedId(state: unknown): unknown {
  return isRecord(state) && isRecord(state.terminated) ? state.terminated.containerID : undefined;
}

/** What became of a container is told as a whole: a word too many is another fate. */
const STATES = /\.(?:state|lastState)(?:\.\w+)?$/;
function unsaid(
  wanted: Readonly<Record<string, unknown>>,
  has: Readonly<Record<string, unknown>>,
  { key, path }: { key: string; path: string },
): string[] {
  if (Object.hasOwn(wanted, key) || TIMES.has(key) || has[key] === null || has[key] === undefined) return [];
  return [`${path}.${key} is ${brief(has[key])}, not absent`];
}

function missingOfList(wanted: readonly unknown[], has: unknown, path: string): string[] {
  const items: readonly unknown[] = Array.isArray(has) ? has : [];
  const parts = wanted.filter((part) => !(isRecord(part) && part.$patch === 'replace'));
  const whole = parts.length < wanted.length;
  if (whole && parts.length !== items.length) return [`${path} has ${items.length} entries, not ${parts.length}: ${brief(parts)}`];
  const missing: string[] = [];
  for (const [at, part] of parts.entries()) {
    const keys = path.endsWith('.volumeMounts') ? (['mountPath'] as const) : MERGE_KEYS;
    const key = isRecord(part) ? keys.find((k) => typeof part[k] === 'string') : undefined;
    const named = key === undefined || !isRecord(part) ? `${path}[${at}]` : `${path}[${String(part[key])}]`;
    const found = key === undefined || !isRecord(part) ? items[at] : items.find((item) => isRecord(item) && item[key] === part[key]);
    if (isRecord(part) && part.$patch === 'delete') {
      if (found !== undefined) missing.push(`${named} is there`);
      continue;
    }
    missing.push(...missingOf(part, found, named));
  }
  return missing;
}

/** How long it backs off is in a kubelet's memory alone: one that began later counts from another start. */
const BACK_OFF = /^back-off \S+ restarting failed /;
function sameWords(wanted: unknown, has: unknown): boolean {
  if (wanted === has) return true;
  if (typeof wanted !== 'string' || typeof has !== 'string') return false;
  if (PULL_REASONS.has(wanted) && PULL_REASONS.has(has)) return true;
  if (BARE_BACK_OFF.test(has) || (UNKNOWN_END.test(wanted) && UNKNOWN_END.test(has))) return true;
  if (PULL_BACK_OFF.test(wanted) || PULL_BACK_OFF.test(has)) return pullWords(wanted) === pullWords(has);
  return BACK_OFF.test(wanted) && wanted.replace(BACK_OFF, '') === has.replace(BACK_OFF, '');
}

/** Each has words of its own for an end that nobody saw. */
const UNKNOWN_END = /^(?:The container could not be located when the pod was |the pod has ended and the runtime did not say )/;
/** Whether it tries or waits to try again is a matter of when it last looked at the pod. */
const PULL_REASONS: ReadonlySet<string> = new Set(['ErrImagePull', 'ImagePullBackOff']);
const PULL_BACK_OFF = /^Back-off pulling image "[^"]*"(?:: ErrImagePull: |: )/;
/** Before 1.32 a kubelet that backs off does not say why. */
const BARE_BACK_OFF = /^Back-off pulling image "[^"]*"$/;
/** Of the failure itself, without what is said of the back-off. */
export function pullWords(message: string): string {
  return message.replace(PULL_BACK_OFF, '');
}

/** The kubelet writes an amount anew, in the unit that fits: `31250Ki` for 32M. */
const AMOUNTS = /\.(?:requests|limits|allocatedResources|capacity|allocatable)\./;
function sameAmount(path: string, wanted: unknown, has: unknown): boolean {
  if (typeof wanted !== 'string' || typeof has !== 'string' || !AMOUNTS.test(path)) return false;
  const [a, b] = [parseQuantity(wanted), parseQuantity(has)];
  return a !== undefined && b !== undefined && compareQuantity(wanted, has) === 0;
}

const BRIEF_CHARS_MAX = 120;
function brief(value: unknown): string {
  const text = value === undefined ? 'absent' : typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > BRIEF_CHARS_MAX ? `${text.slice(0, BRIEF_CHARS_MAX)}…` : text;
}
