/**
 * Files of volumes that are made of objects of the API: what a pod's definition makes of them, and what stands on disk.
 * Worked out apart from the node's own code, so that each is a check of the other.
 */
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { ROOT_DIR } from '@actorlet/world/src/paths.ts';
import { NAMESPACE } from '../../nemesis/workload/apiUser.ts';
import { TOKEN_FILE } from '../../nemesis/workload/objects.ts';

export type ObjectKind = 'configMap' | 'secret';

/** One object as a volume shows it. */
export interface Shown {
  kind: ObjectKind;
  name: string;
  optional: boolean;
  /** Null: each key is a file of that name. */
  items: readonly { key: string; path: string }[] | null;
}
export interface ObjectVolume {
  name: string;
  /** Directory name of its plugin. */
  plugin: 'kubernetes.io~configmap' | 'kubernetes.io~secret' | 'kubernetes.io~projected';
  shown: readonly Shown[];
  token: boolean;
}

/** Volumes of a manifest that are made of objects and that some container mounts. */
export function objectVolumes(manifest: object): ObjectVolume[] {
  const { spec } = manifest as { spec: { volumes?: unknown; containers: unknown; initContainers?: unknown } };
  const mounted = new Set<unknown>();
  for (const c of [...listOf(spec.containers), ...listOf(spec.initContainers)]) for (const m of listOf(c.volumeMounts)) mounted.add(m.name);
  return listOf(spec.volumes).flatMap((v): ObjectVolume[] => {
    const name = String(v.name);
    if (!mounted.has(v.name)) return [];
    if (isRecord(v.configMap))
      return [{ name, plugin: 'kubernetes.io~configmap', shown: [shown('configMap', v.configMap, 'name')], token: false }];
    if (isRecord(v.secret))
      return [{ name, plugin: 'kubernetes.io~secret', shown: [shown('secret', v.secret, 'secretName')], token: false }];
    if (!isRecord(v.projected)) return [];
    const sources = listOf(v.projected.sources);
    const parts = sources.flatMap((s) => [
      ...(isRecord(s.configMap) ? [shown('configMap', s.configMap, 'name')] : []),
      ...(isRecord(s.secret) ? [shown('secret', s.secret, 'name')] : []),
    ]);
    return [{ name, plugin: 'kubernetes.io~projected', shown: parts, token: sources.some((s) => isRecord(s.serviceAccountToken)) }];
  });
}

function listOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
function shown(kind: ObjectKind, source: Record<string, unknown>, nameKey: string): Shown {
  const items = listOf(source.items).map((i) => ({ key: String(i.key), path: String(i.path) }));
  return { kind, name: String(source[nameKey]), optional: source.optional === true, items: items.length === 0 ? null : items };
}

export function volumeDir(uid: string, v: Pick<ObjectVolume, 'plugin' | 'name'>): string {
  return `${ROOT_DIR}/pods/${uid}/volumes/${v.plugin}/${v.name}`;
}

/**
 * Files of the volume as it stands, by path; undefined: it was never set up, or not in full. A version shows in one moment,
 * and the names of its keys follow: those that a container cannot see yet are left out with `named`.
 */
export function filesOf(
  node: SimNode,
  v: Pick<ObjectVolume, 'plugin' | 'name'>,
  o: { uid: string; named: boolean },
): Map<string, string> | undefined {
  const dir = volumeDir(o.uid, v);
  // All but config maps lie in memory only.
  if (v.plugin !== 'kubernetes.io~configmap' && !node.mounts.table.some((m) => m.path === dir && m.type === 'tmpfs')) return undefined;
  const data = node.disk.linkAt(`${dir}/..data`);
  if (data === undefined) return undefined;
  const found = new Map<string, string>();
  const walk = (below: string): void => {
    for (const name of node.disk.namesIn(`${dir}/${data}${below}`)) {
      const path = `${below}/${name}`;
      const text = node.disk.textOf(`${dir}/${data}${path}`);
      if (text === undefined) walk(path);
      else if (!o.named || node.disk.linkAt(`${dir}/${path.split('/')[1] ?? ''}`) !== undefined) found.set(path.slice(1), text);
    }
  };
  walk('');
  return found;
}

/** Keys and values of an object as the API server has it now; undefined where there is none. */
function valuesOf(kube: SimKube, kind: ObjectKind, name: string): Record<string, string> | undefined {
  const resource = kind === 'secret' ? 'secrets' : 'configmaps';
  const found = kube.store.list(resource).find((o) => o.metadata.name === name && o.metadata.namespace === NAMESPACE);
  return found === undefined ? undefined : textsOf(kind, found);
}
export function textsOf(kind: ObjectKind, object: KubeObject): Record<string, string> {
  const data = isRecord(object.data) ? object.data : {};
  return Object.fromEntries(Object.entries(data).map(([key, v]) => [key, kind === 'secret' ? atob(String(v)) : String(v)]));
}

/** Files of one source, from its values. */
export function filesFrom(s: Shown, values: Record<string, string>): Map<string, string> {
  if (s.items === null) return new Map(Object.entries(values));
  return new Map(s.items.flatMap(({ key, path }) => (values[key] === undefined ? [] : [[path, values[key]] as const])));
}

/** How the volumes of a pod at rest differ from the objects that they are made of. */
export function outdatedFiles(node: SimNode, kube: SimKube, { uid, manifest }: { uid: string; manifest: object }): string[] {
  return objectVolumes(manifest).flatMap((v): string[] => {
    const there = filesOf(node, v, { uid, named: true });
    // Real containers do not survive what takes their volumes away; these get theirs back when they are made anew.
    if (there === undefined) return node.lostPower ? [] : [`volume ${v.name} is not set up`];
    const found: string[] = [];
    for (const s of v.shown) {
      const values = valuesOf(kube, s.kind, s.name);
      if (values === undefined) continue;
      const wanted = filesFrom(s, values);
      // What said of itself that it cannot change is not looked at again.
      if ([...wanted.keys()].some((path) => there.get(path)?.endsWith('!') === true)) continue;
      for (const [path, want] of wanted) {
        const has = there.get(path);
        if (has !== want) found.push(`${path} of volume ${v.name} is ${has ?? 'not there'}, wanted ${want}`);
      }
    }
    if (v.token) {
      const token = there.get(TOKEN_FILE) ?? '';
      const endsMs = Date.parse(token.split('.').slice(2).join('.'));
      if (!(endsMs > kube.wallMs())) found.push(`the token of volume ${v.name} is no longer good: ${token}`);
    }
    return found;
  });
}
