/** What to do about an image, and how it is said (pod lifecycle 5.8). Pure. */

import type { RecordedEvent } from '../../foundation/messages.ts';
import type { PullPolicy } from '../../kube/words.ts';
import type { StartFailure } from '../../pod/runtime/seen.ts';

export type ImageDecision = 'present' | 'never' | 'pull';

/** An unknown or empty policy means: do not pull. */
export function decideImage(policy: PullPolicy | string, present: boolean): ImageDecision {
  if (policy === 'Always') return 'pull';
  if (present) return 'present';
  return policy === 'IfNotPresent' ? 'pull' : 'never';
}

export type ImageEventText = Pick<RecordedEvent, 'type' | 'reason' | 'message'>;
const normal = (reason: string, message: string): ImageEventText => ({ type: 'Normal', reason, message });
const warning = (reason: string, message: string): ImageEventText => ({ type: 'Warning', reason, message });

/** `850ms`, `1.234s`, `2m3.004s`. */
export function pullDuration(ms: number): string {
  const whole = Math.max(0, Math.trunc(ms));
  if (whole < 1000) return `${whole}ms`;
  const seconds = (rest: number) => `${String(rest / 1000)}s`;
  if (whole < 60_000) return seconds(whole);
  return `${Math.floor(whole / 60_000)}m${seconds(whole % 60_000)}`;
}

export const imageEvents = {
  present: (image: string) => normal('Pulled', `Container image "${image}" already present on machine`),
  /** Where credentials are verified. */
  accessible: (image: string) => normal('Pulled', `Container image "${image}" already present on machine and can be accessed by the pod`),
  pulling: (image: string) => normal('Pulling', `Pulling image "${image}"`),
  pulled: (image: string, o: { pullMs: number; totalMs: number; bytes: string }) =>
    normal(
      'Pulled',
      `Successfully pulled image "${image}" in ${pullDuration(o.pullMs)} (${pullDuration(o.totalMs)} including waiting). Image size: ${o.bytes} bytes.`,
    ),
  pullFailed: (image: string, error: string) => warning('Failed', `Failed to pull image "${image}": ${error}`),
  backOff: (image: string) => normal('BackOff', `Back-off pulling image "${image}"`),
  invalidName: (image: string, error: string) => warning('InspectFailed', `Failed to apply default image tag "${image}": ${error}`),
  inspectFailed: (image: string, error: string) => warning('InspectFailed', `Failed to inspect image "${image}": ${error}`),
  never: (image: string) => warning('ErrImageNeverPull', `Container image "${image}" is not present with pull policy of Never`),
} as const;

export const imageFailures = {
  invalidName: (image: string, error: string): StartFailure => ({
    reason: 'InvalidImageName',
    message: `Failed to apply default image tag "${image}": ${error}`,
  }),
  inspect: (image: string, error: string): StartFailure => ({
    reason: 'ImageInspectError',
    message: `Failed to inspect image "${image}": ${error}`,
  }),
  /** Also where the pod does not show that it may use the one that is there: others need not know that it is. */
  never: (image: string): StartFailure => ({
    reason: 'ErrImageNeverPull',
    message: `Container image "${image}" is not present with pull policy of Never`,
  }),
  backOff: (image: string, previous: string): StartFailure => ({
    reason: 'ImagePullBackOff',
    message: `Back-off pulling image "${image}"${previous === '' ? '' : `: ${previous}`}`,
  }),
  unrecorded: (image: string, error: string): StartFailure => ({
    reason: 'ErrImagePull',
    message: `Failed to record image pull intent for container image "${image}": ${error}`,
  }),
  /** The runtime names two special causes by the first word of its error. */
  pull: (image: string, error: string): StartFailure => {
    for (const [word, why] of [
      ['RegistryUnavailable', 'the registry is unavailable'],
      ['SignatureValidationFailed', 'the signature validation failed'],
    ] as const) {
      if (!error.startsWith(word)) continue;
      const rest = error.slice(word.length).replace(/^[:\s]+/, '');
      return { reason: word, message: `image pull failed for ${image} because ${why}${rest === '' ? '' : `: ${rest}`}` };
    }
    return { reason: 'ErrImagePull', message: error };
  },
} as const;
