/** What the statuses of claims go through, as somebody sees who looks often. */
import { type Cluster, DEFAULT_NAMESPACE, LONG } from '../../cluster/cluster.ts';

const LOOK_EVERY_MS = 100;

export interface Claimed {
  of(name: string): string[];
  bound(name: string): Promise<void>;
  stop(): void;
}
export interface ClaimStatus {
  phase?: string;
  capacity?: { storage?: string };
  allocatedResources?: { storage?: string };
  allocatedResourceStatuses?: { storage?: string };
  conditions?: { type: string; status: string; message?: string }[];
}

export function watchClaims(c: Cluster): Claimed {
  const seen = new Map<string, string[]>();
  let [on, busy] = [true, false];
  const look = async (): Promise<void> => {
    const got = await c.plane.request('GET', `${DEFAULT_NAMESPACE}/persistentvolumeclaims`);
    for (const { metadata, status } of (got.body as { items?: { metadata: { name: string }; status: ClaimStatus }[] }).items ?? []) {
      const lines = seen.get(metadata.name) ?? [];
      seen.set(metadata.name, lines);
      const line = sayStatus(status);
      if (line !== '' && line !== lines.at(-1)) lines.push(line);
    }
  };
  const timer = setInterval(() => {
    if (busy || !on) return;
    busy = true;
    look()
      .catch(() => undefined)
      .finally(() => {
        busy = false;
      });
  }, LOOK_EVERY_MS);
  const of = (name: string): string[] => seen.get(name) ?? [];
  return {
    of,
    bound: async (name) => void (await c.daemon.wait(`claim ${name} is bound`, () => of(name).length > 0, LONG)),
    stop() {
      on = false;
      clearInterval(timer);
    },
  };
}

/** '' for one that is not bound. */
export function sayStatus(s: ClaimStatus): string {
  if (s.phase !== 'Bound') return '';
  const parts = [
    `capacity ${s.capacity?.storage}`,
    ...(s.allocatedResources === undefined ? [] : [`allocated ${s.allocatedResources.storage}`]),
    ...(s.allocatedResourceStatuses === undefined ? [] : [String(s.allocatedResourceStatuses.storage)]),
    ...(s.conditions ?? []).map(({ type, status, message }) => `${type}=${status}${message === undefined ? '' : ` (${message})`}`),
  ];
  return parts.join(', ');
}
