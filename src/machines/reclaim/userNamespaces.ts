/** Where it is kept which pod has which ids of the host: workers allocate them, housekeeping releases them. Pure. */

export interface UserNamespaceClaims {
  /** Holds a link for each run of ids that is taken, named by its first one. */
  readonly dir: string;
  /** Target of the link of a pod. */
  target(uid: string): string;
  /** UID of the pod whose link it is; null: not one of ours. */
  owner(target: string): string | null;
}

const TO_PODS = '../pods/';
/** In the directory of a pod: which ids it has. */
export const MAPPING_FILE = 'userns';

export function userNamespaceClaims(rootDir: string): UserNamespaceClaims {
  return {
    dir: `${rootDir}/user-namespaces`,
    target: (uid) => `${TO_PODS}${uid}`,
    owner: (target) => (target.startsWith(TO_PODS) ? target.slice(TO_PODS.length) : null),
  };
}
