/** The kubelet's metric of image pulls. */
import type { Metrics } from '../../../ports/ports.ts';

const SECONDS = [1, 5, 10, 20, 30, 60, 180, 300, 600, 900, 1200, 1800, 2700, 3600];
const MB = 1024 * 1024;
const GB = 1024 * MB;
/** Sizes from which on an image belongs to a class, the largest first. */
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

export function pullMetrics(metrics: Metrics): { pulled(bytes: number, seconds: number): void } {
  const duration = metrics.histogram('kubelet_image_pull_duration_seconds', 'Seconds that the pull of an image took', SECONDS, [
    'image_size_in_bytes',
  ]);
  return {
    pulled: (bytes, seconds) => duration.observe(seconds, { image_size_in_bytes: SIZES.find(([from]) => bytes >= from)?.[1] ?? 'N/A' }),
  };
}
