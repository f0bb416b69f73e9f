/** `actorlet --check`: what becomes of each manifest and of the document at a URL, read as the daemon reads them. */
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Finding } from '../../../src/boot/check/findings.ts';
import { checkPods } from '../../../src/boot/check/pods.ts';
import type { KubeletConfiguration } from '../../../src/machines/config/config.ts';
import { defaultNodeConfig } from '../../../src/machines/config/defaults.ts';
import { tempDir } from '../helpers.ts';

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
