/** The kubelet's metrics of pods and what is done for them, of a whole node in virtual time. */
import { describe, expect } from 'vitest';
import { cluster, create, createReady, drop, inApi, isReady, patch, waiting } from '../cluster/clusterPods.ts';
import { itOnCluster as it } from '../onNode.ts';
import { pod as manifest, ROOT, type VirtualNode, virtualNode } from '../virtualNode.ts';

async function series(h: VirtualNode, name: string): Promise<Record<string, number>> {
  const lines = (await h.metrics.render()).split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return Object.fromEntries(
    lines.map((line) => [line.slice(name.length, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}
const one = async (h: VirtualNode, name: string) => (await series(h, name))[''] ?? 0;

describe('metrics of a pod', () => {
  it('tell once how long its start took: first seen to running, created to seen running, and that without pulls and init containers', async ({
    h,
  }) => {
    h.faults.latencyMs.PullImage = 3_000;
    await createReady(h, 'web', { inits: [{}], lives: { 'init-0': 'run=10s' }, container: { image: 'large:1' } });
    await h.advance(120_000);
    for (const name of [
      'kubelet_pod_start_duration_seconds',
      'kubelet_pod_start_sli_duration_seconds',
      'kubelet_pod_start_total_duration_seconds',
    ]) {
      expect([name, await one(h, `${name}_count`)]).toEqual([name, 1]);
    }
    const total = await one(h, 'kubelet_pod_start_total_duration_seconds_sum');
    const sli = await one(h, 'kubelet_pod_start_sli_duration_seconds_sum');
    // Two pulls and the init container took 16 s; times in the API are whole seconds.
    expect(total).toBeGreaterThanOrEqual(15);
    expect(total - sli).toBeGreaterThanOrEqual(14);
    expect(sli).toBeGreaterThanOrEqual(0);
    expect(await one(h, 'kubelet_pod_worker_start_duration_seconds_count')).toBe(1);
    expect(await series(h, 'kubelet_containers_per_pod_count_sum')).toEqual({ '': 1 });
    expect(await one(h, 'kubelet_first_network_pod_start_sli_duration_seconds')).toBe(sli);
  });

  it('leave pods whose volumes come from elsewhere out of the start-up indicator, and host pods out of the first of it', async ({ h }) => {
    create(h, 'disk', {
      spec: { volumes: [{ name: 'v', hostPath: { path: '/data' } }] },
      container: { volumeMounts: [{ name: 'v', mountPath: '/v' }] },
    });
    create(h, 'host', { spec: { hostNetwork: true } });
    await h.until('Ready', () => isReady(h, 'disk') && isReady(h, 'host'));
    await h.advance(5_000);
    expect(await one(h, 'kubelet_pod_start_total_duration_seconds_count')).toBe(2);
    expect(await one(h, 'kubelet_pod_start_sli_duration_seconds_count')).toBe(1);
    expect(await one(h, 'kubelet_first_network_pod_start_sli_duration_seconds')).toBe(0);
  });

  it('count ends of containers by code and reason, each once, also over a restart of the daemon', async ({ h }) => {
    create(h, 'web', { inits: [{}], lives: { 'init-0': 'run=1s', main: 'run=2s,exit=3' }, spec: { restartPolicy: 'Never' } });
    await h.until('Failed', () => inApi(h, 'web')?.status.phase === 'Failed');
    expect(await series(h, 'kubelet_terminated_containers_total')).toEqual({
      '{container_type="container",exit_code="3",reason="Error"}': 1,
      '{container_type="init_container",exit_code="0",reason="Completed"}': 1,
    });
    await h.restart();
    await h.advance(60_000);
    expect(await series(h, 'kubelet_terminated_containers_total')).toEqual({});
    create(h, 'crash', { life: 'run=1s,exit=1' });
    await h.until('three restarts', () => inApi(h, 'crash')?.status.containerStatuses?.[0]?.restartCount === 3, 300_000);
    await h.until('the fourth end', () => inApi(h, 'crash')?.status.containerStatuses?.[0]?.state.running === undefined);
    await h.advance(5_000);
    expect(await series(h, 'kubelet_terminated_containers_total')).toEqual({
      '{container_type="container",exit_code="1",reason="Error"}': 4,
    });
  });

  it('count a postStart hook that fails among the starts that failed', async ({ h }) => {
    create(h, 'web', { container: { lifecycle: { postStart: { tcpSocket: { port: 1 } } } } });
    await h.until('it waits', () => waiting(h, 'web')?.reason === 'PostStartHookError' || waiting(h, 'web')?.reason === 'CrashLoopBackOff');
    expect(await series(h, 'kubelet_started_containers_errors_total')).toEqual({
      '{code="PostStartHookError",container_type="container"}': 1,
    });
  });

  it('count pods with users of their own, and a start of one in which something failed once', async () => {
    await using h = await cluster({
      hollow: { features: { runtimeHandlers: [{ name: '', features: { recursiveReadOnlyMounts: false, userNamespaces: true } }] } },
    });
    const counts = async () => [
      await one(h, 'kubelet_started_user_namespaced_pods_total'),
      await one(h, 'kubelet_started_user_namespaced_pods_errors_total'),
    ];
    create(h, 'good', { spec: { hostUsers: false } });
    create(h, 'other');
    await h.until('Ready', () => isReady(h, 'good') && isReady(h, 'other'));
    expect(await counts()).toEqual([1, 0]);
    create(h, 'bad', { spec: { hostUsers: false }, container: { image: 'UPPER//bad' } });
    await h.until('it waits', () => waiting(h, 'bad')?.reason === 'InvalidImageName');
    await h.advance(60_000);
    expect(await counts()).toEqual([2, 1]);
  });

  it('count volumes of images that containers mount, and those that the runtime cannot mount', async ({ h }) => {
    const spec = { volumes: [{ name: 'model', image: { reference: 'models/one:1' } }] };
    const container = { volumeMounts: [{ name: 'model', mountPath: '/model' }] };
    await createReady(h, 'good', { spec, container });
    h.faults.fault = (method) =>
      method === 'CreateContainer' ? { kind: 'refuse', code: 2, details: 'ImageVolumeMountFailed: no such layer' } : undefined;
    create(h, 'bad', { spec, container });
    await h.until('it waits', () => waiting(h, 'bad')?.reason === 'CreateContainerError');
    expect(await one(h, 'kubelet_image_volume_mounted_succeed_total')).toBe(1);
    const errors = await one(h, 'kubelet_image_volume_mounted_errors_total');
    expect(errors).toBeGreaterThan(0);
    expect(await one(h, 'kubelet_image_volume_requested_total')).toBe(1 + errors);
  });

  it('count sleeps of hooks that the end of the grace cut short, and no others', async ({ h }) => {
    const sleeping = (seconds: number) => ({
      container: { lifecycle: { preStop: { sleep: { seconds } } } },
      spec: { terminationGracePeriodSeconds: 10 },
    });
    create(h, 'short', sleeping(2));
    create(h, 'long', sleeping(60));
    await h.until('Ready', () => isReady(h, 'short') && isReady(h, 'long'));
    drop(h, 'pods/short');
    drop(h, 'pods/long');
    await h.until('gone', () => inApi(h, 'short') === undefined && inApi(h, 'long') === undefined, 60_000);
    expect(await one(h, 'kubelet_sleep_action_terminated_early_total')).toBe(1);
  });

  it('count sandboxes and containers that were started, and those that could not be, with the reason', async ({ h }) => {
    let refused = false;
    h.faults.fault = (method) => {
      if (method !== 'RunPodSandbox' || refused) return undefined;
      refused = true;
      return { kind: 'refuse', code: 2, details: 'no network today' };
    };
    await createReady(h, 'web', { inits: [{}], lives: { 'init-0': 'run=1s' } });
    expect(await series(h, 'kubelet_started_containers_total')).toEqual({
      '{container_type="container"}': 1,
      '{container_type="init_container"}': 1,
    });
    expect(await series(h, 'kubelet_started_containers_errors_total')).toEqual({});
    expect(await one(h, 'kubelet_started_pods_total')).toBe(2);
    expect(await one(h, 'kubelet_started_pods_errors_total')).toBe(1);
    expect(await series(h, 'kubelet_run_podsandbox_errors_total')).toEqual({ '{runtime_handler=""}': 1 });
    expect(await series(h, 'kubelet_run_podsandbox_duration_seconds_count')).toEqual({ '{runtime_handler=""}': 2 });
  });

  it('tell rounds of its worker apart: created, looked at again, changed, ended', async ({ h }) => {
    await createReady(h, 'web');
    await h.advance(5_000);
    const rounds = () => series(h, 'kubelet_pod_worker_duration_seconds_count');
    expect(await rounds()).toMatchObject({ '{operation_type="create"}': 1 });
    patch(h, 'pods/web', { spec: { containers: [{ name: 'main', image: 'busybox:2' }] } });
    await h.until('the other image', () => inApi(h, 'web')?.status.containerStatuses?.[0]?.restartCount === 1);
    await h.advance(5_000);
    expect((await rounds())['{operation_type="update"}']).toBeGreaterThan(0);
    drop(h, 'pods/web');
    await h.until('gone', () => inApi(h, 'web') === undefined);
    expect(await rounds()).toMatchObject({ '{operation_type="create"}': 1, '{operation_type="terminated"}': 1 });
    expect(await one(h, 'kubelet_pod_status_sync_duration_seconds_count')).toBeGreaterThan(0);
  });

  it('count volumes and what was done to them', async () => {
    await using h = await cluster({ servers: true });
    await createReady(h, 'web', {
      spec: { volumes: [{ name: 'v', emptyDir: {} }] },
      container: { volumeMounts: [{ name: 'v', mountPath: '/v' }] },
    });
    expect(await series(h, 'volume_manager_total_volumes')).toMatchObject({
      '{plugin_name="kubernetes.io/empty-dir",state="actual_state_of_world"}': 1,
      '{plugin_name="kubernetes.io/empty-dir",state="desired_state_of_world"}': 1,
    });
    const storage = (operation: string) =>
      `{migrated="false",operation_name="${operation}",status="success",volume_plugin="kubernetes.io/empty-dir"}`;
    expect(await series(h, 'storage_operation_duration_seconds_count')).toMatchObject({ [storage('volume_mount')]: 1 });
    const whole = '{operation_name="overall_volume_mount",plugin_name="kubernetes.io/empty-dir"}';
    expect(await series(h, 'volume_operation_total_seconds_count')).toEqual({ [whole]: 1 });
    expect(await one(h, 'reconstruct_volume_operations_total')).toBe(0);
    h.kill('node/services/volumes');
    await h.advance(5_000);
    expect(await one(h, 'reconstruct_volume_operations_total')).toBe(1);
    expect(await one(h, 'reconstruct_volume_operations_errors_total')).toBe(0);
    drop(h, 'pods/web');
    await h.until('gone', () => inApi(h, 'web') === undefined);
    await h.advance(60_000);
    expect(await series(h, 'storage_operation_duration_seconds_count')).toMatchObject({ [storage('volume_unmount')]: 1 });
    expect((await series(h, 'volume_manager_total_volumes'))['{plugin_name="kubernetes.io/empty-dir",state="actual_state_of_world"}']).toBe(
      undefined,
    );
  });

  it('count a volume of an old plugin as one of its driver, and as migrated', async () => {
    const EBS = 'ebs.csi.aws.com';
    await using h = await cluster({ servers: true, drivers: true });
    const socket = `${ROOT}/plugins_registry/${EBS}-reg.sock`;
    h.drivers.add(socket, { name: EBS });
    h.fs.makeSocket(socket);
    const body = { metadata: { name: EBS }, spec: { attachRequired: false } };
    h.kube.handle({ verb: 'POST', path: '/apis/storage.k8s.io/v1/csidrivers', body });
    const volumes = [{ name: 'v', awsElasticBlockStore: { volumeID: 'vol-1' } }];
    create(h, 'web', { spec: { volumes }, container: { volumeMounts: [{ name: 'v', mountPath: '/v' }] } });
    await h.until('Ready', () => isReady(h, 'web'), 60_000);
    const plugin = `kubernetes.io/csi:${EBS}`;
    expect(await series(h, 'storage_operation_duration_seconds_count')).toMatchObject({
      [`{migrated="true",operation_name="volume_mount",status="success",volume_plugin="${plugin}"}`]: 1,
    });
    expect(await series(h, 'volume_manager_total_volumes')).toMatchObject({
      [`{plugin_name="${plugin}",state="actual_state_of_world"}`]: 1,
    });
  });

  it('count pods that the runtime holds and nobody wants, and a static pod that comes back with its UID', async () => {
    await using h = await virtualNode({ manifests: { web: manifest('web', { uid: 'fixed-1' }) } });
    await h.until('it runs', () => h.running('web').length === 1);
    await h.crash();
    h.remove('web');
    await h.boot();
    await h.until('it is stopped', () => h.running('web').length === 0);
    expect(await one(h, 'kubelet_orphaned_runtime_pods_total')).toBe(1);
    h.write('again', manifest('again', { uid: 'fixed-2', life: 'run=forever,term=ignore' }));
    await h.until('it runs', () => h.running('again').length === 1);
    h.remove('again');
    await h.advance(3_000);
    h.write('again', manifest('again', { uid: 'fixed-2', life: 'run=forever,term=ignore' }));
    await h.advance(120_000);
    expect(h.running('again')).toHaveLength(1);
    expect(await series(h, 'kubelet_restarted_pods_total')).toEqual({ '{static="true"}': 1 });
  });

  it('say nothing of starts that another daemon saw', async ({ h }) => {
    await createReady(h, 'web');
    await h.restart();
    await h.advance(60_000);
    expect(isReady(h, 'web')).toBe(true);
    for (const name of ['kubelet_pod_start_duration_seconds', 'kubelet_pod_start_sli_duration_seconds', 'kubelet_started_containers_total'])
      expect([name, await series(h, `${name}_count`)]).toEqual([name, {}]);
  });

  it('of static pods tell of their start too, though no cluster asked for it', async () => {
    await using h = await virtualNode({ manifests: { web: manifest('web') } });
    await h.until('Running', () => h.phase('web') === 'Running');
    expect(await one(h, 'kubelet_pod_start_duration_seconds_count')).toBe(1);
    expect(await one(h, 'kubelet_pod_start_sli_duration_seconds_count')).toBe(0);
  });
});
