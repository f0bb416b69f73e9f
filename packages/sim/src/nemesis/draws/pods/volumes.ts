/** Volumes that are images, and huge pages. */
import type { PodDraw } from './podDraw.ts';

const IMAGES = 0.06;
const HUGE = 0.04;
export const IMAGE_VOLUME = 'content';

export const drawImageVolume: PodDraw = (rng, { manifest: { spec } }) => {
  if (!rng.chance(IMAGES)) return {};
  const reference = `content-${rng.int(2)}:1`;
  const [first] = spec.containers;
  if (first === undefined) return {};
  spec.volumes = [
    ...(spec.volumes ?? []),
    { name: IMAGE_VOLUME, image: { reference, ...(rng.chance(0.3) ? { pullPolicy: 'Always' } : {}) } },
  ];
  first.volumeMounts = [...(first.volumeMounts ?? []), { name: IMAGE_VOLUME, mountPath: `/${IMAGE_VOLUME}` }];
  return {};
};

export const drawHugePages: PodDraw = (rng, { manifest: { spec } }) => {
  const [first] = spec.containers;
  if (!rng.chance(HUGE) || first === undefined || first.resources?.requests !== undefined) return {};
  const amounts = { 'hugepages-2Mi': '4Mi', memory: '16Mi' };
  first.resources = { requests: { ...amounts }, limits: { ...first.resources?.limits, ...amounts } };
  spec.volumes = [...(spec.volumes ?? []), { name: 'huge', emptyDir: { medium: 'HugePages' } }];
  first.volumeMounts = [...(first.volumeMounts ?? []), { name: 'huge', mountPath: '/huge' }];
  return {};
};
