/** The checkpoint of probe results: what a restarted node still knows of containers that ran on. Pure. */
import { type ContainerProbes, PROBE_TYPES, type ProbeLedger, type ProbeResult } from '../../pod/probes/probes.ts';

/** Name of the document. */
export const PROBES_CHECKPOINT = 'probes';

const RESULTS: readonly unknown[] = ['success', 'failure', 'unknown'];

/** Plain JSON: by container id the pod's UID, the container's name and its results. Those that only stand until the API server is heard are not kept. */
export function toCheckpoint(ledger: ProbeLedger): unknown {
  return { containers: Object.fromEntries([...ledger].filter(([, { unheard }]) => unheard !== true)) };
}

function isResult(value: unknown): value is ProbeResult {
  return RESULTS.includes(value);
}

/** What can be read of it; an entry of another shape is left out, which costs its container one good probe. */
export function fromCheckpoint(value: unknown): ProbeLedger {
  const ledger = new Map<string, ContainerProbes>();
  if (typeof value !== 'object' || value === null || !('containers' in value)) return ledger;
  const { containers } = value;
  if (typeof containers !== 'object' || containers === null) return ledger;
  for (const [id, entry] of Object.entries(containers as Record<string, unknown>)) {
    if (typeof entry !== 'object' || entry === null || !('uid' in entry) || !('container' in entry)) continue;
    if (typeof entry.uid !== 'string' || typeof entry.container !== 'string') continue;
    const probes: ContainerProbes = { uid: entry.uid, container: entry.container };
    for (const type of PROBE_TYPES) {
      const result: unknown = (entry as Record<string, unknown>)[type];
      if (isResult(result)) probes[type] = result;
    }
    ledger.set(id, probes);
  }
  return ledger;
}
