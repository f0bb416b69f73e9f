/** Stand-ins for what tells whose node it was: names of pods, namespaces, containers and nodes, images and addresses. */
import type { Container } from '@actorlet/kubelet/machines/kube/podTable.ts';
import { hashNameAndImage } from '@actorlet/kubelet/machines/pod/runtime/containerHash.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Json } from '../entries.ts';
import type { Renaming } from '../lenient/edit.ts';
import type { KnownPod } from '../player/pods.ts';

/** Namespaces of every cluster. */
const OPEN_NAMESPACES: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public', 'kube-node-lease', '']);
const IPV4 = /(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])/g;
const IPV6 = /(?<![\w:])(?:[0-9a-f]{1,4}:){1,7}(?::?[0-9a-f]{1,4}){1,7}(?![\w:])/gi;
/** Loopback, "any", masks, and ranges for documentation, which are stand-ins already. */
const OPEN_ADDRESS = /^(?:127\.|0\.|255\.|192\.0\.2\.|198\.51\.100\.|203\.0\.113\.)/;
/** Of CRI; in JSON inside of JSON quotes are escaped. */
const IMAGE_LISTS = /"repo(?:Tags|Digests)\\*":\[([^\]]*)\]/g;
/** RFC 5737 and RFC 3849. */
const ADDRESS_RANGES = ['192.0.2', '198.51.100', '203.0.113'];
const ADDRESSES_EACH = 254;
/** Words of the recording's own: kinds of values, names of functions and of classes of errors, and getters. */
const FORMAT = String.raw`"\$":"\w*"(?:,"v":-?\d+,"n":"[^"\\]*"|,"c":"\w*","n":"[^"\\]*")?|"get [^"\\]*":`;

/** @param o `texts`: all there is, as JSON text. `node`: names of the node and its API server. */
export function standIns(o: {
  pods: readonly KnownPod[];
  node: readonly string[];
  texts: Iterable<string>;
  containers: boolean;
}): Renaming {
  const words = new Map<string, string>();
  const all = o.pods.flatMap((pod) => containersOf(pod.spec));
  addSorted(words, 'node', o.node);
  addSorted(
    words,
    'pod',
    o.pods.map((pod) => pod.name),
  );
  addSorted(
    words,
    'namespace',
    o.pods.map((pod) => pod.namespace).filter((name) => !OPEN_NAMESPACES.has(name)),
  );
  if (o.containers) addSorted(words, 'container', all.map((container) => container.name).filter(isText));
  const images = new Set(all.map((container) => container.image).filter(isText));
  for (const text of o.texts) {
    addAddresses(text, words);
    for (const image of imagesIn(text)) images.add(image);
  }
  for (const image of [...images].sort()) addImage(image, words);
  addHashes(o.pods, words);
  return renaming(words);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** In the order of the names themselves: what is sorted by name stays in its order. */
function addSorted(words: Map<string, string>, kind: string, names: readonly string[]): void {
  const sorted = [...new Set(names)].filter((name) => name.length > 1 && !words.has(name)).sort();
  const digits = String(sorted.length).length;
  for (const [i, name] of sorted.entries()) words.set(name, `${kind}-z${String(i).padStart(digits, '0')}`);
}

/** The node compares containers with their definitions by a hash of name and image. */
function addHashes(pods: readonly KnownPod[], words: Map<string, string>): void {
  const { into } = renaming(words);
  for (const { spec } of pods) {
    for (const container of containersOf(spec) as unknown as Container[]) {
      const named = JSON.parse(into(JSON.stringify({ name: container.name, image: container.image }))) as Pick<Container, 'name' | 'image'>;
      const hash = hashNameAndImage(container);
      if (!words.has(hash)) words.set(hash, hashNameAndImage({ ...container, ...named }));
    }
  }
}

function containersOf(spec: Json): Record<string, unknown>[] {
  if (!isRecord(spec)) return [];
  const all = ['initContainers', 'containers', 'ephemeralContainers'].flatMap((key) => (Array.isArray(spec[key]) ? spec[key] : []));
  return all.filter(isRecord);
}

/** Those that the runtime has, also of no pod. */
function* imagesIn(text: string): Generator<string> {
  for (const [, list = ''] of text.matchAll(IMAGE_LISTS)) for (const [, image = ''] of list.matchAll(/"([^"\\]+)\\*"/g)) yield image;
}

/** Its repository; a tag stays, and so does the registry that the node adds. */
function addImage(image: string, words: Map<string, string>): void {
  const [, repository = ''] = /^([^@]*?)(?::[\w.-]+)?(?:@.*)?$/.exec(image) ?? [];
  const short = repository.replace(/^docker\.io\/(?:library\/)?/, '');
  if (short !== '' && !words.has(short))
    words.set(short, /^[^/]*[.:]/.test(short) ? `registry.test/image-z${words.size}` : `image-z${words.size}`);
}

function addAddresses(text: string, words: Map<string, string>): void {
  for (const [address] of text.matchAll(IPV4)) {
    if (words.has(address) || OPEN_ADDRESS.test(address)) continue;
    const number = words.size;
    const range = ADDRESS_RANGES[Math.floor(number / ADDRESSES_EACH) % ADDRESS_RANGES.length];
    words.set(address, `${range}.${(number % ADDRESSES_EACH) + 1}`);
  }
  for (const [address] of text.matchAll(IPV6))
    if (address.split(':').length > 4 && !words.has(address) && !address.startsWith('2001:db8:'))
      words.set(address, `2001:db8::${words.size.toString(16)}:1`);
}

/** Both ways: each stand-in is of one word, and no text has it already. The words of the format stay. */
function renaming(words: ReadonlyMap<string, string>): Renaming {
  const back = new Map([...words].map(([word, standIn]) => [standIn, word]));
  return { into: replacer(words), back: replacer(back) };
}

function replacer(words: ReadonlyMap<string, string>): (text: string) => string {
  if (words.size === 0) return (text) => text;
  const longestFirst = [...words.keys()].sort((a, b) => b.length - a.length);
  const escaped = (word: string): string => word.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
  const any = longestFirst.map(escaped).join('|');
  // A whole word, also after an escape of JSON, and no key of an object: `"name":` stays where a container is called `name`. Records of
  // pulls have images for keys: a word with a slash in it, or after one.
  const images = longestFirst.filter((word) => /\/|^image-z\d/.test(word)).map(escaped);
  const keys = [...images, `(?<=/)(?:${any})`].join('|');
  const begin = String.raw`(?:(?<![A-Za-z0-9-])|(?<=\\[bfnrt]))`;
  const pattern = new RegExp(`${FORMAT}|${begin}(?:${keys})(?![A-Za-z0-9-])|${begin}(?:${any})(?![A-Za-z0-9-]|\\\\*":)`, 'g');
  return (text) => text.replace(pattern, (word) => words.get(word) ?? word);
}
