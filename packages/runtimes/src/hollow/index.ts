/** `embedded://hollow`: a simulated container runtime, in-process, scripted, on ports only. */

export { HOLLOW_ANNOTATION, type HollowLife, parseLife } from './life.ts';
export { createHollowRuntime } from './runtime.ts';
export type {
  HollowContainerDump,
  HollowDump,
  HollowHeld,
  HollowHeldContainer,
  HollowOptions,
  HollowRuntime,
  HollowSandboxDump,
  ScriptedContainer,
  StreamAsk,
} from './types.ts';
export { parseUsage, type Usage } from './usage.ts';
