import { POD_LIFECYCLE_TRAPS, podLifecycle } from './podLifecycle.ts';
import { holdTable } from './table.ts';

holdTable('the pod lifecycle', podLifecycle, POD_LIFECYCLE_TRAPS);
