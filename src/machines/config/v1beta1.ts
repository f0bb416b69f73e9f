/** Renders the configuration back as v1beta1 JSON, as /configz shows it. Pure. */

import type { Fields, Shape } from '../shape/shape.ts';
import { formatGoDuration } from '../text/go/goDuration.ts';
import { MASKED, shownUrl } from '../text/shownUrl.ts';
import type { KubeletConfiguration } from './config.ts';
import { KUBELET_CONFIGURATION } from './schema.ts';

/**
 * The object under `kubeletconfig` of /configz: kind and version first, versioned field names and order, durations as Go text, empty optional
 * fields left out, map keys sorted. Header values of `staticPodURLHeader`, and user and query of `staticPodURL`,
 * are secrets and come out masked.
 */
export function toV1beta1(config: KubeletConfiguration): Record<string, unknown> {
  const headers = Object.fromEntries(Object.entries(config.staticPodURLHeader).map(([name, values]) => [name, values.map(() => MASKED)]));
  return {
    ...{ kind: 'KubeletConfiguration', apiVersion: 'kubelet.config.k8s.io/v1beta1' },
    ...plainV1beta1({ ...config, staticPodURL: shownUrl(config.staticPodURL), staticPodURLHeader: headers }),
  };
}

/** The fields alone, secrets included. */
export function plainV1beta1(config: KubeletConfiguration): Record<string, unknown> {
  return renderObject(config, KUBELET_CONFIGURATION);
}

function renderObject(value: object, fields: Fields): Record<string, unknown> {
  const from = new Map<string, unknown>(Object.entries(value));
  const out: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    const v = from.get(name);
    if (v !== undefined && v !== null && !isLeftOut(v, field)) out[name] = render(v, field);
  }
  return out;
}

/** Go's omitempty: empty scalars and collections of non-pointer fields; never durations and structs. */
function isLeftOut(value: unknown, field: Shape): boolean {
  if (field.always) return false;
  if (field.t === 'list') return Array.isArray(value) && value.length === 0;
  if (field.t === 'map') return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
  if (field.pointer || field.t === 'duration' || field.t === 'object') return false;
  return value === false || value === 0 || value === '';
}

function render(value: unknown, type: Shape): unknown {
  if (type.t === 'duration' || type.t === 'durationOrNs') return typeof value === 'number' ? formatGoDuration(value) : value;
  if (type.t === 'list') return Array.isArray(value) ? value.map((v: unknown) => render(v, type.of)) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (type.t === 'object') return renderObject(value, type.fields);
  if (type.t !== 'map') return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([k, v]: [string, unknown]) => [k, render(v, type.of)]));
}
