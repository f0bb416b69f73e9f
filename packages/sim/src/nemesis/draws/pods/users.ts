/** Pods with users of their own: ids of the host that no other pod has. */
import type { PodDraw } from './podDraw.ts';

const USERS = 0.05;

export const drawUsers: PodDraw = (rng, { manifest: { spec }, full }) => {
  const own = rng.chance(USERS) || full;
  // A pod with the network of the host has its users.
  if (own && spec.hostNetwork !== true) spec.hostUsers = false;
  return {};
};
