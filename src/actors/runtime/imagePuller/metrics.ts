/** The kubelet's metrics of images: pulls, and what came of each question for an image. */
import type { PullPolicy } from '../../../machines/kube/words.ts';
import type { Metrics } from '../../../ports/ports.ts';
import type { PullCheck } from './pullRecords.ts';

const SECONDS = [1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600];
const MB = 1024 * 1024;
const GB = 1024 * MB;
/** An image that is larger than this belongs to a class; the largest class first. */
const SIZES: readonly (readonly [bytes: number, label: string])[] = [
  [100 * GB, 'GT100GB'],
  [60 * GB, '60GB-100GB'],
  [40 * GB, '40GB-60GB'],
  [30 * GB, '30GB-40GB'],
  [20 * GB, '20GB-30GB'],
  [10 * GB, '10GB-20GB'],
  [5 * GB, '5GB-10GB'],
  [1 * GB, '1GB-5GB'],
  [500 * MB, '500MB-1GB'],
  [100 * MB, '100MB-500MB'],
  [10 * MB, '10MB-100MB'],
  [0, '0-10MB'],
];

/** What was known when a question for an image was decided; null: that was not looked at. */
export interface ImageSeen {
  present: boolean | null;
  pullRequired: boolean | null;
}

export interface PullMetrics {
  pulled(bytes: number, seconds: number): void;
  asked(policy: PullPolicy, seen: ImageSeen): void;
  checked(result: PullCheck): void;
}

export function pullMetrics(metrics: Metrics): PullMetrics {
  const duration = metrics.histogram('kubelet_image_pull_duration_seconds', 'Seconds that the pull of an image took', SECONDS, [
    'image_size_in_bytes',
  ]);
  const asked = metrics.counter('kubelet_image_manager_ensure_image_requests_total', 'Questions of containers for their images', [
    'pull_policy',
    'present_locally',
    'pull_required',
  ]);
  const checks = metrics.counter(
    'kubelet_imagemanager_image_mustpull_checks_total',
    'Checks whether a pod may use an image that is on the node, by what they came to',
    ['result'],
  );
  const said = (known: boolean | null): string => (known === null ? 'unknown' : String(known));
  return {
    pulled: (bytes, seconds) => duration.observe(seconds, { image_size_in_bytes: SIZES.find(([from]) => bytes > from)?.[1] ?? 'N/A' }),
    asked: (policy, { present, pullRequired }) =>
      asked.inc({ pull_policy: policy.toLowerCase(), present_locally: said(present), pull_required: said(pullRequired) }),
    checked: (result) => checks.inc({ result }),
  };
}
