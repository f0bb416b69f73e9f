/** Invariants about what containers are given of the objects that their pods name: in files, and in the environment. */

import { ROOT_DIR } from '@actorlet/world/src/paths.ts';
import type { CallSeen } from '@actorlet/world/src/runtime/types.ts';
import { ENV_PREFIX, ENV_SECRET } from '../../nemesis/workload/objects.ts';
import { manifestName } from '../../steady.ts';
import { type Checker, type Scene, targetOf } from '../checker.ts';
import { filesFrom, filesOf, type ObjectKind, objectVolumes, type Shown, textsOf, volumeDir } from './objectFiles.ts';

const KINDS: Readonly<Record<string, ObjectKind>> = { configmaps: 'configMap', secrets: 'secret' };

/** Every version that each object ever had, as the API server showed them. */
class Versions {
  readonly #known = new Map<string, Record<string, string>[]>();

  note(kind: ObjectKind, name: string, values: Record<string, string>): void {
    const key = `${kind} ${name}`;
    this.#known.set(key, [...(this.#known.get(key) ?? []), values]);
  }
  of(kind: ObjectKind, name: string): readonly Record<string, string>[] {
    return this.#known.get(`${kind} ${name}`) ?? [];
  }
}
const noting = (versions: Versions): NonNullable<Checker['object']> => {
  return (_, { resource, type, object }) => {
    const kind = KINDS[resource];
    if (kind !== undefined && type !== 'DELETED') versions.note(kind, object.metadata.name, textsOf(kind, object));
    return undefined;
  };
};

interface Config {
  metadata?: { name?: string };
  mounts?: readonly { hostPath?: string }[];
  envs?: readonly { key?: string; value?: string }[];
}
function configOf(call: CallSeen): Config {
  return (call.req as { config?: Config }).config ?? {};
}
/** Manifest of the pod that is to get a container, where it is still the one that is wanted. */
function manifestOf(s: Scene, call: CallSeen): { uid: string; manifest: object } | undefined {
  const { uid } = targetOf(call, s.node.runtime.hollow.dump());
  const { sandboxConfig } = call.req as { sandboxConfig?: { metadata?: { name?: string } } };
  const wanted = s.operator.wanted.get(manifestName(sandboxConfig?.metadata?.name ?? '', s.node));
  return wanted?.source === 'api' && wanted.pod.uid === uid ? { uid, manifest: wanted.pod.manifest } : undefined;
}

/** A container is made only when each of its volumes stands in full: of each object one version that the API had, whole. */
export function volumesComeFirst(): Checker {
  const versions = new Versions();
  const isWhole = (there: ReadonlyMap<string, string>, s: Shown): boolean => {
    const paths = new Set(versions.of(s.kind, s.name).flatMap((v) => [...filesFrom(s, v).keys()]));
    const here = [...paths].filter((p) => there.get(p)?.startsWith(`${s.name}#`) === true);
    if (here.length === 0) return s.optional;
    return versions.of(s.kind, s.name).some((v) => {
      const files = filesFrom(s, v);
      return files.size === here.length && here.every((p) => files.get(p) === there.get(p));
    });
  };
  return {
    name: 'volumes-come-first',
    object: noting(versions),
    arrived(s, call) {
      if (call.method !== 'CreateContainer') return undefined;
      const pod = manifestOf(s, call);
      if (pod === undefined) return undefined;
      const { metadata, mounts = [] } = configOf(call);
      const who = `${s.node.name}: ${metadata?.name ?? ''} of pod ${pod.uid} is made while`;
      for (const v of objectVolumes(pod.manifest)) {
        if (!mounts.some((m) => m.hostPath === volumeDir(pod.uid, v))) continue;
        const there = filesOf(s.node, v, { uid: pod.uid, named: false });
        if (there === undefined) return `${who} its volume ${v.name} is not set up`;
        const torn = v.shown.find((one) => !isWhole(there, one));
        if (torn !== undefined)
          return `${who} its volume ${v.name} holds no version of ${torn.kind} ${torn.name}: ${JSON.stringify(Object.fromEntries(there))}`;
      }
      return undefined;
    },
    removing(s, path) {
      // Nothing of a volume goes while a container that was given it runs, but what a newer version has replaced.
      const [, uid = '', volume = ''] =
        new RegExp(`^${ROOT_DIR}/pods/([^/]+)/volumes/kubernetes\\.io~(?:configmap|secret|projected)/([^/]+)/\\.\\.data$`).exec(path) ?? [];
      if (uid === '') return undefined;
      const user = s.node.runtime.hollow.dump().containers.find((c) => c.podUid === uid && c.state === 'CONTAINER_RUNNING');
      return user === undefined
        ? undefined
        : `${s.node.name}: volume ${volume} of pod ${uid} is emptied while container ${user.id} (${user.name}) runs`;
    },
  };
}

/** A variable that comes from an object has a value that this object had; it is missing only where it may be. */
export function envIsOfItsObjects(): Checker {
  const versions = new Versions();
  return {
    name: 'env-is-of-its-objects',
    object: noting(versions),
    arrived(s, call) {
      if (call.method !== 'CreateContainer') return undefined;
      const pod = manifestOf(s, call);
      if (pod === undefined) return undefined;
      const { metadata, envs = [] } = configOf(call);
      const given = new Map(envs.map((e) => [e.key ?? '', e.value ?? '']));
      const { spec } = pod.manifest as { spec: { containers: readonly WithEnv[] } };
      const own = spec.containers.find((c) => c.name === metadata?.name);
      const who = `${s.node.name}: ${metadata?.name ?? ''} of pod ${pod.uid} is made`;
      for (const { configMapRef } of own?.envFrom ?? []) {
        const mine = new Map([...given].filter(([key]) => key.startsWith(ENV_PREFIX)));
        const known = versions.of('configMap', configMapRef.name);
        const whole = known.some((v) => {
          const keys = Object.keys(v);
          return keys.length === mine.size && keys.every((key) => mine.get(`${ENV_PREFIX}${key}`) === v[key]);
        });
        if (!whole && !(configMapRef.optional === true && mine.size === 0))
          return `${who} with ${JSON.stringify([...mine])}, which config map ${configMapRef.name} never was`;
      }
      for (const { name, valueFrom } of own?.env ?? []) {
        if (name !== ENV_SECRET) continue;
        const { secretKeyRef: ref } = valueFrom;
        const value = given.get(name);
        const had = versions.of('secret', ref.name).some((v) => v[ref.key] === value);
        if (!had && !(ref.optional === true && value === undefined))
          return `${who} with a ${name} that secret ${ref.name} never had: ${String(value)}`;
      }
      return undefined;
    },
  };
}
interface WithEnv {
  name: string;
  envFrom?: readonly { configMapRef: { name: string; optional?: boolean } }[];
  env?: readonly { name: string; valueFrom: { secretKeyRef: { name: string; key: string; optional?: boolean } } }[];
}
