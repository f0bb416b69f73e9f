/** What leaves the machine in a recording, without what is secret in its messages. */
import type { History } from '@actorlet/kubelet/actors/recorder/history.ts';
import { shownImage } from '@actorlet/kubelet/machines/kube/imageRef.ts';

const IMAGES: ReadonlySet<string> = new Set(['image', 'imageID', 'reference', 'names']);
/** Keys of texts for people; programs may have said what they were given. */
const MESSAGES: ReadonlySet<string> = new Set([
  ...['message', 'reason', 'what', 'detail', 'error', 'refusal', 'why', 'where', 'server', 'networkReason', 'remark'],
  ...['lastError', 'leftAlone', 'hints', 'chosen', 'title'],
]);

/** `value` with its messages hidden; what has none stays the same object. */
export function withoutSecrets<T>(value: T, history: Pick<History, 'hidden'>): T {
  return changed(value, '', (text, key) => (IMAGES.has(key) ? shownImage(text) : history.hidden(text))) as T;
}

function changed(value: unknown, key: string, change: (text: string, key: string) => string): unknown {
  if (typeof value === 'string') return MESSAGES.has(key) || IMAGES.has(key) ? change(value, key) : value;
  if (Array.isArray(value)) {
    const made = value.map((item) => changed(item, key, change));
    return made.every((item, i) => item === value[i]) ? value : made;
  }
  if (typeof value !== 'object' || value === null) return value;
  let made: Record<string, unknown> | null = null;
  for (const [name, item] of Object.entries(value)) {
    if (typeof item !== 'string' && typeof item !== 'object') continue;
    const one = changed(item, name, change);
    if (one !== item) made = { ...(made ?? value), [name]: one };
  }
  return made ?? value;
}
