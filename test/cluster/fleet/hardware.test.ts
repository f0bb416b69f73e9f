/** Volumes, devices and clocks of a fleet, judged by the real scheduler and controller manager of `--api local`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { program } from '../../e2e/lab/cluster/controlPlane.ts';
import { endFleetProcesses, startFleetProcess } from './command.ts';

const dir = mkdtempSync(join(tmpdir(), 'actorlet-hardware-'));
const file = join(dir, 'fleet.yaml');
const FILE = `
apiVersion: actorlet.dev/v1alpha1
kind: Fleet
metadata: { name: hardware }
spec:
  groups:
    - { name: node, count: 2, clock: { behind: 2h } }
    - { name: gpu, count: 1, devices: [{ driver: gpu.example.com, count: 2, attributes: { model: h100 }, capacity: { memory: 80Gi } }] }
  storage:
    - { name: disk, attach: 1s, binding: WaitForFirstConsumer, volumesMax: 4 }
  steps:
    - { at: 0s, do: inject, volumes: { fault: attach-fails, claims: ['default/data-web-1'], for: 60s } }
    - { at: 0s, do: inject, volumes: { fault: attach-hangs, claims: ['default/data-web-2'], for: 60s } }
    - at: 1s
      do: apply
      objects:
        - apiVersion: resource.k8s.io/v1
          kind: DeviceClass
          metadata: { name: gpu }
          spec: { selectors: [{ cel: { expression: 'device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "h100"' } }] }
        - apiVersion: resource.k8s.io/v1
          kind: ResourceClaimTemplate
          metadata: { name: one }
          spec: { spec: { devices: { requests: [{ name: gpu, exactly: { deviceClassName: gpu } }] } } }
        - apiVersion: apps/v1
          kind: Deployment
          metadata: { name: train }
          spec:
            replicas: 3
            selector: { matchLabels: { app: train } }
            template:
              metadata: { labels: { app: train } }
              spec:
                resourceClaims: [{ name: gpu, resourceClaimTemplateName: one }]
                containers: [{ name: c, image: train, resources: { claims: [{ name: gpu }] } }]
        - apiVersion: apps/v1
          kind: StatefulSet
          metadata: { name: web }
          spec:
            replicas: 3
            serviceName: web
            podManagementPolicy: Parallel
            selector: { matchLabels: { app: web } }
            persistentVolumeClaimRetentionPolicy: { whenDeleted: Delete, whenScaled: Delete }
            template:
              metadata: { labels: { app: web } }
              spec: { containers: [{ name: c, image: web, volumeMounts: [{ name: data, mountPath: /data }] }] }
            volumeClaimTemplates:
              - metadata: { name: data }
                spec: { accessModes: [ReadWriteOnce], storageClassName: disk, resources: { requests: { storage: 1Gi } } }
    - { at: 145s, do: delete, objects: [{ apiVersion: apps/v1, kind: StatefulSet, metadata: { name: web } }] }
  expect:
    - { name: one volume of three is attached, objects: { kind: Pod, selector: app=web }, condition: Ready, atLeast: 1, atMost: 1, within: 59s }
    - { name: a volume fails, events: { reason: FailedAttachVolume }, atLeast: 1, within: 90s }
    - { name: all volumes, objects: { apiVersion: apps/v1, kind: StatefulSet, name: web }, field: status.readyReplicas, atLeast: 3, within: 140s }
    - { name: two devices are allocated, objects: { kind: Pod, selector: app=train }, condition: Ready, atLeast: 2, atMost: 2, after: 90s, within: 140s }
    - { name: nodes stay Ready, objects: { kind: Node }, condition: Ready, atLeast: 3, after: 90s, within: 140s, holds: throughout }
    - { name: volumes are gone, objects: { kind: PersistentVolume }, atMost: 0, after: 146s, within: 240s }
    - { name: attachments are gone, objects: { apiVersion: storage.k8s.io/v1, kind: VolumeAttachment }, atMost: 0, after: 146s, within: 240s }
`;

beforeAll(() => {
  process.env.KUBEBUILDER_ASSETS ??= dirname(program('kube-apiserver'));
  writeFileSync(file, FILE);
});
afterAll(() => {
  endFleetProcesses();
  rmSync(dir, { recursive: true, force: true });
});

it('are attached, allocated and taken away as faults let them', { timeout: 600_000 }, async () => {
  const run = startFleetProcess(file, '--api=local', '--port=0', `--socket=${join(dir, 'fleet.sock')}`);
  expect({ code: await run.ended, text: run.text() }).toEqual({ code: 0, text: expect.stringContaining('a volume fails') });
});
