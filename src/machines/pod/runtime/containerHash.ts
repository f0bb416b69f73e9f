/**
 * The hash of a container's definition, as the reference writes it on containers. Two forms are in the field: the
 * name-and-image form of 1.31 and later, which this node writes, and the whole-definition form of older nodes, which it
 * must recognise in order to take their containers over without a restart (pod lifecycle 5.10).
 */
import type { Container } from '../../kube/podTable.ts';
import { encodeContainer, goString } from '../goJson.ts';

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** FNV-1a, 32 bit, over the decimal dump of the document's bytes. */
function hashDocument(json: string): string {
  const text = `([]uint8)[${new TextEncoder().encode(json).join(' ')}]`;
  let hash = FNV_OFFSET;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), FNV_PRIME);
  }
  return (hash >>> 0).toString(16);
}

/** Lower-case hex without leading zeros: the form this node writes. */
export function hashNameAndImage(container: Container): string {
  // Each decision about a pod compares each of its containers, which are never changed.
  const known = HASHES.get(container);
  if (known?.image === container.image && known?.name === container.name) return known.hash;
  const { image, name } = container;
  const hash = hashDocument(`{"image":${goString(image ?? '')},"name":${goString(name)}}`);
  HASHES.set(container, { image, name, hash });
  return hash;
}
const HASHES = new WeakMap<Container, { image: string | undefined; name: string; hash: string }>();

/** Lower-case hex without leading zeros: the form nodes before 1.31 wrote, over the definition with its defaults. */
export function hashWholeSpec(container: Container): string {
  return hashDocument(encodeContainer(container));
}

/** True when the annotation is the hash of this definition in either form. A missing annotation matches nothing. */
export function matchesHash(container: Container, annotationHex: string): boolean {
  const written = annotationHex.toLowerCase().replace(/^0+(?=.)/, '');
  return written !== '' && (written === hashNameAndImage(container) || written === hashWholeSpec(container));
}
