/** Names and paths of a simulated machine. */

export const ROOT_DIR = '/var/lib/kubelet';
export const MANIFESTS = '/etc/kubernetes/manifests';
/** Its content is not looked at: the way to the API server is a port. */
export const KUBECONFIG = '/etc/kubernetes/kubelet.conf';
/** Where a node has one manifest and no directory of them. */
export const ONE_MANIFEST = `${MANIFESTS}/pod.json`;
export const POD_LOGS = '/var/log/pods';
export const PODS_URL = 'http://pods.sim/list';
/** Below it is the content of claims. */
export const CLAIMED = '/srv/claimed';
export const CLAIMED_DIRS = ['data0', 'data1'].map((name) => `${CLAIMED}/${name}`);
/** Through it the storage driver of a node registers itself, where it has one. */
export const DRIVER_SOCKET = `${ROOT_DIR}/plugins_registry/driver-reg.sock`;
/** Device plugins register at a socket in it, where the node can speak to any. */
export const DEVICE_FOLDER = `${ROOT_DIR}/device-plugins`;
/** 2 MiB each. */
export const HUGE_PAGES = { path: '/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages', count: 128 };
/** Name of the node at this place of a world. */
export function nodeName(index: number): string {
  return `n${index + 1}`;
}
/** Where the hollow runtime says that its images are. */
export const IMAGES = '/var/lib/hollow';
/** And its writable layers, where those lie apart. */
export const LAYERS = '/var/lib/layers';
/** Memory of the machine. */
export const MEMORY_BYTES = 8 * 1024 ** 3;
