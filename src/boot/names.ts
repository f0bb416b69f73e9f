/** Kubernetes name rules that flags and configuration are checked with. Pure. */

const NAME = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** `[prefix/]name`: prefix a DNS subdomain of at most 253, name at most 63 characters. */
export function isQualifiedName(text: string): boolean {
  const parts = text.split('/');
  if (parts.length > 2) return false;
  const name = parts[parts.length - 1] ?? '';
  const prefix = parts.length === 2 ? parts[0] : undefined;
  if (prefix !== undefined && (prefix.length > 253 || !SUBDOMAIN.test(prefix))) return false;
  return name.length <= 63 && NAME.test(name);
}

/** Empty, or at most 63 characters that begin and end alphanumeric. */
export function isLabelValue(text: string): boolean {
  return text === '' || (text.length <= 63 && NAME.test(text));
}
