/** Formats of names and addresses in the Kubernetes API. Each check gives what is wrong, or null. Pure. */

import { own } from '../data/own.ts';
import { quoted } from '../text/errorList.ts';
import { QUANTITY_CHARS_MAX } from './quantity.ts';

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const QUALIFIED = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const PORT_NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

export function dnsLabel(name: string): string | null {
  if (name === '') return 'required';
  if (name.length > 63) return 'must be at most 63 characters';
  return LABEL.test(name)
    ? null
    : `${quoted(name)} must be lower-case letters, digits and '-', beginning and ending with a letter or digit`;
}

export function dnsSubdomain(name: string): string | null {
  if (name === '') return 'required';
  if (name.length > 253) return 'must be at most 253 characters';
  return SUBDOMAIN.test(name)
    ? null
    : `${quoted(name)} must be lower-case letters, digits, '-' and '.', each part beginning and ending with a letter or digit`;
}

/** `name` or `prefix.example.com/name`: label and annotation keys, readiness gates. */
export function qualifiedName(key: string): string | null {
  const parts = key.split('/');
  const name = parts.pop() ?? '';
  const prefix = parts.pop();
  if (parts.length > 0) return `${quoted(key)} must hold at most one '/'`;
  if (prefix !== undefined) {
    const wrong = dnsSubdomain(prefix);
    if (wrong !== null) return `prefix ${wrong}`;
  }
  if (name === '') return 'name part required';
  if (name.length > 63) return 'name part must be at most 63 characters';
  return QUALIFIED.test(name)
    ? null
    : `${quoted(name)} must be letters, digits, '-', '_' and '.', beginning and ending with a letter or digit`;
}

export function labelValue(value: string): string | null {
  if (value.length > 63) return 'must be at most 63 characters';
  return value === '' || QUALIFIED.test(value)
    ? null
    : `${quoted(value)} must be letters, digits, '-', '_' and '.', beginning and ending with a letter or digit`;
}

/** Any printable ASCII but `=` (the rule since 1.34). */
export function envName(name: string): string | null {
  if (name === '') return 'required';
  return /^[ -<>-~]+$/.test(name) ? null : `${quoted(name)} must be printable ASCII without '='`;
}

export function portName(name: string): string | null {
  if (name.length > 15) return 'must be at most 15 characters';
  if (!PORT_NAME.test(name) || name.includes('--')) {
    return `${quoted(name)} must be lower-case letters, digits and single '-' inside`;
  }
  return /[a-z]/.test(name) ? null : `${quoted(name)} must hold at least one letter`;
}

function isIPv4(ip: string): boolean {
  const parts = ip.split('.');
  return parts.length === 4 && parts.every((p) => /^(0|[1-9]\d{0,2})$/.test(p) && Number(p) <= 255);
}

export function isIPv6(ip: string): boolean {
  const halves = ip.split('::');
  if (halves.length > 2) return false;
  const groups = halves.flatMap((h) => (h === '' ? [] : h.split(':')));
  const last = groups.at(-1);
  const mapped = last?.includes('.') === true;
  if (mapped && (last === undefined || !isIPv4(last) || !ip.endsWith(last))) return false;
  const hex = mapped ? groups.slice(0, -1) : groups;
  if (!hex.every((g) => /^[0-9a-fA-F]{1,4}$/.test(g))) return false;
  const count = hex.length + (mapped ? 2 : 0);
  return halves.length === 2 ? count < 8 : count === 8;
}

export function ipAddress(ip: string): string | null {
  return isIPv4(ip) || isIPv6(ip) ? null : `${quoted(ip)} is not an IP address`;
}

const QUANTITY = /^([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/;
const SCALE: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** Approximate value, good for comparisons between what a manifest says; null when it is no quantity. */
export function quantityValue(q: string | number): number | null {
  if (typeof q === 'number') return q;
  if (q.length > QUANTITY_CHARS_MAX) return null;
  const m = QUANTITY.exec(q);
  if (m === null) return null;
  const [, digits = '', exponent, suffix] = m;
  return Number(digits + (exponent ?? '')) * (suffix === undefined ? 1 : (own(SCALE, suffix) ?? 1));
}

/** A resource with a domain that is not Kubernetes' own, whose name is still good behind `requests.` (quotas name it so). */
export function isExtendedResource(name: string): boolean {
  if (!name.includes('/') || name.includes(NATIVE) || name.startsWith(REQUESTS)) return false;
  const [prefix = '', base = '', ...rest] = `${REQUESTS}${name}`.split('/');
  return rest.length === 0 && prefix.length <= PREFIX_MAX && PREFIX.test(prefix) && base.length <= NAME_MAX && NAME.test(base);
}

/** Names with this in them are Kubernetes' own. */
const NATIVE = 'kubernetes.io/';

const REQUESTS = 'requests.';
const PREFIX = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const PREFIX_MAX = 253;
const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const NAME_MAX = 63;

/** Either separator may be written. One that begins with slashes has dots as part of its names: they change places. */
export function dottedSysctl(name: string): string {
  const first = /[./]/.exec(name)?.[0];
  if (first !== '/') return name;
  return name.replace(/[./]/g, (c) => (c === '/' ? '.' : '/'));
}

/** What Linux allows (`__NEW_UTS_LEN`). */
export const KERNEL_HOSTNAME_CHARS_MAX = 64;

/** How names of resources that are huge pages begin, before their size. */
export const HUGE_PAGES_PREFIX = 'hugepages-';
