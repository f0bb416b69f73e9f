/** What the node itself says of the end of a container, where neither the runtime nor the container said anything. */

export const OWN_ENDS = {
  holdsNone: 'the runtime holds no such container any more; it was last seen running, and how it ended is not known',
  inUnknownState: 'the runtime holds this container in an unknown state; how it ended is not known',
  podEnded: 'the pod has ended and the runtime did not say how this container did',
  passed: 'Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally',
  restartingAll: 'The container is removed because RestartAllContainers in place',
} as const;
const TEXTS: ReadonlySet<unknown> = new Set(Object.values(OWN_ENDS));

/** Such a message has none of the output of a container in it. */
export function isOwnEnd(message: unknown): boolean {
  return TEXTS.has(message);
}
