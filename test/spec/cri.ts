/** Who holds which trap of the container runtime interface. */
import type { Held, Trap, Traps } from './table.ts';

export const CRI_TRAPS = 15;

const held = (says: string, ...tests: Held[]): Trap => ({ says, tests });
const proto = 'runtime/proto.test.ts';
const volumes = 'machines/golden/volumes/volumes.test.ts';

export const cri: Traps = {
  1: held(
    'an image that is not there is an answer without one',
    [proto, 'shows a missing image as null, empty lists as [] and empty maps as {}'],
    ['packages/runtimes/test/conformance.ts', 'answers ImageStatus for an absent image with no image and no error'],
    ['e2e/runtime/cri.test.ts', 'tells a missing image by an answer without one, not by an error'],
  ),
  2: held('a user of 0 is not none', [proto, 'tells a user id of zero (root) from an absent one']),
  3: held('a message whose one field has number 2', [proto, 'reads a namespace option from field number 2']),
  4: held('times are larger than a number holds', [proto, 'keeps every digit of a time in nanoseconds']),
  5: held(
    'processes are not shared by accident',
    [proto, 'sends no pid mode as POD, so CONTAINER must be sent'],
    ['machines/pods/config/config.test.ts', 'CRI trap 5: each container of a pod has processes of its own, %s'],
  ),
  6: held('a stop has its grace on top', [
    'runtime/pure.test.ts',
    'follow the table: twice for a sandbox, grace on top for a stop, none for a pull',
  ]),
  7: held('a driver that is not named is not systemd', [proto, 'shows an absent cgroup driver as absent, not as SYSTEMD']),
  8: held('a log of an ended container may not open anew', [
    'integration/node/logRotation.test.ts',
    'resources trap 38: leaves it its name and content; that is said once, others are rotated, and so is it when the runtime can',
  ]),
  9: held('an update names what changes, and nothing else', [
    'integration/resources/resize.test.ts',
    'is told the runtime, memory first, and restarts nothing',
  ]),
  10: held('what is not there is stopped and removed', [
    'runtime/link.test.ts',
    'takes "not found" on stop and remove for done, and on anything else for an error',
  ]),
  11: held('the Strict policy needs a runtime that knows it', [
    'integration/resources/placement.test.ts',
    'CRI trap 11: refuses the pod on a node that says it has no such feature',
  ]),
  12: held('users of its own need a runtime that knows them', [
    'integration/containers/userNamespaces.test.ts',
    'CRI trap 12: fails closed where the runtime does not say that it can, and starts once it does',
  ]),
  13: held(
    'recursive read-only is for what is read-only and private',
    [volumes, 'recursive: not read-only'],
    [volumes, 'recursive: with propagation'],
    [volumes, 'recursive: Enabled, not possible'],
  ),
  14: held(
    'an image as a volume is shown by a runtime that knows it, refused by another, and nothing stands in its place',
    [
      'e2e/pods/subPath.test.ts',
      'images as volumes: shown, or refused by the runtime in its own words; never anything else in their place',
    ],
    [volumes, 'image: pulled'],
  ),
  15: held('events of others are not heard', [
    'e2e/runtime/cri.test.ts',
    'hints at starts, exits and removals at once (the figure is printed), and stays silent about other namespaces',
  ]),
};
