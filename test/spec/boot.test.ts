import { BOOT_TRAPS, bootAndNode } from './boot.ts';
import { CRI_TRAPS, cri } from './cri.ts';
import { holdTable } from './table.ts';

holdTable({ part: 'boot and node', file: 'boot-and-node.md', count: BOOT_TRAPS }, bootAndNode);
holdTable({ part: 'the container runtime interface', file: 'cri.md', count: CRI_TRAPS }, cri);
