/** When an image is pulled, where the pod does not say. Pure. */

import type { PullPolicy } from './words.ts';

const DIGEST = /@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$/;
const PATH_PART = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const TAG = /^\w[\w.-]{0,127}$/;

/** The tag that an image's name has or comes to; '' with a digest alone, and for what is no image's name. */
function tagOf(image: string): string {
  const name = image.replace(DIGEST, '');
  const colon = name.indexOf(':', name.lastIndexOf('/') + 1);
  const tag = colon >= 0 ? name.slice(colon + 1) : name === image ? 'latest' : '';
  const parts = (colon >= 0 ? name.slice(0, colon) : name).split('/');
  const [domain = ''] = parts;
  const hasDomain = parts.length > 1 && (/[.:A-Z]/.test(domain) || domain === 'localhost');
  const isName = (hasDomain ? parts.slice(1) : parts).every((part) => PATH_PART.test(part));
  return isName && (colon < 0 || TAG.test(tag)) ? tag : '';
}

/** `Always` when the tag is, or resolves to, `latest`; a digest without a tag counts as pinned. */
export function defaultPullPolicy(image: string | undefined): PullPolicy {
  return tagOf(image ?? '') === 'latest' ? 'Always' : 'IfNotPresent';
}
