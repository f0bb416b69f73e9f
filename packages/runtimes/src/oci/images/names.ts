/** Names of images, as Docker and the CRI runtimes read them. Pure. */
import { imageTag } from '../../shared/model.ts';

const DEFAULT_REGISTRY = 'docker.io';
const DIGEST = /@(sha256:[0-9a-f]{64})$/;
const PART = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const HOST = '(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\\[[0-9a-f:]+\\])(?::\\d+)?';
const NAME = new RegExp(`^${HOST}(?:/${PART})+(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`);
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/;

export interface ImageName {
  /** With registry, and with a tag or a digest: `docker.io/library/nginx:1.27`. */
  full: string;
  /** Without tag and digest. */
  repository: string;
  registry: string;
  digest: string | null;
}

/** Null for what is no name. */
export function parseName(text: string): ImageName | null {
  const [first = '', ...rest] = text.split('/');
  const hasRegistry = rest.length > 0 && (first.includes('.') || first.includes(':') || first === 'localhost');
  const path = hasRegistry ? rest.join('/') : text;
  const registry = hasRegistry ? first : DEFAULT_REGISTRY;
  const full = imageTag(`${registry}/${registry === DEFAULT_REGISTRY && !path.includes('/') ? 'library/' : ''}${path}`);
  if (!NAME.test(full)) return null;
  const repository = full.replace(DIGEST, '').replace(/:[^:/]*$/, '');
  return { full, repository, registry, digest: DIGEST.exec(full)?.[1] ?? null };
}

/** Registries of this machine speak plain HTTP, as containerd and Docker take them. */
export const isLoopback = (registry: string): boolean => LOOPBACK.test(registry);
