/** Buckets of durations, in seconds, as the reference's metrics have them. */

/** Prometheus' own default. */
export const DEFAULT_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;
export const STORAGE_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600] as const;
