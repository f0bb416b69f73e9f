/** Invariants about images: which of them may be removed. */
import type { CriRequest } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { imageId } from '@actorlet/runtimes/src/hollow/calls/images.ts';
import { PINNED_IMAGE } from '@actorlet/world/src/runtime/runtime.ts';
import type { Checker, Scene } from '../checker.ts';

/** What came since a look at the runtime may be unknown to a removal for as long as messages and calls are held back. */
const SEEN_WITHIN_MS = 90_000;

/** No image that a container was made from is removed, whether it runs or has ended, and never one that the runtime keeps. */
export function imagesStay(): Checker {
  const firstSeen = new Map<string, number>();
  const keyOf = (s: Scene, id: string) => `${s.node.name} ${id}`;
  return {
    name: 'images-stay',
    changed(s, dump) {
      for (const { id } of dump.containers) if (!firstSeen.has(keyOf(s, id))) firstSeen.set(keyOf(s, id), s.monoMs);
      return undefined;
    },
    removesImage(s, call) {
      const { image } = (call.req as CriRequest<'RemoveImage'>).image;
      if (image === imageId(PINNED_IMAGE)) return `${s.node.name}: ${PINNED_IMAGE} is about to be removed, which the runtime keeps`;
      const user = s.node.runtime.hollow
        .dump()
        .containers.find((c) => c.imageRef === image && s.monoMs - (firstSeen.get(keyOf(s, c.id)) ?? s.monoMs) > SEEN_WITHIN_MS);
      return user === undefined
        ? undefined
        : `${s.node.name}: image ${image} is about to be removed, which ${user.name} of pod ${user.podUid} was made from`;
    },
  };
}
