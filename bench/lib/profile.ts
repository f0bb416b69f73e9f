/** Shares of a processor profile that Node wrote. */

export interface Profile {
  nodes: readonly { id: number; callFrame: { functionName: string; url: string }; children?: readonly number[] }[];
  /** Microseconds of the machine's monotonic clock. */
  startTime: number;
  samples: readonly number[];
  timeDeltas: readonly number[];
}

/** Of the time in which something ran between two moments: the part in which the innermost frame of a file matches. */
export function shareOf(profile: Profile, o: { of: RegExp; fromUs: number; toUs: number }): number {
  const inside = matching(profile, o.of);
  let at = profile.startTime;
  let [own, all] = [0, 0];
  for (const [i, id] of profile.samples.entries()) {
    const delta = profile.timeDeltas[i] ?? 0;
    at += delta;
    const kind = inside.get(id);
    if (at < o.fromUs || at > o.toUs || kind === undefined) continue;
    all += delta;
    if (kind) own += delta;
  }
  return all === 0 ? 0 : own / all;
}

/** By node: whether its innermost frame of a file matches. Nodes in which nothing runs are left out. */
function matching(profile: Profile, of: RegExp): Map<number, boolean> {
  const byId = new Map(profile.nodes.map((node) => [node.id, node]));
  const inside = new Map<number, boolean>();
  const walk = (id: number, above: boolean): void => {
    const node = byId.get(id);
    if (node === undefined) return;
    const { functionName, url } = node.callFrame;
    const here = url.startsWith('file:') ? of.test(url) : above;
    if (functionName !== '(idle)') inside.set(id, here);
    for (const child of node.children ?? []) walk(child, here);
  };
  const [root] = profile.nodes;
  if (root !== undefined) walk(root.id, false);
  return inside;
}
