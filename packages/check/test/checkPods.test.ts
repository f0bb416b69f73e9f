/** `actorlet --check`: what becomes of each manifest and of the document at a URL, read as the daemon reads them. */
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { CHECKPOINT_FILE, encodeCheckpoint } from '@actorlet/kubelet/machines/allocation/devices/checkpoint.ts';
import type { KubeletConfiguration } from '@actorlet/kubelet/machines/config/config.ts';
import { defaultNodeConfig } from '@actorlet/kubelet/machines/config/defaults.ts';
import { expect, it } from 'vitest';
import { tempDir } from '../../../test/boot/helpers.ts';
import type { Finding } from '../src/findings.ts';
import { checkPods } from '../src/pods.ts';

const pod = (name: string, spec = '', more = ''): string =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\nspec:\n  containers: [{name: c, image: busybox}]\n${spec}${more}`;

async function found(config: Partial<KubeletConfiguration>): Promise<Finding[]> {
  return checkPods(defaultNodeConfig({ flags: { hostnameOverride: 'n1' }, config }));
}
const of = (findings: readonly Finding[], name: string): string[] =>
  findings.filter((f) => f.where.endsWith(name)).map((f) => `${f.level}: ${f.what}`);

it('says of each file whether its pod runs, how it was read, or why no pod comes from it', async () => {
  using dir = tempDir();
  dir.write('m/good.yaml', pod('good'));
  dir.write('m/lenient.yaml', pod('lenient', '  hostNetwork: y\n', '---\nkind: Other\n'));
  dir.write('m/bad.yaml', 'kind: Pod\nmetadata: [\n');
  dir.write('m/again.yaml', pod('good'));
  dir.write('m/.hidden.yaml', pod('hidden'));
  mkdirSync(join(dir.path, 'm/folder'));
  const findings = await found({ staticPodPath: `${dir.path}/m` });
  expect(of(findings, '/lenient.yaml')).toEqual([
    expect.stringMatching(/^warning: pod default\/lenient-n1 runs; read leniently: .*document/s),
  ]);
  expect(of(findings, '/bad.yaml')).toEqual([expect.stringMatching(/^error: no pod comes from it: line \d/)]);
  expect(of(findings, '/folder')).toEqual(['note: it is left out: a directory is not entered']);
  expect(of(findings, '/.hidden.yaml')).toEqual([]);
  const both = [...of(findings, '/good.yaml'), ...of(findings, '/again.yaml')].sort();
  expect(both).toEqual([
    expect.stringMatching(/^error: no pod comes from it: pod default\/good-n1 is already defined by/),
    'note: pod default/good-n1 runs',
  ]);
});

it.each([
  [{ spec: { contaniers: [] } }, 'spec.containers: required, at least one container (contaniers is no field: did you mean containers?)'],
  [{ spec: { containers: [{ name: 'c', imagee: 'i' }] } }, 'spec.containers[0].image: required (imagee is no field: did you mean image?)'],
  [{ metadata: { nmae: 'a' }, spec: { containers: [] } }, 'metadata.name: required (nmae is no field: did you mean name?)'],
  [{ spce: {} }, 'spec: required (spce is no field: did you mean spec?)'],
  [
    { spec: { containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 1 }, { containerport: 2 }] }] } },
    'spec.containers[0].ports[1].containerPort: required (containerport is no field: did you mean containerPort?)',
  ],
  [{ spec: { containers: [{ name: 'c' }] } }, 'spec.containers[0].image: required'],
])('names the field that was meant to be the one that %j lacks', async (part, error) => {
  using dir = tempDir();
  dir.write('m/a.yaml', JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, ...part }));
  expect(of(await found({ staticPodPath: `${dir.path}/m` }), '/a.yaml')).toEqual([`error: no pod comes from it: ${error}`]);
});

it('says of a second pod with the UID of another that it is ignored', async () => {
  using dir = tempDir();
  for (const name of ['a', 'b']) dir.write(`m/${name}.yaml`, pod(name).replace('{name', '{uid: pinned, name'));
  const findings = await found({ staticPodPath: `${dir.path}/m` });
  const said = [...of(findings, '/a.yaml'), ...of(findings, '/b.yaml')].sort();
  expect(said).toEqual([
    expect.stringMatching(/^error: pod default\/[ab]-n1 is ignored: .* has its UID$/),
    expect.stringMatching(/ runs$/),
  ]);
});

it('names fields that the node does not know or leaves alone, at any depth', async () => {
  using dir = tempDir();
  dir.write('m/a.yaml', pod('a', '  hostNetwrok: true\n'));
  dir.write('m/b.yaml', `${pod('b')}  volumes: [{name: v, emptyDir: {}, medium: Memory}]\n`);
  dir.write(
    'm/c.yaml',
    'apiVersion: v1\nkind: Pod\nmetadata: {name: c, lables: {a: b}}\nspec: {containers: [{name: c, image: i, enviroment: []}]}\nspce: {}\n',
  );
  const findings = await found({ staticPodPath: `${dir.path}/m` });
  expect(of(findings, '/a.yaml').join()).toMatch(
    /^(?:warning|error): .*spec\.hostNetwrok \(unknown field\) \(did you mean hostNetwork\?\)/,
  );
  expect(of(findings, '/b.yaml').join()).toMatch(/^warning: .*spec\.volumes\[0\]\.medium \(unknown field\)/);
  expect(of(findings, '/c.yaml').join()).toMatch(/lables \(unknown field\) \(did you mean labels\?\)/);
  expect(of(findings, '/c.yaml').join()).toMatch(/spce \(unknown field\)/);
});

it('says of a pod that asks for devices what the device manager says of it', async () => {
  using dir = tempDir();
  for (const name of ['gpu', 'fpga'])
    dir.write(`m/${name}.yaml`, pod(name).replace('image: busybox', `image: busybox, resources: {limits: {x.example/${name}: 1}}`));
  const resources = new Map([['x.example/gpu', { healthy: new Set(['0']) }]]);
  mkdirSync(join(dir.path, 'device-plugins'));
  dir.write(`device-plugins/${CHECKPOINT_FILE}`, encodeCheckpoint({ allocations: [], resources } as never));
  const config = { staticPodPath: `${dir.path}/m`, containerRuntimeEndpoint: 'embedded://hollow' };
  const said = async (flags: object) => {
    const findings = await checkPods(defaultNodeConfig({ flags: { hostnameOverride: 'n1', rootDir: dir.path, ...flags }, config }));
    return ['gpu', 'fpga'].map((name) => of(findings, `/${name}.yaml`).join());
  };
  const [runs, refused] = ['note: pod default/gpu-n1 runs', expect.stringMatching(/is refused: .*fpga \(this node has no such resource\)/)];
  expect(await said({})).toEqual([runs, refused]);
  // Its node object may count them.
  expect(await said({ kubeconfig: '/x' })).toEqual([runs, 'note: pod default/fpga-n1 runs']);
});

it('says of a pod what the admission of the node says of it', async () => {
  using dir = tempDir();
  dir.write(
    'm/a.yaml',
    pod('a', '  hostNetwork: true\n').replace('image: busybox', 'image: busybox, ports: [{containerPort: 80, hostPort: 80}]'),
  );
  dir.write(
    'm/b.yaml',
    pod('b', '  hostNetwork: true\n').replace('image: busybox', 'image: busybox, ports: [{containerPort: 80, hostPort: 80}]'),
  );
  dir.write('m/big.yaml', pod('big').replace('image: busybox', 'image: busybox, resources: {requests: {cpu: 100k}}'));
  dir.write('m/sysctl.yaml', pod('sysctl', '  securityContext: {sysctls: [{name: kernel.msgmax, value: "1"}]}\n'));
  dir.write('m/strict.yaml', pod('strict', '  securityContext: {supplementalGroupsPolicy: Strict}\n'));
  dir.write('m/elsewhere.yaml', pod('elsewhere', '  nodeSelector: {disk: fast}\n'));
  const config = { staticPodPath: `${dir.path}/m`, containerRuntimeEndpoint: 'embedded://hollow' };
  const findings = await found(config);
  const said = (name: string) => of(findings, `/${name}.yaml`).join();
  expect(`${said('a')} ${said('b')}`).toMatch(/pod default\/[ab]-n1 is refused: .*free ports/);
  expect(said('big')).toMatch(/^error: .* is refused: .*enough resource: cpu/);
  expect(said('sysctl')).toMatch(/^error: .* is refused: .*kernel\.msgmax/);
  expect(said('elsewhere')).toMatch(/^error: .* is refused: .*node affinity/);
  expect(said('strict')).toBe('note: pod default/strict-n1 runs');
  const told = await checkPods(defaultNodeConfig({ flags: { hostnameOverride: 'n1' }, config }), { strictGroups: false });
  expect(of(told, '/strict.yaml').join()).toMatch(/is refused: SupplementalGroupsPolicy=Strict/);
});

it.each([
  ['embedded://process', 'securityContext: {readOnlyRootFilesystem: true}', '', /readOnlyRootFilesystem/],
  ['embedded://process', 'tty: true', '', /tty/],
  ['embedded://process', '', '  shareProcessNamespace: true\n', /shareProcessNamespace/],
  ['embedded://process', 'securityContext: {seccompProfile: {type: RuntimeDefault}}', '', /seccompProfile/],
  ['embedded://process', 'image: nginx', '', /nginx/],
  [
    'embedded://process',
    'volumeMounts: [{name: v, mountPath: /no/such/path}]',
    '  volumes: [{name: v, emptyDir: {}}]\n',
    /\/no\/such\/path/,
  ],
  [
    'embedded://oci',
    'image: nginx, volumeMounts: [{name: v, mountPath: /d, mountPropagation: Bidirectional}]',
    '  volumes: [{name: v, emptyDir: {}}]\n',
    /propagation|privileged/,
  ],
  ['embedded://oci', 'image: nginx', '  securityContext: {seLinuxOptions: {level: s0}}\n', /SELinux/],
  ['embedded://oci', 'tty: true', '', /tty/],
])('says what %s refuses by itself: %s %s', async (containerRuntimeEndpoint, container, spec, why) => {
  using dir = tempDir();
  const image = container.includes('image:') ? container : `image: actorlet.dev/pause${container === '' ? '' : `, ${container}`}`;
  dir.write('m/p.yaml', pod('p', spec).replace('image: busybox', image));
  dir.write('m/good.yaml', pod('good').replace('image: busybox', 'image: actorlet.dev/pause'));
  const findings = await found({ staticPodPath: `${dir.path}/m`, containerRuntimeEndpoint });
  expect(of(findings, '/p.yaml').join()).toMatch(/^error: /);
  expect(of(findings, '/p.yaml').join()).toMatch(why);
  expect(of(findings, '/good.yaml')).toEqual(['note: pod default/good-n1 runs']);
});

it('names a path that is not there, and an empty one', async () => {
  using dir = tempDir();
  mkdirSync(join(dir.path, 'm'));
  expect(await found({ staticPodPath: `${dir.path}/none` })).toMatchObject([
    { level: 'warning', what: expect.stringContaining('is not there') },
  ]);
  expect(await found({ staticPodPath: `${dir.path}/m/` })).toMatchObject([{ level: 'note' }]);
  expect(await found({})).toEqual([]);
});

it('reads the document at the URL with its headers, and shows no secret of it', async () => {
  let status = 200;
  const server = createServer((req, res) => {
    res.statusCode = req.headers.authorization === 'Bearer x' ? status : 401;
    res.end(
      JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: { containers: [{ name: 'c', image: 'i' }] } }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const config = { staticPodURL: `http://127.0.0.1:${port}/pods?token=hush`, staticPodURLHeader: { Authorization: ['Bearer x'] } };
  try {
    const findings = await found(config);
    expect(findings).toMatchObject([{ level: 'note', what: 'pod default/web-n1 runs' }]);
    expect(JSON.stringify(findings)).not.toContain('hush');
    status = 500;
    expect(await found(config)).toMatchObject([{ level: 'error', what: 'it answers with status 500' }]);
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
  expect(await found(config)).toMatchObject([{ level: 'error', what: expect.stringContaining('ECONNREFUSED') }]);
});
