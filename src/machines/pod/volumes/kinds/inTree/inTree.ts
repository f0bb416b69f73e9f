/**
 * Volumes of plugins that the kubelet once had (`awsElasticBlockStore`, say): CSI drivers serve them. In a pod such a volume
 * is like a claim whose PersistentVolume stands in the pod, and goes by the name of claims. Pure.
 */

import { type Built, built, refused } from '../../../../result.ts';
import { isRecord } from '../../../../shape/conform.ts';
import { listOf, partOf, recordOf, textOf } from '../../../../shape/lenient.ts';
import { honoured, honouredOfApi } from '../../../fieldRule.ts';
import type { InlineKind } from '../../kind.ts';
import { type Claim, claim } from '../claim.ts';
import { IN_TREE_PLUGINS, type InTreePlugin } from './plugins.ts';
import { translatedAffinity } from './topology.ts';

type Fields = Record<string, unknown>;

export const inTree: readonly { inline: InlineKind<Claim> }[] = IN_TREE_PLUGINS.map(({ field, fields, defaults, fromApi }) => {
  const { kind, plugin, stands, foreign, refreshes, mounted } = claim.inline;
  return {
    inline: {
      ...{ kind, plugin, stands, foreign, refreshes, mounted },
      shown: field,
      fields: {
        [field]: (content) =>
          built({ kind: 'claim', claim: null, readOnly: content.readOnly === true, block: false, inTree: { field, content } }),
      },
      rules: (fromApi === undefined ? honoured : honouredOfApi)(...fields.map((name) => `${field}.${name}`)),
      ...(defaults === undefined ? {} : { defaults }),
      ...(fromApi === undefined ? {} : { fromApi }),
    },
  };
});

/** Names of all these plugins, sorted. */
export const MIGRATED_PLUGINS: readonly string[] = IN_TREE_PLUGINS.map(({ plugin }) => plugin).sort();

const failed = ({ message }: { message: string }) => refused(`failed to translate in-tree pv to CSI: ${message}`);

/** The PersistentVolume that a volume in a pod stands for. `of`: its name, and the pod's namespace. */
export function inlineVolume(
  { field, content }: { field: string; content: Fields },
  of: { name: string; namespace: string },
): Built<Fields> {
  const plugin = IN_TREE_PLUGINS.find((p) => p.field === field);
  if (plugin === undefined) return failed(refused(`there is no plugin for "${field}"`));
  const csi = plugin.csi(content, { ...of, labels: {}, annotations: {}, inline: true });
  if (!csi.ok) return failed(csi);
  const accessModes = [plugin.inlineMode?.(content) ?? 'ReadWriteOnce'];
  const handle = textOf(csi.value.volumeHandle);
  const name = plugin.inlineName?.(content, handle) ?? `${plugin.driver}-${handle}`;
  return built({ metadata: { name }, spec: { csi: { driver: plugin.driver, ...csi.value }, accessModes, volumeMode: 'Filesystem' } });
}

/** A PersistentVolume as it is, or translated. */
export function translated(pv: unknown): Built<unknown> {
  const { metadata, spec } = isRecord(pv) ? pv : {};
  if (!isRecord(spec)) return built(pv);
  const plugin = IN_TREE_PLUGINS.find(({ field }) => isRecord(spec[field]));
  const content = plugin === undefined ? undefined : spec[plugin.field];
  if (plugin === undefined || !isRecord(content)) return built(pv);
  const [labels, annotations] = [partOf(metadata, 'labels'), partOf(metadata, 'annotations')];
  const namespace = textOf(partOf(spec, 'claimRef').namespace);
  const csi = plugin.csi(content, { name: textOf(recordOf(metadata).name), namespace, labels, annotations, inline: false });
  return csi.ok
    ? built({ metadata, spec: { ...placedSpec(spec, plugin, labels), csi: { driver: plugin.driver, ...csi.value } } })
    : failed(csi);
}

function placedSpec(spec: Fields, plugin: InTreePlugin, labels: Fields): Fields {
  const { topology, accessModes, field } = plugin;
  const { [field]: _, ...rest } = spec;
  const nodeAffinity = topology === undefined ? rest.nodeAffinity : translatedAffinity(rest.nodeAffinity, labels, topology);
  const modes = accessModes === undefined || rest.accessModes === undefined ? rest.accessModes : accessModes(listOf(rest.accessModes));
  return { ...rest, ...(nodeAffinity === undefined ? {} : { nodeAffinity }), ...(modes === undefined ? {} : { accessModes: modes }) };
}
