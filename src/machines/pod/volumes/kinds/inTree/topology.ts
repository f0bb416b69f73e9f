/** Where a PersistentVolume of an old plugin may be used, in the words of the CSI driver that took the plugin's place. Pure. */

import { own } from '../../../../data/own.ts';
import { isRecord } from '../../../../shape/conform.ts';
import { listOf, textOf } from '../../../../shape/lenient.ts';

type Fields = Record<string, unknown>;

/** Labels of nodes that a driver gives, in place of those that old plugins used. */
export interface Topology {
  zone: string;
  /** Absent: regions keep their label. */
  region?: string;
}

const ZONE = 'topology.kubernetes.io/zone';
const REGION = 'topology.kubernetes.io/region';
const BETA_ZONE = 'failure-domain.beta.kubernetes.io/zone';
const BETA_REGION = 'failure-domain.beta.kubernetes.io/region';

/** `a__b` of a label: several zones. */
export const zonesOf = (label: string): string[] => label.split('__');

/** The older of the two zone labels, for volumes that were made with it. */
export function zoneLabel(labels: Fields): string {
  return textOf(own(labels, BETA_ZONE)) || textOf(own(labels, ZONE));
}

/** `nodeAffinity` of the volume, translated. Undefined: it may be used everywhere. */
export function translatedAffinity(affinity: unknown, labels: Fields, { zone, region }: Topology): unknown {
  const beta = usesBeta(affinity, labels);
  const [zoneKey, regionKey] = beta ? [BETA_ZONE, BETA_REGION] : [ZONE, REGION];
  if (region !== undefined) {
    // This driver takes a label as one zone.
    const one = (label: string): string[] => [label];
    return placed(placed(affinity, labels, { from: zoneKey, to: zone, split: one }), labels, { from: regionKey, to: region, split: one });
  }
  const zoned = placed(affinity, labels, { from: zoneKey, to: zone, split: zonesOf });
  return beta ? renamed(zoned, regionKey, REGION) : zoned;
}

interface Placing {
  from: string;
  to: string;
  split(label: string): string[];
}
/** What the affinity says counts; the volume's label where it says nothing. */
function placed(affinity: unknown, labels: Fields, { from, to, split }: Placing): unknown {
  if (expressions(affinity).some((e) => e.key === from && listOf(e.values).length > 0)) return renamed(affinity, from, to);
  const values = [...new Set(split(textOf(own(labels, from))).map((v) => v.trim()))].filter((v) => v !== '').sort();
  return values.length === 0 ? affinity : withTerm(affinity, { key: to, operator: 'In', values });
}

function usesBeta(affinity: unknown, labels: Fields): boolean {
  const keys = new Set(expressions(affinity).map((e) => e.key));
  if (keys.has(ZONE)) return false;
  return keys.has(BETA_ZONE) || (own(labels, ZONE) === undefined && own(labels, BETA_ZONE) !== undefined);
}

function termsOf(affinity: unknown): Fields[] {
  const required = isRecord(affinity) ? affinity.required : undefined;
  return listOf(isRecord(required) ? required.nodeSelectorTerms : undefined).filter(isRecord);
}
const expressionsOf = (term: Fields): Fields[] => listOf(term.matchExpressions).filter(isRecord);
const expressions = (affinity: unknown): Fields[] => termsOf(affinity).flatMap(expressionsOf);

function withTerms(affinity: unknown, nodeSelectorTerms: Fields[]): Fields {
  const whole = isRecord(affinity) ? affinity : {};
  return { ...whole, required: { ...(isRecord(whole.required) ? whole.required : {}), nodeSelectorTerms } };
}
function renamed(affinity: unknown, from: string, to: string): unknown {
  const terms = termsOf(affinity);
  if (terms.length === 0) return affinity;
  const changed = (term: Fields) => expressionsOf(term).map((e) => (e.key === from ? { ...e, key: to } : e));
  return withTerms(
    affinity,
    terms.map((term) => (term.matchExpressions === undefined ? term : { ...term, matchExpressions: changed(term) })),
  );
}
function withTerm(affinity: unknown, requirement: Fields): Fields {
  const terms = termsOf(affinity);
  return withTerms(
    affinity,
    (terms.length === 0 ? [{}] : terms).map((term) => ({ ...term, matchExpressions: [...expressionsOf(term), requirement] })),
  );
}
