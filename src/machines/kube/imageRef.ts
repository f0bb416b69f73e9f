/** Image references as container registries write them: `[host[:port]/]path[:tag][@digest]`. Pure. */
import { own } from '../data/own.ts';
import { MASKED } from '../text/shownUrl.ts';

interface ImageRef {
  /** Registry host with port; `docker.io` when none is written. */
  domain: string;
  /** Path inside the registry; `library/` is put before a single word of the default registry. */
  path: string;
  tag: string | undefined;
  digest: string | undefined;
}
export type ParsedImage = { ok: true; ref: ImageRef } | { ok: false; error: string };

const PATH_PART = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const DOMAIN =
  /^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?$/;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const DIGEST = /^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$/;
const HEX_LENGTHS: Readonly<Record<string, number>> = { sha256: 64, sha384: 96, sha512: 128 };
const BARE_ID = /^[a-f0-9]{64}$/;
/** Longest repository name, domain included. */
const NAME_LENGTH_MAX = 255;
const DEFAULT_DOMAIN = 'docker.io';

function bad(why?: string): ParsedImage {
  return { ok: false, error: why === undefined ? 'invalid reference format' : `invalid reference format: ${why}` };
}

/** Splits and checks a reference; nothing is looked up. */
export function parseImageRef(text: string): ParsedImage {
  if (text === '') return bad('it is empty');
  if (BARE_ID.test(text)) return bad('an image id of 64 hexadecimal digits is not a name');
  const at = text.indexOf('@');
  const digest = at < 0 ? undefined : text.slice(at + 1);
  if (digest !== undefined && !digestFits(digest)) return bad('the part after @ is not a digest');
  const beforeDigest = at < 0 ? text : text.slice(0, at);
  // A colon after the last slash begins a tag; one before it is a port.
  const colon = beforeDigest.indexOf(':', beforeDigest.lastIndexOf('/') + 1);
  const tag = colon < 0 ? undefined : beforeDigest.slice(colon + 1);
  if (tag !== undefined && !TAG.test(tag)) return bad('the tag is not valid');
  const name = colon < 0 ? beforeDigest : beforeDigest.slice(0, colon);
  const { domain, path } = splitDomain(name);
  if (!DOMAIN.test(domain)) return bad('the registry host is not valid');
  if (path !== path.toLowerCase()) return bad('repository name must be lowercase');
  if (!path.split('/').every((part) => PATH_PART.test(part))) return bad();
  if (domain.length + 1 + path.length > NAME_LENGTH_MAX) return bad(`repository name must not be more than ${NAME_LENGTH_MAX} characters`);
  return { ok: true, ref: { domain, path, tag, digest } };
}

function digestFits(digest: string): boolean {
  if (!DIGEST.test(digest)) return false;
  const colon = digest.indexOf(':');
  const length = own(HEX_LENGTHS, digest.slice(0, colon));
  const hex = digest.slice(colon + 1);
  return length === undefined || (hex.length === length && hex === hex.toLowerCase());
}

function splitDomain(name: string): { domain: string; path: string } {
  const slash = name.indexOf('/');
  const first = slash < 0 ? '' : name.slice(0, slash);
  const isHost = first !== '' && (/[.:]/.test(first) || first === 'localhost' || first !== first.toLowerCase());
  const domain = !isHost ? DEFAULT_DOMAIN : first === 'index.docker.io' ? DEFAULT_DOMAIN : first;
  const path = isHost ? name.slice(slash + 1) : name;
  return { domain, path: domain === DEFAULT_DOMAIN && path !== '' && !path.includes('/') ? `library/${path}` : path };
}

/**
 * Where a user and a password stand before the registry: between a scheme and the last `@` that begins no digest. They are no part
 * of a reference, and some write them. Null: there are none.
 */
export function userOfImage(text: string): { from: number; to: number } | null {
  const digest = text.search(/@sha\d+:[^@]*$/);
  const to = (digest < 0 ? text : text.slice(0, digest)).lastIndexOf('@');
  return to < 0 ? null : { from: /^[a-z][a-z0-9+.-]*:\/\//i.exec(text.slice(0, to))?.[0].length ?? 0, to };
}

/** As people may see it. */
export function shownImage(text: string): string {
  const user = userOfImage(text);
  return user === null ? text : `${text.slice(0, user.from)}${MASKED}${text.slice(user.to)}`;
}

export type NamedImage = { ok: true; image: string } | { ok: false; error: string };
/** Appends `:latest` to the text as written when it has neither tag nor digest; the registry is never expanded. */
export function withDefaultTag(image: string): NamedImage {
  const parsed = parseImageRef(image);
  if (!parsed.ok) return { ok: false, error: `couldn't parse image name "${shownImage(image)}": ${parsed.error}` };
  const { tag, digest } = parsed.ref;
  return { ok: true, image: tag === undefined && digest === undefined ? `${image}:latest` : image };
}
