/** Small manifests and decoding helpers for tests of pod sources. */
import { createHash } from 'node:crypto';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { type Decoded, type DecodeOptions, decodeManifest } from '../../../src/machines/pods/sources/decode.ts';

export const md5Hex = (text: string) => createHash('md5').update(text).digest('hex');
export const inFile = (where = '/m/web.yaml'): DecodeOptions => ({
  source: 'file',
  where,
  nodeName: 'Node1',
  md5Hex,
  preventApiReferences: false,
});
export const atUrl = (where = 'http://h/pods'): DecodeOptions => ({
  source: 'http',
  where,
  nodeName: 'Node1',
  md5Hex,
  preventApiReferences: false,
});

export function manifest(
  name = 'web',
  spec: Record<string, unknown> = {},
  container: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'main', image: 'busybox:1.36', ...container }], ...spec },
  };
}
export function podOf(d: Decoded): Pod {
  if (!d.ok) throw new Error(`did not decode: ${d.errors.join('; ')}`);
  const [pod] = d.pods;
  if (pod === undefined) throw new Error('no pod');
  return pod;
}
export const pod = (name = 'web', spec: Record<string, unknown> = {}, container: Record<string, unknown> = {}): Pod =>
  podOf(decodeManifest(manifest(name, spec, container), inFile(`/m/${name}.yaml`)));
export function errorsOf(d: Decoded): string[] {
  return d.ok ? [] : d.errors;
}
