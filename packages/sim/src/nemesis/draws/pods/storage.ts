/** Pods with limits of what they may write; some write more. */
import { HOLLOW_ANNOTATION } from '@actorlet/runtimes/src/hollow/index.ts';
import type { PodDraw } from './podDraw.ts';

const LIMITED = 0.15;
const WRITES_TOO_MUCH = 0.4;
const LIMIT = '100Mi';
/** In bytes. */
const TOO_MUCH = 200 * 1024 * 1024;

export const drawStorage: PodDraw = (rng, { pod, manifest }) => {
  if (!rng.chance(LIMITED)) return {};
  const [first] = manifest.spec.containers;
  if (first === undefined) return {};
  first.resources = { ...first.resources, limits: { ...first.resources?.limits, 'ephemeral-storage': LIMIT } };
  if (!rng.chance(WRITES_TOO_MUCH) || pod.fate === 'ends') return {};
  const { annotations } = manifest.metadata;
  const key = `${HOLLOW_ANNOTATION}.${first.name}`;
  const lives = (annotations[key] ?? '').split(';');
  annotations[key] = lives.map((life) => `${life},writes=${TOO_MUCH}`).join(';');
  return { writesTooMuch: true };
};
