/** What stands in the page itself: a recording and what is needed to show it, in a file of `actorctl html`. */
import type { LifeFrame, ServerFrame } from '../feed/frames.ts';
import { PastFeed } from '../recording/pastFeed.ts';
import { Recording } from '../recording/recording.ts';

/** As `html.ts` of actorctl writes it. */
interface Meta {
  startMs: number;
  life: LifeFrame;
  segments: number;
}
const idOf = (name: string): string => `actorlet-${name}`;

export function hasRecording(): boolean {
  return document.getElementById(idOf('meta')) !== null;
}

/** Tells `onFrame` what the feed of a daemon would. Answers where to send what is watched. */
export async function openRecording(onFrame: (frame: ServerFrame) => void): Promise<(text: string) => void> {
  const { startMs, life, segments } = JSON.parse(new TextDecoder().decode(await unpacked('meta'))) as Meta;
  const bytes = await Promise.all(Array.from({ length: segments }, (_, i) => unpacked(`segment-${i}`)));
  const feed = new PastFeed(new Recording(bytes), { startMs, life });
  const joined = feed.join({
    backlogBytes: () => 0,
    send: (text) => onFrame(JSON.parse(text) as ServerFrame),
    close: () => undefined,
  });
  return (text) => joined?.message(text);
}

/** Address of a script in the page; null: there is none of that name. */
export async function embeddedUrl(name: string): Promise<string | null> {
  if (document.getElementById(idOf(name)) === null) return null;
  return URL.createObjectURL(new Blob([await unpacked(name)], { type: 'text/javascript' }));
}

/** It is packed with gzip, in base64. */
async function unpacked(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const text = document.getElementById(idOf(name))?.textContent ?? '';
  const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}
