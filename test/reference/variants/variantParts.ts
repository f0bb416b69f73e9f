/** What variants of configurations are made of. */

/** In arguments and texts: the folder that the files are written to. */
export const HERE = '/HERE';
/** A text, bytes (one for each character), a link, or a folder. */
export type Entry = string | { bytes: string } | { link: string } | { folder: true };
export interface Variant {
  args: readonly string[];
  files: Readonly<Record<string, Entry>>;
}
export const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfailCgroupV1: false\n';
