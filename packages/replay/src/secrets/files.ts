/** Files that the node reads, of which parts are secret. */
import { withResponses } from '@actorlet/kubelet/machines/allocation/devices/checkpoint.ts';

/** Variables that device plugins gave, in the node's record. */
export function devicesText(text: string, standIn: (value: string) => string): string {
  const hidden = (envs: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(envs).map(([name, value]) => [name, standIn(value)]));
  try {
    return withResponses(text, (response) => ({ ...response, envs: hidden(response.envs) }));
  } catch {
    // The tree believes such a record as little.
    return standIn(text);
  }
}

/** A value of a pod's labels or annotations, or all of them, each in quotes on a line. */
export function downwardText(text: string, known: (value: string) => string | null): string {
  const line = (all: string): string => {
    const at = all.indexOf('="') + 1;
    const value = all.slice(at);
    return at === 0 ? all : all.slice(0, at) + (known(value) ?? value);
  };
  return known(text) ?? text.split('\n').map(line).join('\n');
}
