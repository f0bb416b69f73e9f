/** The configuration file, drop-ins, precedence and defaults (boot-and-node 2.3, 2.4, 3; traps 1-10, 60). */
import { describe, expect } from 'vitest';
import { toV1beta1 } from '../../../src/machines/config/v1beta1.ts';
import { golden, HEADER, load, tempDir, texts } from '../helpers.ts';
import { it } from '../inFolder.ts';

describe('defaults', () => {
  it('are closed, with a file and without one (trap 1, where the reference is open without)', async () => {
    const bare = (await load([])).config;
    expect([
      bare.authentication.anonymous.enabled,
      bare.authentication.webhook.enabled,
      bare.authorization.mode,
      bare.readOnlyPort,
    ]).toEqual([false, true, 'Webhook', 0]);
    const file = (await load([], '')).config;
    expect([
      file.authentication.anonymous.enabled,
      file.authentication.webhook.enabled,
      file.authorization.mode,
      file.readOnlyPort,
    ]).toEqual([false, true, 'Webhook', 0]);
  });

  it('render as the golden /configz', async () => {
    const text = `${JSON.stringify(toV1beta1((await load([])).config), null, 2)}\n`;
    expect(text).toBe(golden('configz.json', text));
  });

  it('copy an explicit nodeStatusUpdateFrequency of the file, not of the flag (trap 2)', async () => {
    expect((await load([], 'nodeStatusUpdateFrequency: 20s\n')).config.nodeStatusReportFrequency).toBe(20_000);
    expect((await load(['--node-status-update-frequency=20s'])).config.nodeStatusReportFrequency).toBe(300_000);
  });

  it('take an explicit zero for unset except in pointer fields (trap 7)', async () => {
    const { config } = await load(
      [],
      'port: 0\nmaxPods: 0\neventBurst: 0\nsyncFrequency: 0s\nhealthzPort: 0\noomScoreAdj: 0\nregistryPullQPS: 0\nfailSwapOn: false\nresolvConf: ""\n',
    );
    expect(config).toMatchObject({ port: 10250, maxPods: 110, eventBurst: 100, syncFrequency: 60_000 });
    expect(config).toMatchObject({ healthzPort: 0, oomScoreAdj: 0, registryPullQPS: 0, failSwapOn: false, resolvConf: '' });
  });

  it('let embedded://oci pull ten images at once without a rate, unless somebody said otherwise', async () => {
    const pulls = async (args: string[], file = '') => {
      const { config } = await load(args, file);
      return [config.serializeImagePulls, config.maxParallelImagePulls, config.registryPullQPS];
    };
    const oci = '--container-runtime-endpoint=embedded://oci';
    expect(await pulls([oci])).toEqual([false, 10, 0]);
    expect(await pulls([oci, '--registry-qps=2'])).toEqual([true, null, 2]);
    expect(await pulls([oci], 'serializeImagePulls: true\n')).toEqual([true, null, 5]);
    expect(await pulls(['--container-runtime-endpoint=embedded://process'])).toEqual([true, null, 5]);
  });

  it('turn serial pulls off where several at once are asked for', async () => {
    expect((await load([], 'maxParallelImagePulls: 3\n')).config.serializeImagePulls).toBe(false);
    expect((await load([], 'maxParallelImagePulls: 1\n')).config.serializeImagePulls).toBe(true);
    expect((await load([], 'maxParallelImagePulls: 3\nserializeImagePulls: true\n')).config.serializeImagePulls).toBe(true);
    using dir = tempDir();
    dir.write('a.conf', `${HEADER}maxParallelImagePulls: 3\n`);
    expect((await load([`--config-dir=${dir.path}`])).config.serializeImagePulls).toBe(false);
  });

  it('of evictionHard vanish when the file names any threshold, unless merging is asked for (trap 4)', async () => {
    expect((await load([], 'evictionHard: {memory.available: 1Gi}\n')).config.evictionHard).toEqual({ 'memory.available': '1Gi' });
    expect(
      Object.keys((await load([], 'evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true\n')).config.evictionHard),
    ).toHaveLength(5);
  });

  it('leave nested fields alone that the file does not mention', async () => {
    const { config } = await load(
      [],
      'authentication: {anonymous: {enabled: true}}\ntracing: {samplingRatePerMillion: 5}\nlogging: {verbosity: 2}\n',
    );
    expect(config.authentication).toEqual({
      x509: { clientCAFile: '' },
      webhook: { enabled: true, cacheTTL: 120_000 },
      anonymous: { enabled: true },
    });
    expect(config.tracing).toEqual({ endpoint: null, samplingRatePerMillion: 5 });
    expect(config.logging).toMatchObject({ format: 'text', verbosity: 2, flushFrequency: 5_000 });
  });
});

describe('precedence', () => {
  it('reads lists of numbers from flag and file', async () => {
    expect((await load(['--tls-curve-preferences=29,23', '--tls-curve-preferences=4588'])).config.tlsCurvePreferences).toEqual([
      29, 23, 4588,
    ]);
    expect((await load([], 'tlsCurvePreferences: [23]\n')).config.tlsCurvePreferences).toEqual([23]);
  });

  it('lets flags win, replaces whole collections, and merges featureGates only (trap 3)', async () => {
    const { config } = await load(
      [
        '--max-pods=7',
        '--feature-gates=MemoryQoS=true,NodeLogQuery=false',
        '--eviction-hard=memory.available<2Gi',
        '--cluster-dns=10.0.0.1',
      ],
      'maxPods: 9\nfeatureGates: {NodeLogQuery: true, QOSReserved: true}\nevictionHard: {memory.available: 1Gi, nodefs.available: 1%}\nclusterDNS: [1.1.1.1, 2.2.2.2]\n',
    );
    expect(config.maxPods).toBe(7);
    expect(config.featureGates).toEqual({ NodeLogQuery: false, QOSReserved: true, MemoryQoS: true });
    expect(config.evictionHard).toEqual({ 'memory.available': '2Gi' });
    expect(config.clusterDNS).toEqual(['10.0.0.1']);
  });

  it('joins seccomp-default of flag and file by OR', async () => {
    expect((await load(['--seccomp-default=false'], 'seccompDefault: true\n')).config.seccompDefault).toBe(true);
    expect((await load(['--seccomp-default'])).config.seccompDefault).toBe(true);
  });

  it('merges drop-ins: only .conf, lexical order, lists replaced, maps by key, no defaulting (trap 60)', async ({ dir }) => {
    dir.write(
      'd/10-a.conf',
      `${HEADER}maxPods: 20\nclusterDNS: [1.1.1.1, 2.2.2.2]\nkubeReserved: {cpu: 100m}\nauthentication: {anonymous: {enabled: true}}\n`,
    );
    dir.write('d/20-b.conf', `${HEADER}maxPods: 30\nclusterDNS: [3.3.3.3]\nkubeReserved: {memory: 1Gi}\n`);
    dir.write('d/sub/05.conf', `${HEADER}podsPerCore: 4\n`);
    dir.write('d/30-c.yaml', `${HEADER}maxPods: 40\n`);
    const main = dir.write('main.yaml', `${HEADER}maxPods: 10\nkubeReserved: {pid: "5"}\n`);
    const loaded = await load([`--config=${main}`, `--config-dir=${dir.path}/d`]);
    expect(texts(loaded.errors)).toEqual([]);
    expect(loaded.config).toMatchObject({
      maxPods: 30,
      clusterDNS: ['3.3.3.3'],
      podsPerCore: 4,
      kubeReserved: { pid: '5', cpu: '100m', memory: '1Gi' },
    });
    expect(loaded.config.authentication.anonymous.enabled).toBe(true);
    expect(loaded.config.authentication.webhook.enabled).toBe(true);
    expect(loaded.files.map((f) => f.slice(dir.path.length))).toEqual(['/main.yaml', '/d/10-a.conf', '/d/20-b.conf', '/d/sub/05.conf']);
  });

  it('uses drop-ins without a file over the open defaults', async ({ dir }) => {
    dir.write('a.conf', `${HEADER}maxPods: 5\n`);
    expect((await load([`--config-dir=${dir.path}`])).config).toMatchObject({ maxPods: 5, readOnlyPort: 0 });
  });

  it('refuses a missing drop-in directory and a drop-in without kind', async ({ dir }) => {
    dir.write('a.conf', 'maxPods: 5\n');
    expect((await load([`--config-dir=${dir.path}/none`])).errors).toHaveLength(1);
    expect(texts((await load([`--config-dir=${dir.path}`])).errors)).toHaveLength(2);
  });
});

describe('paths and endpoints', () => {
  it('stand against the file in the file and against the working directory in a flag (trap 8)', async ({ dir }) => {
    const file = dir.write(
      'etc/k.yaml',
      `${HEADER}staticPodPath: manifests\nresolvConf: ""\nauthentication: {x509: {clientCAFile: ../ca.crt}}\n`,
    );
    const loaded = await load([`--config=${file}`]);
    expect(loaded.config.staticPodPath).toBe(`${dir.path}/etc/manifests`);
    expect(loaded.config.authentication.x509.clientCAFile).toBe(`${dir.path}/ca.crt`);
    expect(loaded.config.resolvConf).toBe('');
    expect((await load(['--pod-manifest-path=manifests'])).config.staticPodPath).toBe('/work-dir/manifests');
  });

  it('warns of a kubelet cgroup outside the reserved one, and skips addresses that are none', async () => {
    const loaded = await load(['--node-ip=nope,1.2.3.4'], 'kubeletCgroups: /a\nkubeReservedCgroup: /b\nclusterDNS: [x]\n');
    expect(loaded.warnings).toHaveLength(3);
    expect(loaded.flags.nodeIPs).toEqual(['1.2.3.4']);
  });

  it('rewrites a bare endpoint path with a warning', async () => {
    const loaded = await load(['--container-runtime-endpoint=/run/x.sock']);
    expect(loaded.config.containerRuntimeEndpoint).toBe('unix:///run/x.sock');
    expect(texts(loaded.warnings)).toEqual([
      'containerRuntimeEndpoint (--container-runtime-endpoint): a bare path is deprecated; write unix:///run/x.sock',
    ]);
  });

  it('puts the admin socket under the root directory', async () => {
    expect((await load(['--root-dir=/r'])).flags.adminSocket).toBe('/r/actorlet.sock');
    expect((await load(['--root-dir=/r', '--actorlet-admin-socket=/a.sock'])).flags.adminSocket).toBe('/a.sock');
  });
});

describe('decoding', () => {
  it('warns of unknown and duplicate fields with file, line and nearest name (traps 9, 10)', async () => {
    const loaded = await load([], 'maxPod: 5\nport: 1\nport: 2\nlogging:\n  verbosty: 3\n');
    expect(texts(loaded.errors)).toEqual([]);
    expect(texts(loaded.warnings).map((t) => t.replace(/^.*kubelet.yaml/, ''))).toEqual([
      ':5: port is there more than once; the last one counts',
      ':3: unknown field maxPod (did you mean maxPods?); it is ignored',
      ':7: unknown field logging.verbosty (did you mean verbosity?); it is ignored',
    ]);
    expect(loaded.config.port).toBe(2);
  });

  it('reports every wrong type, each with its line', async () => {
    const loaded = await load(
      [],
      'maxPods: "5"\nsyncFrequency: 20\nfailSwapOn: 1\nclusterDNS: 10.0.0.1\nkubeReserved: {cpu: 1}\nport: 1.5\nauthentication: yes\n',
    );
    expect(texts(loaded.errors).map((t) => t.replace(/^.*kubelet.yaml/, ''))).toEqual([
      ':3: maxPods must be a whole number, not "5"',
      ':4: syncFrequency must be a duration in quotes or plain, such as 20s or 1m30s, not "20"',
      ':5: failSwapOn must be true or false, not "1"',
      ':6: clusterDNS must be a list, not "10.0.0.1"',
      ':7: kubeReserved.cpu must be a string, not "1"',
      ':8: port must be a whole number, not "1.5"',
      ':9: authentication must be an object, not "true"',
    ]);
  });

  it('repeats no key, user or query in an error', async () => {
    const wrong = 'staticPodURLHeader: {Authorization: "Bearer hush"}\nclusterDNS: https://me:hush@h/x?token=hush\n';
    const told = texts((await load([], wrong)).errors).join('\n');
    expect(told).toMatch(/Authorization must be a list, not a text.*clusterDNS must be a list, not "https:\/\/<masked>@h/s);
    expect(told).not.toContain('hush');
  });

  it.each([
    ['apiVersion: kubelet.config.k8s.io/v1beta1\nkind: Foo\n', 'kind must be KubeletConfiguration, not "Foo"'],
    ['kind: KubeletConfiguration\n', 'apiVersion must be kubelet.config.k8s.io/v1beta1, it is missing'],
    ['', 'is empty'],
    ['[1, 2]', 'must be an object'],
    ['a: [', 'Flow sequence'],
    [
      '{"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1", "maxPods": {}}',
      'maxPods must be a whole number, not an object',
    ],
  ])('refuses %j', async (text, what) => {
    using dir = tempDir();
    const loaded = await load([`--config=${dir.write('k.yaml', text)}`]);
    expect(texts(loaded.errors).join('\n')).toContain(what);
  });

  it('names a file that cannot be read', async () => {
    expect(texts((await load(['--config=/nowhere/k.yaml'])).errors)).toEqual([
      expect.stringMatching(/^--config: cannot read \/nowhere\/k.yaml: ENOENT/),
    ]);
  });

  it('reads JSON, YAML booleans, null as unset, anchors, and list elements with missing fields', async ({ dir }) => {
    const json = dir.write(
      'k.json',
      '{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","maxPods":3,"port":null}',
    );
    expect((await load([`--config=${json}`])).config).toMatchObject({ maxPods: 3, port: 10250 });
    const { config } = await load(
      [],
      'failSwapOn: no\nsystemReserved: &r {cpu: 100m}\nkubeReserved: *r\nregisterWithTaints: [{key: a, effect: NoSchedule}]\nlogging: {flushFrequency: 2000000000}\n',
    );
    expect(config.failSwapOn).toBe(false);
    expect(config.kubeReserved).toEqual({ cpu: '100m' });
    expect(config.registerWithTaints).toEqual([{ key: 'a', value: '', effect: 'NoSchedule' }]);
    expect(config.logging.flushFrequency).toBe(2_000);
  });
});

describe('/configz', () => {
  it('returns what a file says, with headers masked', async () => {
    const { config } = await load(
      [],
      'staticPodURL: https://me:hush@h/pods?token=hush\nstaticPodURLHeader: {Authorization: [hush]}\nsyncFrequency: 90s\nrotateCertificates: true\n',
    );
    expect(toV1beta1(config)).toMatchObject({
      staticPodURL: 'https://<masked>@h/pods?<masked>',
      staticPodURLHeader: { Authorization: ['<masked>'] },
      syncFrequency: '1m30s',
      rotateCertificates: true,
    });
    expect(JSON.stringify(toV1beta1(config))).not.toContain('hush');
  });
});
