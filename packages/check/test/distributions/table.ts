/**
 * Kubelets as distributions set them up: units, files that units name, and configurations, with the values that their public sources and
 * manuals give. A distribution whose kubelet has no unit of its own has the words that it is started with.
 */
import { CLOUDS } from './clouds.ts';
import { OF_KUBEADM } from './ofKubeadm.ts';
import { OTHERS } from './others.ts';
import type { Distribution } from './parts.ts';

export const DISTRIBUTIONS: readonly Distribution[] = [...OF_KUBEADM, ...CLOUDS, ...OTHERS];
