/** The version this node reports. */

import { goArch } from '../machines/text/go/goArch.ts';
import { GIT_VERSION, TARGET_MAJOR, TARGET_MINOR } from '../machines/version.ts';

export { GIT_VERSION, TARGET_MAJOR, TARGET_MINOR };

/** The structure behind `--version=raw`. */
export function versionInfo(): Record<string, string> {
  return {
    major: `${TARGET_MAJOR}`,
    minor: `${TARGET_MINOR}`,
    gitVersion: GIT_VERSION,
    runtime: `node ${process.version}`,
    platform: `${process.platform}/${goArch(process.arch)}`,
  };
}

/** What `--version` prints; undefined when the flag asks for a normal start. */
export function versionText(mode: 'true' | 'raw'): string {
  return mode === 'raw' ? JSON.stringify(versionInfo(), null, 2) : `Kubernetes ${GIT_VERSION}`;
}
