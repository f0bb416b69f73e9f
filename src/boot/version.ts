/** The version this node reports. */

/** Release of actorlet itself: the N of `v1.36.0+actorlet.N`. */
const ACTORLET_RELEASE = 1;
export const TARGET_MAJOR = 1;
export const TARGET_MINOR = 36;
export const GIT_VERSION = `v${TARGET_MAJOR}.${TARGET_MINOR}.0+actorlet.${ACTORLET_RELEASE}`;

/** The structure behind `--version=raw`. */
export function versionInfo(): Record<string, string> {
  return {
    major: `${TARGET_MAJOR}`,
    minor: `${TARGET_MINOR}`,
    gitVersion: GIT_VERSION,
    runtime: `node ${process.version}`,
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  };
}

/** What `--version` prints; undefined when the flag asks for a normal start. */
export function versionText(mode: 'true' | 'raw'): string {
  return mode === 'raw' ? JSON.stringify(versionInfo(), null, 2) : `Kubernetes ${GIT_VERSION}`;
}
