/** The floors of src/machines and the doors of its managers: data of check-imports.mjs. */

/** Lowest first: a floor may import itself and those before it. Managers stand above all of them. */
export const FLOORS = [
  'machines/version.ts',
  'machines/data/',
  'machines/text/',
  'machines/result.ts',
  'machines/document/',
  'machines/shape/',
  'machines/kube/',
  'machines/wire/',
  'machines/host/',
  'machines/xstate/',
  'machines/supervision/',
  'machines/nodeFacts.ts',
  'machines/config/',
  'machines/pod/',
  'machines/figures/',
  'machines/chart/',
  'machines/recorder/',
];

/** Folders with several managers in them; the files right in the folder are shared by these. */
export const LAYERS = ['pods', 'runtime', 'services', 'allocation', 'reclaim', 'api'];

/** Decisions that stand in a folder of their own, and whose they are. */
export const SHARED_BY = { 'pods/admission': 'pods/manager', 'pods/resize': 'pods/manager' };

/** Imports that still reach into the inside of another manager. This list may only get shorter. */
export const DOORS = [
  'actors/allocation/cgroups/cgroups.ts -> machines/pods/resize/allocation.ts',
  'actors/allocation/devices/allocator.ts -> machines/pods/admission/admission.ts',
  'actors/api/podWriters.ts -> machines/pods/sources/apiPod.ts',
  'actors/pods/manager/facts.ts -> machines/api/node/nodeObject.ts',
  'actors/pods/sources/api.ts -> machines/api/listWatchMachine.ts',
  'actors/pods/sources/api.ts -> machines/api/podWriterDecide.ts',
  'actors/pods/sources/document.ts -> machines/pods/podConfig/kept.ts',
  'actors/pods/sources/fileReader.ts -> machines/pods/podConfig/kept.ts',
  'actors/pods/workers/reports.ts -> machines/pods/status/manager.ts',
  'actors/pods/workers/sandbox/podGroup.ts -> machines/allocation/cgroups/names.ts',
  'actors/pods/workers/sandbox/userNamespace.ts -> machines/reclaim/userNamespaces.ts',
  'actors/pods/workers/container/volumes.ts -> machines/services/volumes/subPaths.ts',
  'actors/reclaim/housekeeping.ts -> machines/pods/podConfig/kept.ts',
  'actors/services/client.ts -> machines/pods/workers/config/env.ts',
  'actors/services/client.ts -> machines/runtime/imagePuller/keyring.ts',
  'actors/services/objects/objects.ts -> machines/api/listWatchMachine.ts',
  'actors/services/plugins/devices.ts -> machines/allocation/devices/rules.ts',
  'actors/services/plugins/plugins.ts -> machines/allocation/devices/rules.ts',
  'machines/allocation/cgroups/values.ts -> machines/allocation/cpus/policy.ts',
  'machines/api/podWriterDecide.ts -> machines/pods/status/manager.ts',
  'machines/api/statusPatch.ts -> machines/pods/status/conditions.ts',
  'machines/pods/admission/judge.ts -> machines/reclaim/eviction/admission.ts',
  'machines/pods/status/statusMachine.ts -> machines/api/podWriterDecide.ts',
  'machines/pods/workers/decide.ts -> machines/pods/status/generate.ts',
  'machines/pods/workers/decide.ts -> machines/services/probes/state.ts',
  'machines/pods/workers/regions/plan.ts -> machines/pods/status/generate.ts',
  'machines/pods/workers/regions/plan.ts -> machines/pods/status/manager.ts',
  'machines/pods/workers/regions/plan.ts -> machines/services/probes/state.ts',
  'machines/services/volumes/payload.ts -> machines/pods/workers/config/env.ts',
];
