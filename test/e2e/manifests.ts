/** Short forms of manifests for tests; busybox is in the lab's image store. */
import type { Container, PodSpec } from '../../src/machines/kube/podTable.ts';

export const IMAGE = 'docker.io/library/busybox:1.35';
/** The same bytes under another name. */
export const OTHER_IMAGE = 'actorlet.test/busybox:1';

export interface Manifest {
  apiVersion: 'v1';
  kind: 'Pod';
  metadata: { name: string; namespace?: string; uid?: string; labels?: Record<string, string>; annotations?: Record<string, string> };
  spec: PodSpec;
}

/** A container that runs a shell script. */
export function sh(name: string, script: string, more: Partial<Container> = {}): Container {
  return { name, image: IMAGE, imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', script], ...more };
}
/** A container that stays and obeys TERM at once. */
export function steady(name = 'main', more: Partial<Container> = {}): Container {
  return sh(name, 'trap "exit 0" TERM; while :; do sleep 3600 & wait; done', more);
}

/** `uid`, where given, is pinned in the manifest. The grace is 1 s unless the specification says otherwise. */
export function manifest(name: string, containers: Container[], o: { uid?: string; spec?: Partial<PodSpec> } = {}): Manifest {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...(o.uid === undefined ? {} : { uid: o.uid }) },
    spec: { terminationGracePeriodSeconds: 1, ...o.spec, containers },
  };
}
