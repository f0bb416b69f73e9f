import { RESOURCES_TRAPS, resources } from './resources.ts';
import { holdTable } from './table.ts';

holdTable({ part: 'node resources and volumes', file: 'resources-and-volumes.md', count: RESOURCES_TRAPS }, resources);
