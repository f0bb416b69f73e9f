/** A viewer that keeps what it was sent, and a node in virtual time with the feed of the inspection page on it. */

import type { Inspected } from '@actorlet/kubelet/actors/recorder/source.ts';
import type { VirtualNode } from '../../../test/integration/virtualNode.ts';
import type { ServerFrame } from '../src/feed/frames.ts';
import { Hub } from '../src/feed/hub.ts';
import type { Joined, Viewer } from '../src/feed/viewer.ts';

export const INSPECT = { flags: { inspect: '127.0.0.1:0' } } as const;

export function inspectedOf(h: VirtualNode): Inspected {
  const { inspected } = h.node;
  if (inspected === null) throw new Error('the node was not started to be inspected');
  return inspected;
}

export interface TestViewer extends Viewer {
  frames: ServerFrame[];
  texts: string[];
  closed: string;
  /** Bytes that are said to wait. */
  stuckBytes: number;
  of<T extends ServerFrame['t']>(t: T): Extract<ServerFrame, { t: T }>[];
}
export function viewer(): TestViewer {
  const self: TestViewer = {
    frames: [],
    texts: [],
    closed: '',
    stuckBytes: 0,
    backlogBytes: () => self.stuckBytes,
    send(text) {
      self.texts.push(text);
      self.frames.push(JSON.parse(text) as ServerFrame);
    },
    close(why) {
      self.closed = why;
    },
    of: <T extends ServerFrame['t']>(t: T) => self.frames.filter((f): f is Extract<ServerFrame, { t: T }> => f.t === t),
  };
  return self;
}
export function attach(hub: Hub, to: TestViewer): Joined {
  const joined = hub.join(to);
  if (joined === null) throw new Error('no room for a viewer');
  return joined;
}
export function hubOf(h: VirtualNode): Hub {
  return new Hub(inspectedOf(h), () => ({ [Symbol.dispose]: () => undefined }));
}
export function watch(joined: Joined, what: object): void {
  joined.message(JSON.stringify({ t: 'watch', ...what }));
}
