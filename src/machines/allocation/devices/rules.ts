/** Which plugin may register for which resource (resources 2.5). Pure. */
import { isExtendedResource } from '../../kube/names.ts';
import { type Built, built, refused } from '../../result.ts';
import type { PluginInfo } from '../../wire/csi.ts';
import type { RegisterRequest } from './types.ts';

/** Type of plugins of devices at the plugin watcher. */
export const DEVICE_PLUGIN = 'DevicePlugin';
export const VERSION = 'v1beta1';

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
