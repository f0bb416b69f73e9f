/** Who may register as the plugin of what (resources 2.5). Pure. */
import type { PluginInfo } from '../../csi.ts';
import { type Built, built, refused } from '../../pods/workers/config/result.ts';
import type { RegisterRequest } from './types.ts';

/** Type of plugins of devices at the plugin watcher. */
export const DEVICE_PLUGIN = 'DevicePlugin';
export const VERSION = 'v1beta1';

/** Names with this in them are Kubernetes' own. */
const NATIVE = 'kubernetes.io/';
const REQUESTS = 'requests.';
const PREFIX = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const PREFIX_MAX = 253;
const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const NAME_MAX = 63;

/** A resource with a domain that is not Kubernetes' own, whose name is still good behind `requests.` (quotas name it so). */
export function isExtendedResource(name: string): boolean {
  if (!name.includes('/') || name.includes(NATIVE) || name.startsWith(REQUESTS)) return false;
  const [prefix = '', base = '', ...rest] = `${REQUESTS}${name}`.split('/');
  return rest.length === 0 && prefix.length <= PREFIX_MAX && PREFIX.test(prefix) && base.length <= NAME_MAX && NAME.test(base);
}

/** Names of resources that plugins may bring to a node, those that are gone among them; nodes are known to have dozens. */
export const RESOURCES_MAX = 256;
/** Devices of one resource: what the reference takes in a message of gRPC's usual size. */
export const DEVICES_MAX = 100_000;

/** Why this resource is one too many beside the `known` ones; null: it is not. */
export function tooMany(resource: string, known: ReadonlySet<string>): string | null {
  if (known.has(resource) || known.size < RESOURCES_MAX) return null;
  return `this node has ${known.size} resources of device plugins and takes at most ${RESOURCES_MAX}: ${resource} is refused`;
}

/** The resource and the path of the plugin's socket. `folder`: that of the socket it registered at. */
export function admitPlugin(request: RegisterRequest, folder: string): Built<{ resource: string; endpoint: string }> {
  const { version, endpoint, resourceName } = request;
  if (version !== VERSION)
    return refused(`requested API version "${version}" is not supported by kubelet. Supported version is "${VERSION}"`);
  if (!isExtendedResource(resourceName)) return refused(`the ResourceName "${resourceName}" is invalid`);
  // A name, never a path: what is dialled is in the folder whose owner says who may write there.
  if (endpoint === '' || endpoint === '.' || endpoint === '..' || endpoint.includes('/'))
    return refused(`the endpoint "${endpoint}" of ${resourceName} is not the name of a socket in ${folder}`);
  return built({ resource: resourceName, endpoint: `${folder}/${endpoint}` });
}

/** The same for one whose socket was found in the folder of plugins. */
export function admitWatchedPlugin(info: PluginInfo, socket: string): Built<{ resource: string; endpoint: string }> {
  const { name, endpoint, supportedVersions } = info;
  if (!supportedVersions.includes(VERSION)) {
    return refused(
      `device plugin ${name}: none of the versions [${supportedVersions.join(' ')}] is supported. Supported version is "${VERSION}"`,
    );
  }
  if (!isExtendedResource(name)) return refused(`the ResourceName "${name}" is invalid`);
  return built({ resource: name, endpoint: endpoint === '' ? socket : endpoint });
}
