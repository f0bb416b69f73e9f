/** The version that this node reports. Pure. */

/** Release of actorlet itself: the N of `v1.36.0+actorlet.N`. */
const ACTORLET_RELEASE = 1;
export const TARGET_MAJOR = 1;
export const TARGET_MINOR = 36;
export const GIT_VERSION = `v${TARGET_MAJOR}.${TARGET_MINOR}.0+actorlet.${ACTORLET_RELEASE}`;
