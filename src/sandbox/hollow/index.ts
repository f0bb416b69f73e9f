/** `embedded://hollow`: a simulated container runtime, in-process, scripted, on ports only. */

export { imageId } from './calls/images.ts';
export { DEFAULT_LIFE, HOLLOW_ANNOTATION, type HollowLife, parseLife } from './life.ts';
export { createHollowRuntime } from './runtime.ts';
export type {
  HollowContainerDump,
  HollowDump,
  HollowImage,
  HollowOptions,
  HollowRuntime,
  HollowSandboxDump,
  ScriptedContainer,
} from './types.ts';
