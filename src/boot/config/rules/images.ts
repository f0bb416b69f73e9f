/** Rules about images, pulls, and the container runtime. */

import { fullNameOf } from '../../../machines/runtime/imagePuller/messages.ts';
import { nameOf } from '../../../machines/runtime/imagePuller/pullRecords.ts';
import { formatGoDuration } from '../../../machines/text/go/goDuration.ts';
import { shownEndpoint } from '../../../machines/text/shownUrl.ts';
import { oneOf, type Rule } from './rule.ts';

const imageGc: Rule = ({ config, gates, bad }) => {
  const { imageGCHighThresholdPercent: high, imageGCLowThresholdPercent: low } = config;
  if (low >= high)
    bad('imageGCLowThresholdPercent', `${low} must be below imageGCHighThresholdPercent (--image-gc-high-threshold), which is ${high}`);
  const [max, min] = [config.imageMaximumGCAge, config.imageMinimumGCAge];
  if (min < 0) bad('imageMinimumGCAge', `${formatGoDuration(min)} must not be negative`);
  if (max === 0) return;
  if (!gates.enabled('ImageMaximumGCAge')) bad('imageMaximumGCAge', 'needs feature gate ImageMaximumGCAge');
  if (max < 0) bad('imageMaximumGCAge', `${formatGoDuration(max)} must not be negative`);
  else if (max <= min) {
    bad('imageMaximumGCAge', `${formatGoDuration(max)} must exceed imageMinimumGCAge, which is ${formatGoDuration(min)}`);
  }
};

const pulls: Rule = ({ config, gates, bad }) => {
  const max = config.maxParallelImagePulls;
  if (max !== null && max < 1) bad('maxParallelImagePulls', `${max} must be at least 1`);
  else if (max !== null && max > 1 && config.serializeImagePulls) {
    bad('maxParallelImagePulls', `${max} contradicts serializeImagePulls: true (--serialize-image-pulls)`);
  }
  const policy = config.imagePullCredentialsVerificationPolicy;
  if (policy !== '' && !gates.enabled('KubeletEnsureSecretPulledImages')) {
    bad('imagePullCredentialsVerificationPolicy', 'needs feature gate KubeletEnsureSecretPulledImages');
  }
  if (config.preloadedImagesVerificationAllowlist.length > 0 && policy !== 'NeverVerifyAllowlistedImages') {
    bad(
      'preloadedImagesVerificationAllowlist',
      'is only possible with imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages',
    );
  }
  for (const image of config.preloadedImagesVerificationAllowlist) {
    if (!isAllowlistEntry(image)) {
      bad(
        'preloadedImagesVerificationAllowlist',
        `${JSON.stringify(image)} must be an image name without tag or digest, or a prefix ending in /*`,
      );
    }
  }
};

function isAllowlistEntry(entry: string): boolean {
  if (entry.endsWith('/*')) return /^[^\s*@/][^\s*@]*$/.test(entry.slice(0, -2));
  return nameOf(entry) !== null && fullNameOf(entry) === nameOf(entry);
}

const EMBEDDED: readonly string[] = ['embedded://process', 'embedded://oci', 'embedded://hollow'];

const endpoints: Rule = ({ config, bad }) => {
  const endpoint = config.containerRuntimeEndpoint;
  if (!EMBEDDED.includes(endpoint) && !/^unix:\/\/\/[^/]/.test(endpoint)) {
    bad(
      'containerRuntimeEndpoint',
      `${JSON.stringify(shownEndpoint(endpoint))} must be unix:///path/to.sock or one of ${EMBEDDED.join(', ')}`,
    );
  }
  const image = config.imageServiceEndpoint;
  if (image === '' || image === endpoint) return;
  if (EMBEDDED.includes(endpoint))
    bad('imageServiceEndpoint', `${JSON.stringify(shownEndpoint(image))}: ${endpoint} serves its images itself`);
  else if (!/^unix:\/\/\/[^/]/.test(image))
    bad('imageServiceEndpoint', `${JSON.stringify(shownEndpoint(image))} must be unix:///path/to.sock`);
};

export const IMAGE_RULES: readonly Rule[] = [imageGc, pulls, oneOf('imagePullCredentialsVerificationPolicy'), endpoints];
