/** Which sysctls every pod may set, by the kernel (resources and volumes 12.4), and which namespace holds one. */
import { safeSysctls, sysctlNamespace } from '../../../../src/machines/pods/admission/ability/sysctls.ts';
import { goldenTable } from '../table.ts';

const KERNELS = ['', 'unknown', '3.10.0-1160', '3.16.0', '4.4.0', '4.5.0', '4.6.0', '4.14.9', '4.15.0', '5.3', '6.8.0-generic'];
const NAMES = ['kernel.sem', 'kernel.semaphore', 'kernel.shmmax', 'kernel.msgmax', 'kernel.pid_max', 'fs.mqueue.msg_max', 'fs.file-max'];

goldenTable('which sysctls are safe is as recorded', 'admission/sysctls', {
  ...Object.fromEntries(KERNELS.map((kernel) => [`safe on ${kernel === '' ? 'no kernel' : kernel}`, () => safeSysctls(kernel)])),
  ...Object.fromEntries(
    [...NAMES, 'net.core.somaxconn', 'vm.swappiness'].map((name) => [`namespace of ${name}`, () => sysctlNamespace(name)]),
  ),
});
