import { RESOURCES_TRAPS, resources } from './resources.ts';
import { holdTable } from './table.ts';

holdTable('node resources and volumes', resources, RESOURCES_TRAPS);
