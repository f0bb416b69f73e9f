/** The pods and objects that the nemesis acts on. */

export interface SimPod {
  name: string;
  /** Counts the definitions of this name. */
  rev: number;
  /** Undefined: the node derives it from the content, so an edit makes another pod. */
  uid: string | undefined;
  fate: PodFate;
  restartPolicy: 'Always' | 'OnFailure' | 'Never';
  /** Regular containers and sidecars: what runs in a steady pod. */
  containers: readonly string[];
  /** Image by container name. */
  images: Readonly<Record<string, string>>;
  manifest: object;
  /** It has a limit of what it may write, and writes more: the eviction manager has to end it. */
  writesTooMuch?: boolean;
  /** Config maps and secrets that it names; absent: none. */
  objects?: readonly Pick<SimObject, 'kind' | 'name'>[];
}

/** `steady`: its containers end up running for good. `ends`: it comes to a terminal phase. `loops`: it crashes for ever. `deleted`: its source asks for its end. */
export type PodFate = 'steady' | 'ends' | 'loops' | 'deleted';

export interface SimObject {
  /** `pullSecret`: credentials of a registry. `claim`: of a volume, together with that volume. `resourceClaim`: of devices. */
  kind: 'configMap' | 'secret' | 'pullSecret' | 'claim' | 'resourceClaim';
  /** Ends in the name of the node whose pods name it, as names of pods do. */
  name: string;
  rev: number;
  immutable: boolean;
}

/** What every value of this version is: the object, its version, and `!` where that cannot change. */
export function versionText(o: SimObject): string {
  return `${o.name}#${o.rev}${o.immutable ? '!' : ''}`;
}
