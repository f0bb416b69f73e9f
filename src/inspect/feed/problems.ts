/** What is wrong with the node itself, and which manifests cannot be used. */
import { lostPeers } from '../../actors/edge/admin/lostPeers.ts';
import { sourceErrorsView } from '../../machines/pods/podConfig/messages.ts';
import { pressureView } from '../../machines/reclaim/eviction/messages.ts';
import type { Inspected } from '../../recorder/source.ts';
import type { ProblemsFrame } from './frames.ts';

const MANIFESTS_MAX = 40;
const MESSAGE_CHARS_MAX = 600;

export function problemsFrame({ tree, clock }: Inspected): ProblemsFrame {
  const { registry } = tree;
  const lost = lostPeers(registry, { stateAt: (path) => tree.stateAt(path) }, clock.monoMs());
  const pressures = registry.read(pressureView)?.value.pressures ?? [];
  const unusable = [...(registry.read(sourceErrorsView)?.value.values() ?? [])].flat().filter((e) => e.note !== true);
  return {
    t: 'problems',
    links: [...lost.keys()],
    node: [...lost.values(), ...pressures.map((name) => `${name}: no new pods of the lowest class are admitted`)],
    manifests: unusable.slice(0, MANIFESTS_MAX).map(({ where, message }) => ({ where, message: message.slice(0, MESSAGE_CHARS_MAX) })),
    manifestsMore: Math.max(0, unusable.length - MANIFESTS_MAX),
  };
}
