/** Objects of Kubernetes in manifests: YAML or JSON, one or many in a text. Pure. */

import { DOCUMENT_BYTES_MAX } from '@actorlet/faults/src/read/document.ts';
import { yamlFault } from '@actorlet/kubelet/machines/document/yaml.ts';
import { isKubeObject, type KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { parseAllDocuments } from 'yaml';

export function isManifest(value: unknown): value is KubeObject & { apiVersion: string; kind: string } {
  return isKubeObject(value) && typeof value.apiVersion === 'string' && typeof value.kind === 'string';
}

/** Those of a List are taken out of it. @throws Error that says which document is none. */
export function objectsOf(text: string): KubeObject[] {
  if (text.length > DOCUMENT_BYTES_MAX) throw new Error(`is longer than ${DOCUMENT_BYTES_MAX} bytes`);
  const documents = parseAllDocuments(text, { version: '1.1', prettyErrors: false });
  return (Array.isArray(documents) ? documents : []).flatMap((doc, i) => {
    const [error] = doc.errors;
    if (error !== undefined) throw new Error(`is not valid YAML: ${yamlFault(error.message)}`);
    const value: unknown = doc.toJS({ maxAliasCount: 100 });
    if (value === null) return [];
    const items = isRecord(value) && value.kind === 'List' && Array.isArray(value.items) ? value.items : [value];
    return items.map((item: unknown) => {
      if (isManifest(item)) return item;
      throw new Error(`document ${i + 1} is no object of Kubernetes: it needs apiVersion, kind and metadata.name`);
    });
  });
}
