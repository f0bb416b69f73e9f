/**
 * The fault injector's interceptors: one node's ports, wrapped. Only a node that was started with
 * `--actorlet-fault-injection` has them. They look at the activeFaults at each call and keep no fault of their own.
 */

import type { Host, Ports } from '@actorlet/kubelet/ports/ports.ts';
import type { Net } from '@actorlet/kubelet/ports/sockets/net.ts';
import type { ActiveFaults } from '../activeFaults.ts';
import { interceptCri } from './cri.ts';
import { interceptFs, interceptSys } from './files.ts';
import { interceptKube } from './kube.ts';
import { override } from './pause.ts';

export interface InterceptOptions {
  activeFaults: ActiveFaults;
  nodeName: string;
  /** URL of the HTTP source of pods; empty when there is none. */
  staticPodUrl: string;
}

export function interceptPorts(ports: Ports, o: InterceptOptions): Ports {
  const { activeFaults } = o;
  const { clock, rng } = ports;
  const suffix = `-${o.nodeName}`;
  // Static pods carry the node's name; people leave it off.
  const podNames = (name: string): readonly string[] => (name.endsWith(suffix) ? [name, name.slice(0, -suffix.length)] : [name]);
  return {
    ...ports,
    cri: interceptCri(ports.cri, { activeFaults, clock, podNames }),
    fs: interceptFs(ports.fs, { activeFaults, clock, rng }),
    sys: interceptSys(ports.sys, { activeFaults }),
    host: interceptHost(ports.host, activeFaults),
    net: interceptNet(ports.net, o),
    ...(ports.kube === undefined ? {} : { kube: interceptKube(ports.kube, { activeFaults, clock }) }),
  };
}

function interceptHost(host: Host, activeFaults: ActiveFaults): Host {
  const memory = host.memory?.bind(host);
  if (memory === undefined) return host;
  return override(host, {
    memory() {
      const real = memory();
      const hit = activeFaults.first('pressure.memory', 'reading of available memory', () => true);
      return hit === undefined ? real : { ...real, availableBytes: Math.min(real.availableBytes, hit.fault.availableBytes) };
    },
  });
}

const GARBAGE = new TextEncoder().encode('\u0000{{ injected garbage');

function interceptNet(net: Net, o: InterceptOptions): Net {
  return override(net, {
    async httpGet(url, opts) {
      const hit = url === o.staticPodUrl ? o.activeFaults.first('http.down', 'GET of the HTTP source', () => true) : undefined;
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
