import { POD_LIFECYCLE_TRAPS, podLifecycle } from './podLifecycle.ts';
import { holdTable } from './table.ts';

holdTable({ part: 'the pod lifecycle', file: 'pod-lifecycle.md', count: POD_LIFECYCLE_TRAPS }, podLifecycle);
