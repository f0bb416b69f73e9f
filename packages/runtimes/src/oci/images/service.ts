/** CRI calls about images where OCI images run: those that are built in are answered as ever. */
import type { FilesystemUsage } from '@actorlet/kubelet/machines/wire/criStats.ts';
import type { ImageHandlers, Oci } from '../../process/types.ts';
import { CODE, nanos, RuntimeRefusal } from '../../shared/model.ts';
import { diskUsage } from './budget.ts';
import { type PullDeps, pullImage } from './pull.ts';
import { imageOf } from './records.ts';

/** `containersDir`: of their writable layers. */
export function imageService(d: PullDeps & { containersDir: string }, o: Parameters<Oci['imageHandlers']>[0]): ImageHandlers {
  const { records } = d;
  const { others, builtIn, usedBy } = o;
  return {
    async ListImages(req, signal) {
      const wanted = req.filter?.image?.image;
      const own = wanted ? [records.find(wanted)].filter((r) => r !== undefined) : records.list();
      const { images } = await others.ListImages(req, signal);
      return { images: [...images, ...own.map(imageOf)] };
    },
    ImageStatus(req, signal) {
      const found = records.find(req.image.image);
      return found === undefined ? others.ImageStatus(req, signal) : { image: imageOf(found), info: {} };
    },
    async PullImage(req, signal) {
      const { image, auth } = req;
      if (builtIn(image.image)) return others.PullImage(req, signal);
      return { imageRef: (await pullImage(d, image.image, { auth, signal })).id };
    },
    async RemoveImage(req, signal) {
      const found = records.find(req.image.image);
      if (found === undefined) return others.RemoveImage(req, signal);
      const user = usedBy(found.id);
      if (user !== undefined) throw new RuntimeRefusal(CODE.failedPrecondition, `image ${req.image.image} is used by container ${user}`);
      await records.remove(found);
      return {};
    },
    async ImageFsInfo() {
      const all = records.list();
      const sum = (of: 'bytes' | 'inodes'): number => all.reduce((total, r) => total + r[of], 0);
      const images = usage(records.folderOfAll, { bytes: sum('bytes'), inodes: sum('inodes') });
      return { imageFilesystems: [images], containerFilesystems: [usage(d.containersDir, await diskUsage(d.containersDir))] };
    },
  };
}

function usage(mountpoint: string, { bytes, inodes }: { bytes: number; inodes: number }): FilesystemUsage {
  const timestamp = nanos(performance.timeOrigin + performance.now());
  return { timestamp, fsId: { mountpoint }, usedBytes: { value: String(bytes) }, inodesUsed: { value: String(inodes) } };
}
