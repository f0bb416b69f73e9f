/** With which SELinux label a volume is mounted (KEP-1710): golden cases, of the fallbacks that the runtime has for a label. */
import { contextOption, modeShown, selinuxLabel } from '../../../../src/machines/services/volumes/selinux.ts';
import { pod } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const C1 = { level: 's0:c1,c2' };
const C7 = { level: 's0:c7,c8' };
const uses = (name: string, seLinuxOptions?: object) => ({
  name,
  volumeMounts: [{ name: 'disk', mountPath: '/data' }],
  ...(seLinuxOptions === undefined ? {} : { securityContext: { seLinuxOptions } }),
});
const label =
  (spec: object, o: { modes?: string[]; driverSupports?: boolean; allModes?: boolean } = {}) =>
  () =>
    selinuxLabel({
      pod: pod(spec),
      volume: 'disk',
      accessModes: o.modes ?? ['ReadWriteOncePod'],
      driverSupports: o.driverSupports ?? true,
      allModes: o.allModes ?? false,
      fileLabel: 'system_u:object_r:container_file_t:s0',
    });
const ofPod = (seLinuxOptions: object, more: object = {}) => ({ securityContext: { seLinuxOptions, ...more } });

goldenTable('the SELinux label of a volume', 'volumes/selinux', {
  'nothing asked': label({ containers: [uses('a')] }),
  'the level of the pod': label({ ...ofPod(C1), containers: [uses('a')] }),
  'the level of the container before that of the pod': label({ ...ofPod(C1), containers: [uses('a', C7)] }),
  'user and level; role and type are of the process': label({
    ...ofPod({ user: 'staff_u', role: 'staff_r', type: 'spc_t', ...C1 }),
    containers: [uses('a')],
  }),
  'no level: the runtime chooses one': label({ ...ofPod({ type: 'spc_t' }), containers: [uses('a')] }),
  'two containers, one label': label({ containers: [uses('a', C1), uses('b', C1)] }),
  'two containers, one of which asks nothing': label({ containers: [uses('a', C1), uses('b')] }),
  'two containers that contradict': label({ containers: [uses('a', C1), uses('b', C7)] }),
  'two containers that contradict, of a mode that is not enforced': label(
    { containers: [uses('a', C1), uses('b', C7)] },
    { modes: ['ReadWriteOnce'] },
  ),
  'one that does not use the volume': label({ containers: [uses('a', C1), { name: 'b', securityContext: { seLinuxOptions: C7 } }] }),
  'an init container counts': label({ initContainers: [uses('i', C7)], containers: [uses('a', C1)] }),
  'the pod opts out': label({ ...ofPod(C1, { seLinuxChangePolicy: 'Recursive' }), containers: [uses('a')] }),
  'the pod opts in': label({ ...ofPod(C1, { seLinuxChangePolicy: 'MountOption' }), containers: [uses('a')] }),
  'the driver cannot': label({ ...ofPod(C1), containers: [uses('a')] }, { driverSupports: false }),
  'another access mode': label({ ...ofPod(C1), containers: [uses('a')] }, { modes: ['ReadWriteOnce'] }),
  'another access mode, with the gate': label({ ...ofPod(C1), containers: [uses('a')] }, { modes: ['ReadWriteMany'], allModes: true }),
  'several access modes': label({ ...ofPod(C1), containers: [uses('a')] }, { modes: ['ReadWriteOncePod', 'ReadWriteOnce'] }),
  'the option has quotes': () => contextOption('system_u:object_r:container_file_t:s0:c1,c2'),
  'modes as metrics name them': () => [['ReadWriteOncePod'], ['ReadWriteOnce', 'ReadOnlyMany'], ['ReadWriteMany'], []].map(modeShown),
});
