/**
 * Names of pods, containers, volumes and images stay in a recording, and a variable may have one for its value. The node says them
 * in its own messages, among words of its own, and compares those with what the API server has: there they stay, too.
 */
import { userOfImage } from '@actorlet/kubelet/machines/kube/imageRef.ts';

/** Names that are remembered. */
const NAMES_MAX = 20_000;
const LISTS: ReadonlySet<string> = new Set(
  ['metadata', 'containers', 'initContainers', 'ephemeralContainers', 'volumes', 'spec'].concat(['secretKeyRef', 'configMapKeyRef']),
);
const KEYS: ReadonlySet<string> = new Set(['name', 'namespace', 'image', 'nodeName', 'key']);
/** Of the node's own messages in the status of pods and nodes. */
const WORDS: ReadonlySet<string> = new Set(
  'containers container with unready incomplete unknown status back-off Back-off restarting failed pod pulling image of the in not is has no'
    .concat(' couldn t find key Secret ConfigMap kubelet posting ready sufficient insufficient memory available disk pressure PID')
    .concat(' runtime network ErrImagePull ImagePullBackOff starting to start')
    .split(' '),
);
/** Signs of a name, and of an image. */
const NAME = /[a-z0-9.-]/i;
const NAMES = /[a-z0-9.-]+/gi;
const IMAGE = /[\w./:@-]/;
/** A longer one is none. */
const CHARS_MAX = 512;

export class PublicNames {
  readonly #names = new Set<string>();

  /** Of what has `key` in `owner`, which stands in `list`. */
  note(key: string, owner: object, list: string): void {
    if (!KEYS.has(key) || !LISTS.has(list)) return;
    const name: unknown = Reflect.get(owner, key);
    // A password before an image is none.
    if (typeof name !== 'string' || name === '' || name.length > CHARS_MAX || userOfImage(name) !== null) return;
    if (this.#names.size >= NAMES_MAX) this.#names.clear();
    this.#names.add(name);
    // Programs name the registry, with its port and without, in what they say of an image.
    const [host = ''] = name.split('/', 1);
    if (key === 'image' && host !== name) this.#names.add(host).add(host.replace(/:\d+$/, ''));
  }

  /** Whether this part of a text is, or is in, such names and words of the node alone. */
  has(text: string, part: { from: number; to: number }): boolean {
    if (this.#names.has(around(text, part, IMAGE))) return true;
    const names = around(text, part, NAME).match(NAMES) ?? [];
    return names.length > 0 && names.every((name) => WORDS.has(name) || this.#names.has(name));
  }
}

function around(text: string, { from, to }: { from: number; to: number }, sign: RegExp): string {
  let [begin, end] = [from, to];
  while (begin > 0 && end - begin <= CHARS_MAX && sign.test(text[begin - 1] ?? '')) begin -= 1;
  while (end < text.length && end - begin <= CHARS_MAX && sign.test(text[end] ?? '')) end += 1;
  return text.slice(begin, end);
}
