/** What lower layers (drivers, plugins, the image service) answered last, or have not answered yet. Pure. */
import { viewKey } from '../../supervision/address.ts';
import { shortDuration } from '../../text/duration.ts';

/** One call of a lower layer. */
export interface PeerCall {
  /** Who is asked, for people: `CSI driver ebs.csi.aws.com`. */
  peer: string;
  /** By what pods ask for it: a driver, a resource, an image; '' until it is known. */
  name: string;
  /** `NodePublishVolume`. */
  call: string;
  /** What the call is about: `volume data`. '' = the peer alone. */
  about?: string;
  /** The pod that it is for. Absent: none. */
  uid?: string;
}
export interface PeerWord {
  peer: string;
  name: string;
  call: string;
  about: string;
  uid: string;
  /** Wall ms since which there is no answer; null: none is waited for. */
  waitingMs: number | null;
  /** The last answer, which was an error; '' = none. */
  error: string;
  /** Wall ms of that error. */
  failedMs: number;
  /** Errors in a row. */
  failures: number;
}
/** Of one actor that asks lower layers. A call that succeeds leaves it. */
export type PeerWords = ReadonlyMap<string, PeerWord>;

export const peerViews = {
  csi: viewKey<PeerWords>('peersCsi'),
  volumeStats: viewKey<PeerWords>('peersVolumeStats'),
  plugins: viewKey<PeerWords>('peersPlugins'),
  devices: viewKey<PeerWords>('peersDevices'),
  claims: viewKey<PeerWords>('peersClaims'),
  runtime: viewKey<PeerWords>('peersRuntime'),
  credentials: viewKey<PeerWords>('peersCredentials'),
} as const;

/** Kept by one actor; the oldest error goes first. */
const WORDS_MAX = 100;
const ERROR_CHARS_MAX = 512;
const ABOUT_CHARS_MAX = 200;

export function peerKey({ peer, call, about = '', uid = '' }: PeerCall): string {
  return JSON.stringify([peer, call, about, uid]);
}

export function waiting(words: PeerWords, of: PeerCall, nowMs: number): PeerWords {
  const before = words.get(peerKey(of)) ?? fresh(of);
  return put(words, peerKey(of), { ...before, waitingMs: before.waitingMs ?? nowMs });
}

/** `error` null: it succeeded. */
export function answered(words: PeerWords, of: PeerCall, { error, nowMs }: { error: string | null; nowMs: number }): PeerWords {
  const key = peerKey(of);
  if (error === null) return without(words, key);
  const before = words.get(key) ?? fresh(of);
  const failed = { error: cut(error, ERROR_CHARS_MAX), failedMs: nowMs, failures: before.failures + 1 };
  return put(words, key, { ...before, ...failed, name: of.name, waitingMs: null });
}

/** Its asker gave up: what it would have answered is unknown. */
export function givenUp(words: PeerWords, of: PeerCall): PeerWords {
  const before = words.get(peerKey(of));
  if (before === undefined) return words;
  return before.error === '' ? without(words, peerKey(of)) : put(words, peerKey(of), { ...before, waitingMs: null });
}

/** Calls for that pod without an answer, as sentences. */
export function unanswered(words: PeerWords | undefined, { uid, nowMs }: { uid: string; nowMs: number }): string[] {
  return [...(words?.values() ?? [])].flatMap((w) =>
    w.uid !== uid || w.waitingMs === null
      ? []
      : [`${w.peer} has not answered ${w.call}${w.about === '' ? '' : ` of ${w.about}`} for ${shortDuration(nowMs - w.waitingMs)}`],
  );
}

/** A call of it that fails, as one may say to the pod that waits for it; '' when none does. */
export function whyUnregistered(words: PeerWords | undefined, name: string): string {
  const found = [...(words?.values() ?? [])].find((w) => w.name === name && w.error !== '');
  return found === undefined ? '' : found.error;
}

function fresh({ peer, name, call, about = '', uid = '' }: PeerCall): PeerWord {
  return { ...{ peer, name, call, about: cut(about, ABOUT_CHARS_MAX), uid }, waitingMs: null, error: '', failedMs: 0, failures: 0 };
}
function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max).toWellFormed()}…`;
}
function put(words: PeerWords, key: string, word: PeerWord): PeerWords {
  const next = new Map(words);
  next.delete(key);
  next.set(key, word);
  const over = next.size - WORDS_MAX;
  if (over <= 0) return next;
  const old = [...next].filter(([k]) => k !== key).sort(([, a], [, b]) => Number(a.waitingMs !== null) - Number(b.waitingMs !== null));
  for (const [k] of old.slice(0, over)) next.delete(k);
  return next;
}
function without(words: PeerWords, key: string): PeerWords {
  if (!words.has(key)) return words;
  return new Map([...words].filter(([k]) => k !== key));
}
