/** What a container is given with its devices, out of what their plugins answered (resources 2.5). Pure. */

import type { Mount } from '../../wire/cri.ts';
import type { ContainerShare } from '../messages.ts';
import type { ContainerResponse } from './types.ts';

/** The first word on something counts; `conflicts` says, for the log, which later ones said otherwise. In the order given. */
export function mergeResponses(answers: readonly { resource: string; response: ContainerResponse }[]): {
  share: ContainerShare;
  conflicts: string[];
} {
  const conflicts: string[] = [];
  const gather = <T>(what: string, entries: (r: ContainerResponse) => readonly (readonly [string, T])[]): Map<string, T> => {
    const kept = new Map<string, T>();
    for (const { resource, response } of answers) {
      for (const [key, value] of entries(response)) {
        const before = kept.get(key);
        if (before === undefined) kept.set(key, value);
        else if (JSON.stringify(before) !== JSON.stringify(value)) conflicts.push(`${what} ${key} of ${resource}`);
      }
    }
    return kept;
  };
  const envs = gather('env', (r) => Object.entries(r.envs));
  const devices = gather('device', (r) => r.devices.map((d) => [d.containerPath, d] as const));
  const mounts = gather('mount', (r) => r.mounts.map((m) => [m.containerPath, m] as const));
  const annotations = gather('annotation', (r) => Object.entries(r.annotations));
  const share = {
    devices: [...devices.values()],
    mounts: [...mounts.values()].map(
      ({ containerPath, hostPath, readOnly }): Mount => ({
        containerPath,
        hostPath,
        readonly: readOnly,
        propagation: 'PROPAGATION_PRIVATE',
      }),
    ),
    envs: [...envs].map(([key, value]) => ({ key, value })),
    annotations: Object.fromEntries(annotations),
    cdiDevices: [...new Set(answers.flatMap((a) => a.response.cdiDevices))],
  };
  return { share, conflicts };
}
