/** Which objects of a collection a request means: field selectors as the reference parses them, and label selectors. */
import { parseLabelSelector } from '@actorlet/kubelet/machines/kube/read/labelSelector.ts';
import type { KubeObject, KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { textFieldsOf } from '@actorlet/kubelet/machines/shape/lenient.ts';
import { ApiFault } from './apiFault.ts';
import type { Resource } from './resource.ts';

const ALL = ['metadata.name', 'metadata.namespace'];
const OF_EVENTS = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'];
/** Beside the name and the namespace; what a reference of the same version knows. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  pods: [
    ...['spec.nodeName', 'spec.restartPolicy', 'spec.schedulerName', 'spec.serviceAccountName', 'spec.hostNetwork'],
    ...['status.phase', 'status.podIP', 'status.nominatedNodeName'],
  ],
  nodes: ['spec.unschedulable'],
  services: ['spec.clusterIP', 'spec.type'],
  events: [...OF_EVENTS.map((f) => `involvedObject.${f}`), 'reason', 'reportingComponent', 'source', 'type'],
  secrets: ['type'],
  certificatesigningrequests: ['spec.signerName'],
  clustertrustbundles: ['spec.signerName'],
  podcertificaterequests: ['spec.signerName', 'spec.podName', 'spec.nodeName'],
  resourceslices: ['spec.nodeName', 'spec.driver'],
};
/** Where they are absent they are false. */
const BOOLEANS: readonly string[] = ['spec.hostNetwork', 'spec.unschedulable'];
/** A comma that no backslash escapes. */
const BETWEEN = /(?<!\\),/;
/** The first operator of a term. */
const TERM = /^(?<field>.*?)(?<not>!)?(?<!\\)={1,2}(?<value>.*)$/;

type Matches = (object: KubeObject) => boolean;

/** A field that has this value in each object of a selection. */
export interface Pin {
  field: string;
  value: string;
}
export interface Selector {
  matches: Matches;
  /** Undefined: no field selector asks for one value. */
  pin: Pin | undefined;
}

/** @throws ApiFault 400 */
export function selectorOf(r: Resource, query: KubeRequest['query'], namespace: string): Selector {
  const terms = (query?.fieldSelector ?? '').split(BETWEEN).flatMap((term) => (term === '' ? [] : [fieldTerm(r, term)]));
  const labelText = query?.labelSelector ?? '';
  const labels = parseLabelSelector(labelText);
  if (typeof labels === 'string') throw new ApiFault(400, 'BadRequest', `unable to parse requirement: ${labels}`);
  const matches: Matches = (o) =>
    (namespace === '' || o.metadata.namespace === namespace) &&
    terms.every(({ field, value, equal }) => (fieldOf(o, field) === value) === equal) &&
    (labelText === '' || labels(textFieldsOf(o.metadata.labels)));
  return { matches, pin: terms.find((term) => term.equal) };
}

function fieldTerm(r: Resource, term: string): Pin & { equal: boolean } {
  const { field, not, value = '' } = TERM.exec(term)?.groups ?? {};
  if (field === undefined) throw new ApiFault(400, 'BadRequest', `invalid selector: can't understand '${term}'`);
  if (!ALL.includes(field) && !FIELDS[r.name]?.includes(field))
    throw new ApiFault(400, 'BadRequest', `field label not supported: ${field}`);
  return { field, value: value.replace(/\\([\\,=])/g, '$1'), equal: not === undefined };
}

export function fieldOf(object: KubeObject, field: string): string {
  const at = (path: string): unknown => path.split('.').reduce<unknown>((v, key) => (isRecord(v) ? v[key] : undefined), object);
  const value = field === 'source' ? at('source.component') || at('reportingComponent') : at(field);
  return String(value ?? (BOOLEANS.includes(field) ? false : ''));
}
