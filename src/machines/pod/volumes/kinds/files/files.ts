/** What secrets, config maps, the downward API and projected volumes share: each is a set of files that the node writes. */

import type { PodCertificate, TrustQuery } from '../../../../kube/objects.ts';
import type { Quantity } from '../../../../kube/types.ts';
import { type Built, built } from '../../../../result.ts';
import { isRecord } from '../../../../shape/conform.ts';
import { listOf, recordOf, textOf } from '../../../../shape/lenient.ts';
import type { InlineKind } from '../../kind.ts';

interface KeyItem {
  key: string;
  path: string;
  mode: number | null;
}
export interface DownwardItem {
  path: string;
  mode: number | null;
  fieldPath: string | null;
  resource: { containerName: string; resource: string; divisor?: Quantity } | null;
}
/** '' = no such file. */
interface CertificatePaths {
  /** Key and certificates in one file. */
  bundle: string;
  key: string;
  chain: string;
}
export type ProjectionSource =
  | { kind: 'secret' | 'configMap'; name: string; optional: boolean /** Null: every key. */; items: readonly KeyItem[] | null }
  | { kind: 'downwardAPI'; items: readonly DownwardItem[] }
  | { kind: 'token'; path: string; audience: string; expirationSeconds: number }
  | { kind: 'trustAnchors'; path: string; optional: boolean; query: TrustQuery }
  | { kind: 'podCertificate'; paths: CertificatePaths; query: Omit<PodCertificate, 'pod' | 'serviceAccount' | 'volume'> };

export interface Files {
  kind: 'files';
  /** The files lie in memory, not on the disk. */
  memory: boolean;
  defaultMode: number;
  sources: readonly ProjectionSource[];
}

const FILE_MODE = 0o644;
/** Fields of each file of the downward API. */
export const DOWNWARD_ITEM = [
  'path',
  'mode',
  'fieldRef.apiVersion',
  'fieldRef.fieldPath',
  'resourceFieldRef.containerName',
  'resourceFieldRef.resource',
  'resourceFieldRef.divisor',
];
/** Fields of each object that files are made of. */
export const OBJECT = ['optional', 'items[*].key', 'items[*].path', 'items[*].mode'];

/** What holds of all of them. */
export const FILES = {
  kind: 'files',
  stands: 'here',
  foreign: false,
  refreshes: true,
  defaults: (content) => {
    content.defaultMode ??= FILE_MODE;
  },
  mounted: (_, dir) => ({ hostPath: dir, readOnly: true, managed: true }),
  namesTrustAnchors: ({ sources }) => sources.some(({ kind }) => kind === 'trustAnchors'),
  references: ({ sources }) =>
    sources.flatMap((s) => (s.kind === 'secret' || s.kind === 'configMap' ? [{ kind: s.kind, name: s.name }] : [])),
} as const satisfies Partial<InlineKind<Files>>;

export function files(content: Record<string, unknown>, of: { memory: boolean; sources: readonly ProjectionSource[] }): Built<Files> {
  return built({ kind: 'files', memory: of.memory, defaultMode: modeOf(content.defaultMode) ?? FILE_MODE, sources: of.sources });
}

const modeOf = (value: unknown): number | null => (typeof value === 'number' ? value : null);

export function object(kind: 'secret' | 'configMap', value: Record<string, unknown>, nameKey: string): ProjectionSource {
  return { kind, name: textOf(value[nameKey]), optional: value.optional === true, items: keyItems(value.items) };
}
function keyItems(value: unknown): KeyItem[] | null {
  const items = listOf(value).filter(isRecord);
  return items.length === 0 ? null : items.map((i) => ({ key: textOf(i.key), path: textOf(i.path), mode: modeOf(i.mode) }));
}

export function downwardItems(value: unknown): DownwardItem[] {
  return listOf(value)
    .filter(isRecord)
    .map((i) => {
      const { fieldRef: field, resourceFieldRef: resource } = i;
      return {
        path: textOf(i.path),
        mode: modeOf(i.mode),
        fieldPath: isRecord(field) ? textOf(field.fieldPath) : null,
        resource: isRecord(resource)
          ? {
              containerName: textOf(resource.containerName),
              resource: textOf(resource.resource),
              ...(typeof resource.divisor === 'string' || typeof resource.divisor === 'number' ? { divisor: resource.divisor } : {}),
            }
          : null,
      };
    });
}

/** Defaults of files of the downward API, in a volume of their own or among others. */
export function defaultItems(source: unknown): void {
  for (const item of isRecord(source) ? listOf(source.items) : []) {
    const { fieldRef, resourceFieldRef } = recordOf(item);
    if (isRecord(fieldRef)) fieldRef.apiVersion ||= 'v1';
    if (isRecord(resourceFieldRef)) resourceFieldRef.divisor ??= '0';
  }
}
