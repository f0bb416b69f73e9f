/** The device manager, killed in each state of each of its charts: who holds a device keeps it, and is the only one. */
import { healthy } from '@actorlet/world/src/plugins/devicePlugins.ts';
import { devicesView } from '../../../../src/machines/allocation/devices/messages.ts';
import { pod, ROOT, type VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const DEVICES = 'node/allocation/devices';
const RESOURCE = 'example.com/gpu';
const FOLDER = `${ROOT}/device-plugins`;
const RECORD = `${FOLDER}/kubelet_internal_checkpoint`;
const SOCKET = `${FOLDER}/gpu.sock`;
const LIMITS = { container: { resources: { limits: { [RESOURCE]: '1' } } } };

function plug(h: VirtualNode): void {
  h.devices.add(SOCKET, { resource: RESOURCE, devices: healthy('a', 'b') });
  h.devices.register(SOCKET);
}
const known = (h: VirtualNode) => h.tree.registry.read(devicesView)?.value.allocatable[RESOURCE] === '2';
/** The pod runs with its device, and the plugin is known. */
const atRest = (h: VirtualNode) => h.phase('subject') === 'Running' && h.running('subject').length === 1 && known(h);

const chart = (h: VirtualNode): string => h.charts(DEVICES, `${RESOURCE}#`)[0] ?? '';
async function bring(h: VirtualNode): Promise<void> {
  plug(h);
  await h.until('the plugin is known', () => known(h));
  h.write('subject', pod('subject', LIMITS));
  await h.until('all is at rest', () => atRest(h));
}
/** Killed once before: what is under way then is the next one's start. */
async function again(h: VirtualNode, state: string): Promise<void> {
  h.kill(DEVICES);
  await h.until(state, () => h.state(DEVICES) === state);
}

function story(covers: string, more: Partial<KillCase> = {}): KillCase {
  return {
    covers,
    path: DEVICES,
    options: { devices: true },
    arrange: bring,
    release: (h) => h.devices.back(SOCKET),
    rests: atRest,
    restsWithinMs: 300_000,
    ...more,
  };
}

export const DEVICE_CASES: KillCase[] = [
  story('devices open.serving'),
  story('devices loading', {
    arrange: async (h) => {
      await bring(h);
      h.fs.delayMs = (op, path) => (op === 'readFile' && path === RECORD ? 3_000 : 0);
      await again(h, 'loading');
    },
  }),
  story('devices unread', {
    arrange: async (h) => {
      await bring(h);
      h.fs.failing = (op, path) => (op === 'readFile' && path === RECORD ? 'EIO' : undefined);
      await again(h, 'unread');
    },
  }),
  story('devices open.opening', {
    arrange: async (h) => {
      await bring(h);
      h.fs.delayMs = (op, path) => (op === 'readdir' && path === FOLDER ? 3_000 : 0);
      await again(h, 'open.opening');
    },
  }),
  story('devices closed', {
    arrange: async (h) => {
      await bring(h);
      h.devices.bindError = 'bind EACCES';
      await again(h, 'closed');
    },
  }),
  story('devicePlugin watching', { at: (h) => chart(h) === 'watching' }),
  story('devicePlugin dialing', {
    arrange: async (h) => {
      await bring(h);
      h.devices.die(SOCKET);
      await h.advance(301_000);
      h.devices.latencyMs = (method) => (method === 'Connect' ? 3_000 : 1);
      h.devices.back(SOCKET);
      await h.until('it is being reached', () => chart(h) === 'dialing');
    },
    at: (h) => chart(h) === 'dialing',
  }),
  story('devicePlugin stopped', {
    arrange: async (h) => {
      await bring(h);
      h.devices.die(SOCKET);
      await h.until('it is missed', () => chart(h) === 'stopped');
    },
    at: (h) => chart(h) === 'stopped',
  }),
];
