/** `csi`: a volume that a CSI driver serves, made for one pod or behind a claim. */

import { type Built, built, refused } from '../../../result.ts';
import { isRecord } from '../../../shape/conform.ts';
import { partOf, textFieldsOf, textOf, textsOf } from '../../../shape/lenient.ts';
import { quoted } from '../../../text/errorList.ts';
import { honouredOfApi } from '../../fieldRule.ts';
import { isPathName, type PathName } from '../../pathName.ts';
import type { InlineKind, PersistentKind } from '../kind.ts';

/** As it stands in a pod: what a driver makes for that pod alone. */
export interface InlineCsi {
  driver: PathName;
  readOnly: boolean;
  fsType: string;
  attributes: Readonly<Record<string, string>>;
  /** '' = none. In the pod's namespace. */
  secret: string;
}
export interface CsiVolume {
  driver: PathName;
  handle: string;
  lifecycle: 'Persistent' | 'Ephemeral';
  readOnly: boolean;
  fsType: string;
  attributes: Readonly<Record<string, string>>;
  mountOptions: readonly string[];
  accessModes: readonly string[];
  stageSecret: SecretRef | null;
  publishSecret: SecretRef | null;
  expandSecret: SecretRef | null;
  block: boolean;
  /** It is of an old plugin: calls of its driver are counted apart. */
  migrated?: true;
}
export interface SecretRef {
  namespace: string;
  name: string;
}

/** Holds `vol_data.json` and the directory at which the driver publishes. */
export const CSI = 'kubernetes.io~csi';

export const csi: { inline: InlineKind<{ kind: 'csi'; csi: InlineCsi }>; persistent: PersistentKind<{ kind: 'csi'; csi: CsiVolume }> } = {
  inline: {
    kind: 'csi',
    plugin: CSI,
    fields: {
      csi: (content) => {
        const inline = inlineCsi(content);
        return inline.ok ? built({ kind: 'csi', csi: inline.value }) : inline;
      },
    },
    rules: honouredOfApi(...['driver', 'readOnly', 'fsType', 'volumeAttributes.*', 'nodePublishSecretRef.name'].map((k) => `csi.${k}`)),
    stands: 'here',
    foreign: true,
    refreshes: false,
    fromApi: true,
    // Setting it up says where its driver has published it.
    mounted: (_, dir) => ({ hostPath: dir, readOnly: true, managed: true }),
  },
  persistent: {
    field: 'csi',
    named: 'of a CSI driver',
    plugin: CSI,
    mountOptions: true,
    decode: (spec, of) => {
      const volume = persistentCsi(spec, of);
      return volume.ok ? built({ kind: 'csi', csi: volume.value }) : volume;
    },
  },
};

export function inlineCsi(value: Record<string, unknown>): Built<InlineCsi> {
  const driver = textOf(value.driver);
  if (driver === '') return refused('csi.driver must be set');
  if (!isPathName(driver)) return refused(`csi.driver ${quoted(driver)} cannot be the name of a CSI driver`);
  return built({
    driver,
    readOnly: value.readOnly === true,
    fsType: textOf(value.fsType),
    attributes: textFieldsOf(value.volumeAttributes),
    secret: isRecord(value.nodePublishSecretRef) ? textOf(value.nodePublishSecretRef.name) : '',
  });
}

/** Reads a persistent volume's specification that has `csi`. `readOnly`: the claim's in the pod. */
export function persistentCsi(
  spec: Record<string, unknown>,
  of: { volume: string; readOnly: boolean; migrated?: boolean },
): Built<CsiVolume> {
  const source = partOf(spec, 'csi');
  const [driver, handle] = [textOf(source.driver), textOf(source.volumeHandle)];
  if (driver === '' || handle === '') return refused(`PV ${of.volume} must name a CSI driver and a volume handle`);
  if (!isPathName(driver)) return refused(`PV ${of.volume}: csi.driver ${quoted(driver)} cannot be the name of a CSI driver`);
  return built({
    driver,
    handle,
    lifecycle: 'Persistent',
    readOnly: of.readOnly,
    fsType: textOf(source.fsType),
    attributes: textFieldsOf(source.volumeAttributes),
    mountOptions: textsOf(spec.mountOptions),
    accessModes: textsOf(spec.accessModes),
    stageSecret: secretRef(source.nodeStageSecretRef),
    publishSecret: secretRef(source.nodePublishSecretRef),
    expandSecret: secretRef(source.nodeExpandSecretRef),
    block: spec.volumeMode === 'Block',
    ...(of.migrated === true ? { migrated: true as const } : {}),
  });
}

function secretRef(value: unknown): SecretRef | null {
  const name = isRecord(value) ? textOf(value.name) : '';
  return !isRecord(value) || name === '' ? null : { name, namespace: textOf(value.namespace) };
}
