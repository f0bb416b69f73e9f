/** The shape of a volume in a pod: the part of `podTable.ts` that a new kind of volume adds to. */
import { any, bool, integer, list, map, object, quantity, string } from '../shape/shape.ts';

const int = integer();
const keyItems = list(object({ key: string, path: string, mode: int }));
const downwardItems = list(
  object({
    path: string,
    fieldRef: object({ apiVersion: string, fieldPath: string }),
    resourceFieldRef: object({ containerName: string, resource: string, divisor: quantity }),
    mode: int,
  }),
);
const labelSelector = object({
  matchLabels: map(string),
  matchExpressions: list(object({ key: string, operator: string, values: list(string) })),
});

/** Volume sources. The rare in-tree ones are only named: their inside is not looked at. */
export const volumeSources = {
  hostPath: object({ path: string, type: string }),
  emptyDir: object({ medium: string, sizeLimit: quantity }),
  configMap: object({ name: string, items: keyItems, defaultMode: int, optional: bool }),
  secret: object({ secretName: string, items: keyItems, defaultMode: int, optional: bool }),
  downwardAPI: object({ items: downwardItems, defaultMode: int }),
  projected: object({
    defaultMode: int,
    sources: list(
      object({
        secret: object({ name: string, items: keyItems, optional: bool }),
        configMap: object({ name: string, items: keyItems, optional: bool }),
        downwardAPI: object({ items: downwardItems }),
        serviceAccountToken: object({ audience: string, expirationSeconds: int, path: string }),
        clusterTrustBundle: object({ name: string, signerName: string, labelSelector, optional: bool, path: string }),
        podCertificate: object({
          signerName: string,
          keyType: string,
          maxExpirationSeconds: int,
          credentialBundlePath: string,
          keyPath: string,
          certificateChainPath: string,
          userAnnotations: map(string),
        }),
      }),
    ),
  }),
  persistentVolumeClaim: object({ claimName: string, readOnly: bool }),
  image: object({ reference: string, pullPolicy: string }),
  csi: object({
    driver: string,
    readOnly: bool,
    fsType: string,
    volumeAttributes: map(string),
    nodePublishSecretRef: object({ name: string }),
  }),
  ephemeral: object({ volumeClaimTemplate: any }),
  nfs: object({ server: string, path: string, readOnly: bool }),
  iscsi: object({
    targetPortal: string,
    portals: list(string),
    iqn: string,
    lun: int,
    iscsiInterface: string,
    initiatorName: string,
    fsType: string,
    readOnly: bool,
    chapAuthDiscovery: bool,
    chapAuthSession: bool,
    secretRef: object({ name: string }),
  }),
  fc: object({ targetWWNs: list(string), lun: int, wwids: list(string), fsType: string, readOnly: bool }),
  flexVolume: any,
  awsElasticBlockStore: object({ volumeID: string, fsType: string, partition: int, readOnly: bool }),
  azureDisk: object({ diskName: string, diskURI: string, cachingMode: string, fsType: string, readOnly: bool, kind: string }),
  azureFile: object({ secretName: string, shareName: string, readOnly: bool }),
  cephfs: any,
  cinder: object({ volumeID: string, fsType: string, readOnly: bool, secretRef: object({ name: string }) }),
  flocker: any,
  gcePersistentDisk: object({ pdName: string, fsType: string, partition: int, readOnly: bool }),
  gitRepo: any,
  glusterfs: any,
  photonPersistentDisk: any,
  portworxVolume: object({ volumeID: string, fsType: string, readOnly: bool }),
  quobyte: any,
  rbd: any,
  scaleIO: any,
  storageos: any,
  vsphereVolume: object({ volumePath: string, fsType: string, storagePolicyName: string, storagePolicyID: string }),
};
export const VOLUME_SOURCES: readonly string[] = Object.keys(volumeSources);

/** A volume is its name and exactly one source; the sources this node honours are named in the supported-field table. */
export interface Volume {
  name: string;
  [source: string]: unknown;
}
