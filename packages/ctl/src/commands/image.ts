/** `actorctl image load`. */
import { loadImages } from '@actorlet/admin/src/images.ts';
import { type Command, print, printData, wantsData } from '../asked.ts';

export function loadImage(o: { adminSocket: string; file: string; name: string }): Command {
  return async (asked) => {
    const loaded = await loadImages(o.adminSocket, { ...o, signal: asked.io.signal });
    if (wantsData(asked.format)) printData(asked, loaded);
    else
      print(
        asked,
        loaded.map(({ id, tags }) => `loaded ${tags.join(', ')} (${id.slice(0, 19)})`),
      );
    return 0;
  };
}
