/** Keys and certificates of a test's own cluster, in a folder of the test's: those of `actorlet fleet --api local`. */
export { Authority, type Identity } from '../../../packages/fleet/src/boot/plane/authority.ts';
export type { PairFiles as KeyPair } from '../../../packages/fleet/src/plane/flags.ts';
