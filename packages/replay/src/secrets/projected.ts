/** Files of projected volumes: which of them hold secrets, text or labels of people, and which what the node itself knows. */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';

/** `mixed`: a Secret's, or a ConfigMap's; only their values tell which. */
export type Holds = 'secrets' | 'text' | 'mixed' | 'labels' | 'annotations' | 'facts';

/** Volumes remembered; of one that is not, every file is taken for a secret. */
const VOLUMES_MAX = 10_000;
const IN_VOLUME = /\/pods\/([^/]+)\/volumes\/kubernetes\.io~(?:projected|downward-api)\/([^/]+)\/(?:\.\.[^/]*\/)?(.+)$/;

interface Volume {
  readonly files: ReadonlyMap<string, Holds>;
  /** Of those that the pod does not name. */
  readonly others: Holds;
}

export class ProjectedFiles {
  readonly #volumes = new Map<string, Volume>();

  /** Remembers the volumes of a pod. Of any other object nothing. */
  note(pod: object): void {
    const metadata: unknown = Reflect.get(pod, 'metadata');
    const spec: unknown = Reflect.get(pod, 'spec');
    if (!isRecord(metadata) || typeof metadata.uid !== 'string' || !isRecord(spec) || !Array.isArray(spec.volumes)) return;
    for (const volume of spec.volumes as unknown[]) {
      if (!isRecord(volume)) continue;
      const { downwardAPI, projected } = volume;
      const sources = isRecord(downwardAPI) ? [{ downwardAPI }] : isRecord(projected) ? projected.sources : undefined;
      if (!Array.isArray(sources)) continue;
      if (this.#volumes.size >= VOLUMES_MAX) this.#volumes.clear();
      this.#volumes.set(`${metadata.uid}/${String(volume.name)}`, volumeOf(sources));
    }
  }

  holds(path: string): Holds {
    const [, uid = '', name = '', file = ''] = IN_VOLUME.exec(path) ?? [];
    const volume = this.#volumes.get(`${uid}/${name}`);
    return volume?.files.get(file) ?? volume?.others ?? 'secrets';
  }
}

function volumeOf(sources: readonly unknown[]): Volume {
  const files = new Map<string, Holds>();
  const whole = new Set<Holds>();
  for (const source of sources) {
    if (!isRecord(source)) continue;
    const { secret, configMap, downwardAPI, clusterTrustBundle, serviceAccountToken, podCertificate } = source;
    if (isRecord(secret) && !Array.isArray(secret.items)) whole.add('secrets');
    if (isRecord(configMap) && !Array.isArray(configMap.items)) whole.add('text');
    for (const [of, holds] of [
      [secret, 'secrets'],
      [configMap, 'text'],
      [downwardAPI, 'labels'],
    ] as const)
      if (isRecord(of) && Array.isArray(of.items))
        for (const item of of.items as unknown[])
          if (isRecord(item)) files.set(String(item.path), holds === 'labels' ? fieldHolds(item.fieldRef) : holds);
    for (const [of, holds] of [
      [clusterTrustBundle, 'facts'],
      [serviceAccountToken, 'secrets'],
    ] as const)
      if (isRecord(of)) files.set(String(of.path), holds);
    if (isRecord(podCertificate))
      for (const key of ['keyPath', 'credentialBundlePath', 'certificateChainPath']) files.set(String(podCertificate[key]), 'secrets');
  }
  const [others = 'text'] = whole;
  return { files, others: whole.size > 1 ? 'mixed' : others };
}

/** Of the fields of a pod, people write its labels and its annotations. */
function fieldHolds(fieldRef: unknown): Holds {
  const [, of] = /^metadata\.(labels|annotations)/.exec(isRecord(fieldRef) ? String(fieldRef.fieldPath) : '') ?? [];
  return of === 'labels' || of === 'annotations' ? of : 'facts';
}
