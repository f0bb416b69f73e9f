/**
 * The fault injector's interceptors: one node's ports, wrapped. Only a node that was started with
 * `--actorlet-fault-injection` has them. They look at the door at each call and keep no fault of their own.
 */

import type { Host, Net, Ports } from '../../../../ports/ports.ts';
import type { FaultDoor } from '../api.ts';
import { interceptCri } from './cri.ts';
import { interceptFs, interceptSys } from './files.ts';
import { interceptKube } from './kube.ts';
import { override } from './pause.ts';

export interface InterceptOptions {
  door: FaultDoor;
  nodeName: string;
  /** URL of the HTTP source of pods; empty when there is none. */
  staticPodUrl: string;
}

export function interceptPorts(ports: Ports, o: InterceptOptions): Ports {
  const { door } = o;
  const { clock, rng } = ports;
  const suffix = `-${o.nodeName}`;
  // Static pods carry the node's name; people leave it off.
  const podNames = (name: string): readonly string[] => (name.endsWith(suffix) ? [name, name.slice(0, -suffix.length)] : [name]);
  return {
    ...ports,
    cri: interceptCri(ports.cri, { door, clock, podNames }),
    fs: interceptFs(ports.fs, { door, clock, rng }),
    sys: interceptSys(ports.sys, { door }),
    host: interceptHost(ports.host, door),
    net: interceptNet(ports.net, o),
    ...(ports.kube === undefined ? {} : { kube: interceptKube(ports.kube, { door, clock }) }),
  };
}

function interceptHost(host: Host, door: FaultDoor): Host {
  const memory = host.memory?.bind(host);
  if (memory === undefined) return host;
  return override(host, {
    memory() {
      const real = memory();
      const hit = door.first('pressure.memory', 'reading of available memory', () => true);
      return hit === undefined ? real : { ...real, availableBytes: Math.min(real.availableBytes, hit.fault.availableBytes) };
    },
  });
}

const GARBAGE = new TextEncoder().encode('\u0000{{ injected garbage');

function interceptNet(net: Net, o: InterceptOptions): Net {
  return override(net, {
    async httpGet(url, opts) {
      const hit = url === o.staticPodUrl ? o.door.first('http.down', 'GET of the HTTP source', () => true) : undefined;
      switch (hit?.fault.action) {
        case 'unreachable':
          throw Object.assign(new Error(`connect ECONNREFUSED ${new URL(url).host} (injected fault)`), { code: 'ECONNREFUSED' });
        case 'error':
          return { status: 503, body: new TextEncoder().encode('injected fault') };
        case 'garbage':
          return { status: 200, body: GARBAGE };
        case undefined:
          return net.httpGet(url, opts);
      }
    },
  });
}
