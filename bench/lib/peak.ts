/** The most resident memory of one process over some time. */
import { stat } from './procs.ts';

const SAMPLE_EVERY_MS = 250;

/** Begins to sample; the returned function ends it and gives MiB. */
export function residentPeak(pid: number): () => number {
  let bytes = 0;
  const sample = (): void => {
    bytes = Math.max(bytes, stat(pid)?.rssBytes ?? 0);
  };
  sample();
  const timer = setInterval(sample, SAMPLE_EVERY_MS);
  return () => {
    clearInterval(timer);
    sample();
    return bytes / 2 ** 20;
  };
}
