import { BOOT_TRAPS, bootAndNode } from './boot.ts';
import { CRI_TRAPS, cri } from './cri.ts';
import { holdTable } from './table.ts';

holdTable('boot and node', bootAndNode, BOOT_TRAPS);
holdTable('the container runtime interface', cri, CRI_TRAPS);
