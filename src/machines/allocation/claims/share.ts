/** What containers get of claims, and what is told of it. Pure. */

import type { Container } from '../../kube/podTable.ts';
import type { Pod, ResourceStatus } from '../../kube/types.ts';
import { claimsOfPod, extendedClaim } from '../../pod/resources/claims.ts';
import { type Built, built, refused } from '../../result.ts';
import type { DynamicResource } from '../messages.ts';
import type { HealthView } from './messages.ts';
import { type ClaimRecord, claimKey, deviceKey, type PreparedDevice } from './types.ts';

type Records = ReadonlyMap<string, ClaimRecord>;

/** A claim that a container uses, and which requests of it: '' = all. */
interface Used {
  name: string;
  requests: readonly string[];
  /** As the container names them; empty for extended resources. */
  entry: string;
}

export function claimsOfContainer(pod: Pod, container: Container): Built<readonly Used[]> {
  const named = claimsOfPod(pod);
  if (!named.ok) return named;
  const used = named.value.flatMap(({ entry, name }): Used[] => {
    const requests = (container.resources?.claims ?? []).filter((c) => c.name === entry && entry !== '').map((c) => c.request ?? '');
    return requests.length === 0 ? [] : [{ entry, name, requests }];
  });
  const extended = extendedClaim(pod);
  const asked = extended?.mappings.filter(
    (m) => m.container === container.name && Number(container.resources?.requests?.[m.resource] ?? 0) !== 0,
  );
  if (extended === null || asked === undefined || asked.length === 0) return built(used);
  return built([...used, { entry: '', name: extended.name, requests: asked.map((m) => m.request) }]);
}

/** CDI devices of a container; refused while one of its claims is not recorded, or is to be prepared again. */
export function cdiDevices(records: Records, pod: Pod, container: Container): Built<readonly string[]> {
  const used = claimsOfContainer(pod, container);
  if (!used.ok) return used;
  const ids = new Set<string>();
  for (const { name, requests } of used.value) {
    const record = records.get(claimKey({ namespace: pod.metadata.namespace, name }));
    if (record === undefined || record.doubted === true) return refused(`ResourceClaim ${name} is not prepared`);
    for (const request of requests)
      for (const devices of record.drivers.values())
        for (const device of devices) if (isOf(device, request)) for (const id of device.cdiIds) ids.add(id);
  }
  return built([...ids]);
}

function isOf({ requests }: PreparedDevice, request: string): boolean {
  return request === '' || requests.length === 0 || requests.includes(request);
}

/** What the pod resources API shows of a container. */
export function dynamicResources(records: Records, pod: Pod, container: Container): DynamicResource[] {
  const used = claimsOfContainer(pod, container);
  if (!used.ok) return [];
  return used.value.flatMap(({ name }) => {
    const record = records.get(claimKey({ namespace: pod.metadata.namespace, name }));
    if (record === undefined) return [];
    const claimResources = [...record.drivers].flatMap(([driverName, devices]) =>
      devices.map(({ pool, device, shareId, cdiIds }) => ({
        cdiDevices: cdiIds.map((id) => ({ name: id })),
        ...{ driverName, poolName: pool, deviceName: device },
        ...(shareId === null ? {} : { shareId }),
      })),
    );
    return [{ claimName: name, claimNamespace: record.namespace, claimResources }];
  });
}

/** Health of the devices that a container has of its claims, for its status. */
export function claimHealth(
  o: { records: Records; health: HealthView; nowWallMs: number },
  pod: Pod,
  container: Container,
): ResourceStatus[] {
  const used = claimsOfContainer(pod, container);
  if (!used.ok) return [];
  return used.value.flatMap(({ entry, name, requests }) => {
    const record = o.records.get(claimKey({ namespace: pod.metadata.namespace, name }));
    if (record === undefined || entry === '') return [];
    return requests.flatMap((request) => {
      const resources = new Map<string, { resourceID: string; health: string; message?: string }>();
      for (const [driver, devices] of record.drivers)
        for (const device of devices) {
          // A request of which one of several was chosen is asked for by its own name.
          if (!isOf(device, request.split('/', 1)[0] ?? '')) continue;
          const resourceID = device.cdiIds[0] ?? `${driver}/${device.pool}/${device.device}`;
          if (!resources.has(resourceID)) resources.set(resourceID, { resourceID, ...healthOf(o, driver, device) });
        }
      return resources.size === 0
        ? []
        : [{ name: `claim:${entry}${request === '' ? '' : `/${request}`}`, resources: [...resources.values()] }];
    });
  });
}

function healthOf({ health, nowWallMs }: { health: HealthView; nowWallMs: number }, driver: string, { pool, device }: PreparedDevice) {
  const said = health.get(driver)?.get(deviceKey({ pool, device }));
  if (said === undefined || nowWallMs - said.atWallMs > said.timeoutMs) return { health: 'Unknown' };
  return { health: said.health, ...(said.message === '' ? {} : { message: said.message }) };
}

/** Pods that use one of these devices (`POOL/DEVICE`) of a driver. */
export function podsWith(records: Records, driver: string, devices: ReadonlySet<string>): Set<string> {
  const found = [...records.values()].filter(({ drivers }) => drivers.get(driver)?.some((d) => devices.has(deviceKey(d))) === true);
  return new Set(found.flatMap(({ pods }) => [...pods]));
}
