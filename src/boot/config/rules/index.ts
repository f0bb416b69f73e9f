/** All rules by area. */
export { API_RULES } from './api.ts';
export { CGROUP_RULES } from './cgroups.ts';
export { EVICTION_RULES } from './eviction.ts';
export { IMAGE_RULES } from './images.ts';
export { MISC_RULES } from './misc.ts';
export { NUMBER_RULES } from './numbers.ts';
