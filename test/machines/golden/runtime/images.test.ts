/** Images (pod lifecycle 5.8), pull credentials (5.9), and both kinds of back-off (5.8, 5.12): a row for each line. */
import { TokenBucket } from '../../../../src/machines/data/tokenBucket.ts';
import { withDefaultTag } from '../../../../src/machines/kube/imageRef.ts';
import type { Container } from '../../../../src/machines/kube/podTable.ts';
import type { CrashBackoffEntry } from '../../../../src/machines/pod/runtime/seen.ts';
import {
  BACKOFF_BASE_MS,
  backoffKey,
  type CheckBackoffInput,
  checkBackoff,
} from '../../../../src/machines/pods/workers/container/crashBackoff.ts';
import { afterFailure, type ImageBackoffEntry, remainingMs } from '../../../../src/machines/runtime/imagePuller/imageBackoff.ts';
import { decideImage, imageEvents, imageFailures, pullDuration } from '../../../../src/machines/runtime/imagePuller/imagePolicy.ts';
import { locationMatches } from '../../../../src/machines/runtime/imagePuller/keyring.ts';
import { container, T0_MS } from '../../pods/fixtures.ts';
import { pullCredentials } from '../../pullCredentials.ts';
import { goldenTable } from '../table.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;
const POLICIES = ['Always', 'IfNotPresent', 'Never', ''] as const;
const S = 1_000;

// ---- credentials -------------------------------------------------------------------------------------------------
const bytes = (value: unknown) => new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value));
const user = (username: string) => ({ username, password: 'p' });
const config = (auths: Record<string, unknown>) => ({
  type: 'kubernetes.io/dockerconfigjson',
  data: { '.dockerconfigjson': bytes({ auths }) },
});
const pull = (image: string, ...secrets: { type?: string; data: Record<string, Uint8Array> }[]) => {
  const result = pullCredentials(
    secrets.map((secret, i) => ({ namespace: 'ns', name: `s${i}`, secret })),
    image,
  );
  return result.ok ? result.auths.map((a) => a.auth.username) : result.message;
};

// ---- back-off ----------------------------------------------------------------------------------------------------
const images = (entry: ImageBackoffEntry | undefined, afterMs: number) => {
  const next = afterFailure(entry, (entry?.failedAtMonoMs ?? 0) + afterMs, 'ErrImagePull: no');
  return { delayMs: next.delayMs, previous: next.previous };
};
const failed = (delayMs: number): ImageBackoffEntry => ({ delayMs, failedAtMonoMs: 1_000 * S, previous: 'no' });
const entry = (delayMs: number, updatedAt = 0): CrashBackoffEntry => ({
  delayMs,
  updatedAtMonoMs: updatedAt,
  updatedAtWallMs: T0_MS + updatedAt,
});
/** The container ran from `started` to `finished`, and `now` it is asked whether it may start; ms since T0. */
const crash = (o: {
  entry?: CrashBackoffEntry;
  finished?: number | null;
  started?: number;
  now: number;
  restarts?: number;
  maxMs?: number;
  baseMs?: number;
  remembered?: boolean;
}) => {
  const input: CheckBackoffInput = {
    entry: o.entry,
    newestExited:
      o.finished === undefined
        ? null
        : { startedAtMs: T0_MS + (o.started ?? 0), finishedAtMs: o.finished === null ? null : T0_MS + o.finished, hash: '' },
    restartCount: o.restarts ?? 0,
    nowWallMs: T0_MS + o.now,
    nowMonoMs: o.now,
    baseMs: o.baseMs ?? BACKOFF_BASE_MS,
    maxMs: o.maxMs ?? 300 * S,
    ...(o.remembered === true ? { rememberedSinceWallMs: T0_MS - S } : {}),
  };
  const verdict = checkBackoff(input);
  return verdict.allowed
    ? { start: true, nextDelayMs: verdict.next?.delayMs }
    : { start: false, inMs: verdict.retryAtWallMs - input.nowWallMs, delayMs: verdict.delayMs };
};
const key = (more: Partial<Container>) => backoffKey(container('web', more)) === backoffKey(container('web'));

goldenTable('images and back-off are as recorded', 'runtime/images', {
  ...Object.fromEntries(
    POLICIES.flatMap((policy) =>
      [true, false].map((present) => [
        `5.8 policy ${policy || 'of no name'}, ${present ? 'present' : 'absent'}`,
        () => decideImage(policy, present),
      ]),
    ),
  ),
  '5.8 name: no tag': () => withDefaultTag('busybox'),
  '5.8 name: a tag': () => withDefaultTag('busybox:1.36'),
  '5.8 name: a digest': () => withDefaultTag(`busybox@${DIGEST}`),
  '5.8 name: a port is no tag': () => withDefaultTag('localhost:5000/busybox'),
  '5.8 name: cannot be read': () => withDefaultTag('BusyBox:?'),
  '5.8 name: empty': () => withDefaultTag(''),
  '5.8 failures': () => ({
    invalidName: imageFailures.invalidName('B', 'why'),
    inspect: imageFailures.inspect('b', 'why'),
    never: imageFailures.never('b'),
    backOff: imageFailures.backOff('b', ''),
    backOffAfter: imageFailures.backOff('b', 'ErrImagePull: why'),
    pull: imageFailures.pull('b', 'why'),
    registry: imageFailures.pull('b', 'RegistryUnavailable: why'),
    signature: imageFailures.pull('b', 'SignatureValidationFailed: why'),
  }),
  '5.8 events': () => ({
    present: imageEvents.present('b'),
    pulling: imageEvents.pulling('b'),
    pulled: imageEvents.pulled('b', { pullMs: 1_500, totalMs: 61_000, bytes: '42' }),
    pullFailed: imageEvents.pullFailed('b', 'why'),
    backOff: imageEvents.backOff('b'),
    invalidName: imageEvents.invalidName('B', 'why'),
    inspectFailed: imageEvents.inspectFailed('b', 'why'),
    never: imageEvents.never('b'),
  }),
  '5.8 durations': () => [0, 999, 1_000, 1_234, 60_000, 123_004].map(pullDuration),
  '5.8 back-off: the first failure': () => images(undefined, 0),
  '5.8 back-off: the next failure': () => images(failed(10 * S), 10 * S),
  '5.8 back-off: no longer than 300 s': () => images(failed(200 * S), 200 * S),
  '5.8 back-off: ten minutes after the last': () => images(failed(300 * S), 600 * S),
  '5.8 back-off: more than ten minutes after the last': () => images(failed(300 * S), 600 * S + 1),
  '5.8 back-off: what is left of it': () => [0, 9, 10, 11].map((s) => remainingMs(failed(10 * S), (1_000 + s) * S)),
  '5.8 rate: a burst, then the rate': () => {
    const bucket = new TokenBucket(1, 2);
    return [0, 0, 0, 999, 1_000, 1_000, 5_000, 5_000, 5_000].map((ms) => bucket.take(ms));
  },
  '5.8 rate: none': () => {
    const bucket = new TokenBucket(0, 1);
    return [0, 0, 0].map((ms) => bucket.take(ms));
  },

  '5.9 secret: dockerconfigjson': () => pull('r.example/a', config({ 'r.example': user('u') })),
  '5.9 secret: dockercfg': () =>
    pull('r.example/a', { type: 'kubernetes.io/dockercfg', data: { '.dockercfg': bytes({ 'r.example': user('u') }) } }),
  '5.9 secret: of another type': () =>
    pull('r.example/a', { type: 'Opaque', data: { '.dockerconfigjson': bytes({ auths: { 'r.example': user('u') } }) } }),
  '5.9 secret: no JSON': () => pull('r.example/a', { type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': bytes('{') } }),
  '5.9 secret: no JSON, beside a good one': () =>
    pull('r.example/a', config({ 'r.example': user('u') }), { type: 'kubernetes.io/dockercfg', data: { '.dockercfg': bytes('{') } }),
  '5.9 secret: auth over user and password': () => pull('r.example/a', config({ 'r.example': { ...user('u'), auth: btoa('other:p') } })),
  '5.9 match: none: anonymous': () => pull('other.example/a', config({ 'r.example': user('u') })),
  '5.9 match: a scheme and the version of the API': () => pull('r.example/a/b', config({ 'https://r.example/v2/a': user('u') })),
  '5.9 match: the more specific first': () =>
    pull('r.example/team/app', config({ 'r.example': user('all'), 'r.example/team': user('team'), 'r.example/team/app': user('app') })),
  '5.9 match: secrets in their order': () =>
    pull('r.example/a', config({ 'r.example': user('one') }), config({ 'r.example': user('two') })),
  '5.9 match: the default registry': () => pull('busybox', config({ 'https://index.docker.io/v1/': user('u') })),
  '5.9 match: locations': () =>
    Object.fromEntries(
      [
        ['r.example', 'r.example/a'],
        ['r.example:5000', 'r.example/a'],
        ['r.example:5000', 'r.example:5000/a'],
        ['*.example', 'r.example/a'],
        ['*.example', 'a.r.example/a'],
        ['r?.example', 'r1.example/a'],
        ['r.example/team', 'r.example/team2/a'],
        ['r.example/team', 'r.example/other'],
      ].map(([glob = '', repository = '']) => [`${glob} of ${repository}`, locationMatches(glob, repository)]),
    ),

  '5.12 nothing has exited': () => crash({ now: 5 * S }),
  '5.12 the first exit': () => crash({ finished: 1 * S, now: 1 * S }),
  '5.12 the second exit': () => crash({ entry: entry(10 * S, 1 * S), finished: 2 * S, now: 2 * S }),
  '5.12 the second exit, within the wait': () => crash({ entry: entry(10 * S, 1 * S), finished: 2 * S, now: 11 * S }),
  '5.12 the second exit, the wait is over': () => crash({ entry: entry(10 * S, 1 * S), finished: 2 * S, now: 12 * S }),
  '5.12 no longer than the cap': () => crash({ entry: entry(300 * S), finished: 1 * S, now: 301 * S }),
  '5.12 the exit is 600 s after the last advance': () => crash({ entry: entry(160 * S), finished: 600 * S, now: 600 * S }),
  '5.12 the exit is more than 600 s after the last advance': () =>
    crash({ entry: entry(160 * S), finished: 600 * S + 1, now: 600 * S + 1 }),
  '5.12 a lower cap': () => crash({ entry: entry(300 * S), finished: 1 * S, now: 1 * S, maxMs: 60 * S }),
  '5.12 a cap below the base': () => crash({ finished: 1 * S, now: 1 * S, maxMs: 1 * S }),
  '5.12 another base': () => crash({ finished: 1 * S, now: 1 * S, baseMs: 1 * S, maxMs: 60 * S }),
  '5.12 forgotten by a restart: inferred from the restart count': () =>
    [0, 1, 2, 3, 5, 9].map((restarts) => crash({ finished: 1 * S, now: 1 * S, restarts })),
  '5.12 an instance whose whole life is remembered': () => crash({ finished: 1 * S, now: 1 * S, restarts: 3, remembered: true }),
  '5.12 whose end has no time': () => crash({ entry: entry(10 * S), finished: null, now: 1 * S }),
  '5.12 one series per definition: as it was': () => key({}),
  '5.12 one series per definition: another image': () => key({ image: 'example.org/web:v2' }),
  '5.12 one series per definition: another variable': () => key({ env: [{ name: 'A', value: 'b' }] }),
});
