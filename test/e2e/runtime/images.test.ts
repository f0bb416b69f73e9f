/**
 * Pulls of a real containerd from a real registry on loopback that lets one user in: without credentials, with those that a
 * provider program gives, with wrong ones, and what becomes of a pod when they are put right.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildDaemon, createDaemon, type Daemon } from '../daemon.ts';
import { type Containerd, startContainerd } from '../lab/containerd.ts';
import { type PrivateRegistry, startRegistry } from '../lab/registry.ts';
import { manifest, steady } from '../manifests.ts';
import { containers } from '../runtime.ts';

const USER = 'node';
const PASSWORD = 'open-sesame-0123456789abcdef';
/** A failed pull is tried again after 10, 20 and 40 s. */
const LONG_MS = 150_000;

let lab: Containerd;
let registry: PrivateRegistry;
let daemon: Daemon;
let dir: string;

/** A provider that counts its runs and answers with what stands in a file; a file that is not there makes it fail. */
function installProvider(): void {
  const bin = join(dir, 'bin');
  mkdirSync(bin);
  const script = ['#!/bin/sh', 'read -r request || true', `printf '%s\\n' "$request" >> "${dir}/asked"`, `cat "${dir}/answer"`];
  writeFileSync(join(bin, 'lab'), `${script.join('\n')}\n`);
  chmodSync(join(bin, 'lab'), 0o755);
  const provider = {
    name: 'lab',
    matchImages: [registry.host],
    defaultCacheDuration: '0s',
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
  };
  const config = { apiVersion: 'kubelet.config.k8s.io/v1', kind: 'CredentialProviderConfig', providers: [provider] };
  writeFileSync(join(dir, 'providers.yaml'), JSON.stringify(config));
}
function answer(password: string): void {
  const auth = { [registry.host]: { username: USER, password } };
  const response = { kind: 'CredentialProviderResponse', apiVersion: 'credentialprovider.kubelet.k8s.io/v1', cacheKeyType: 'Image', auth };
  writeFileSync(join(dir, 'answer'), JSON.stringify(response));
}
const providerFlags = (): string[] => [
  `--image-credential-provider-config=${join(dir, 'providers.yaml')}`,
  `--image-credential-provider-bin-dir=${join(dir, 'bin')}`,
];
const asked = (): string[] => (existsSync(join(dir, 'asked')) ? readFileSync(join(dir, 'asked'), 'utf8').trim().split('\n') : []);

beforeAll(async () => {
  await buildDaemon();
  dir = mkdtempSync(join(tmpdir(), 'actorlet-e2e-images-'));
  lab = await startContainerd();
  registry = await startRegistry({ username: USER, password: PASSWORD, configDir: join(lab.dir, 'certs.d') });
  installProvider();
  daemon = await createDaemon(lab, {}, providerFlags());
  await daemon.start();
});
afterAll(async () => {
  await daemon?.dispose();
  await registry?.stop();
  expect(await lab?.stop()).toEqual([]);
  if (dir !== undefined) rmSync(dir, { recursive: true, force: true });
});

const waitingFor = (name: string, reason: RegExp) =>
  daemon.podWhere(
    name,
    `${name} to wait with ${reason.source}`,
    (p) => reason.test(p.status.containerStatuses?.[0]?.state.waiting?.reason ?? ''),
    LONG_MS,
  );

describe('an image of a registry that wants credentials', () => {
  it('is not pulled without: a program that fails gives none, and the rest of the node goes on', async () => {
    daemon.put('private.yaml', manifest('private', [{ ...steady(), image: registry.image }]));
    daemon.put('public.yaml', manifest('public', [steady()]));
    await waitingFor('private', /^(ErrImagePull|ImagePullBackOff)$/);
    await daemon.phase('public', 'Running');
    expect(JSON.parse(asked()[0] ?? '')).toEqual({
      kind: 'CredentialProviderRequest',
      apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
      image: `${registry.host}/team/app`,
    });
    expect(registry.users.length).toBeGreaterThan(0);
    expect(new Set(registry.users)).toEqual(new Set(['']));
    const failed = (await daemon.events('private')).filter((e) => e.reason === 'Failed').map((e) => e.message);
    expect(failed).toContainEqual(expect.stringContaining(`Failed to pull image "${registry.image}"`));
    expect(failed).toContain('Error: ErrImagePull');
    expect(daemon.log()).toContain('a credential provider gave nothing');
  });

  it('is not pulled with wrong ones, and is as soon as the program knows better', async () => {
    const before = asked().length;
    answer('wrong-password-0123456789abcdef');
    // Pods of their own: the first one backs off.
    daemon.put('mistaken.yaml', manifest('mistaken', [{ ...steady(), image: registry.image }]));
    await daemon.wait('the program to be asked again', () => asked().length > before, { timeoutMs: LONG_MS });
    await waitingFor('mistaken', /^(ErrImagePull|ImagePullBackOff)$/);
    answer(PASSWORD);
    daemon.put('knows.yaml', manifest('knows', [{ ...steady(), image: registry.image }]));
    await daemon.podWhere('knows', 'knows to run', (p) => p.status.phase === 'Running', LONG_MS);
    expect(registry.users).toContain(USER);
    const [running] = (await containers(lab, 'knows')).filter((c) => c.running);
    expect(running).toBeDefined();
    const pulled = (await daemon.events('knows')).find((e) => e.reason === 'Pulled');
    expect(pulled?.message).toMatch(new RegExp(`^Successfully pulled image "${registry.image}" in `));
  });

  it('leaves nothing secret in logs, events and states', async () => {
    const shown = [daemon.log(), JSON.stringify(await daemon.events()), JSON.stringify(await daemon.pods()), await daemon.ctl('recorder')];
    for (const text of shown) for (const secret of [PASSWORD, 'wrong-password']) expect(text).not.toContain(secret);
  });
});

describe('an image that is there already, where credentials are verified', () => {
  it('is for those alone who show that they may have it; what is on the list is for all', async () => {
    await daemon.end('SIGTERM');
    const config = {
      featureGates: { KubeletEnsureSecretPulledImages: true },
      imagePullCredentialsVerificationPolicy: 'NeverVerifyAllowlistedImages',
      preloadedImagesVerificationAllowlist: ['docker.io/library/*'],
    };
    const verifying = await createDaemon(lab, config, providerFlags());
    const waits = (name: string, reason: RegExp) =>
      verifying.podWhere(
        name,
        `${name} to wait with ${reason.source}`,
        (p) => reason.test(p.status.containerStatuses?.[0]?.state.waiting?.reason ?? ''),
        LONG_MS,
      );
    try {
      answer('wrong-password-0123456789abcdef');
      await verifying.start();
      verifying.put('listed.yaml', manifest('listed', [steady()]));
      verifying.put('again.yaml', manifest('again', [{ ...steady(), image: registry.image, imagePullPolicy: 'IfNotPresent' }]));
      verifying.put('never.yaml', manifest('never', [{ ...steady(), image: registry.image, imagePullPolicy: 'Never' }]));
      await waits('again', /^(ErrImagePull|ImagePullBackOff)$/);
      await waits('never', /^ErrImageNeverPull$/);
      await verifying.phase('listed', 'Running', LONG_MS);
      answer(PASSWORD);
      for (const name of ['again', 'never']) await verifying.podWhere(name, `${name} to run`, (p) => p.status.phase === 'Running', LONG_MS);
      const [record] = readdirSync(join(verifying.rootDir, 'image_manager/pulled'));
      const text = readFileSync(join(verifying.rootDir, 'image_manager/pulled', record ?? ''), 'utf8');
      expect(JSON.parse(text)).toMatchObject({ kind: 'ImagePulledRecord', credentialMapping: expect.anything() });
      for (const words of [text, verifying.log()]) expect(words).not.toContain(PASSWORD);
      expect(readdirSync(join(verifying.rootDir, 'image_manager/pulling'))).toEqual([]);
    } finally {
      await verifying.dispose();
    }
  });
});

it('an administrator’s config.json opens an image for every pod, and stays secret', async () => {
  const filed = await createDaemon(lab, {});
  try {
    const auth = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
    mkdirSync(filed.rootDir, { recursive: true });
    writeFileSync(join(filed.rootDir, 'config.json'), JSON.stringify({ auths: { [registry.host]: { auth } } }), { mode: 0o600 });
    await filed.start();
    filed.put('filed.yaml', manifest('filed', [{ ...steady(), image: registry.image, imagePullPolicy: 'Always' }]));
    await filed.podWhere('filed', 'filed to run', (p) => p.status.phase === 'Running', LONG_MS);
    const shown = [filed.log(), JSON.stringify(await filed.events()), JSON.stringify(await filed.pods()), await filed.ctl('recorder')];
    for (const text of shown) for (const secret of [PASSWORD, auth]) expect(text).not.toContain(secret);
  } finally {
    await filed.dispose();
  }
});

it('a configuration of providers that cannot be used keeps the daemon from starting, and says everything that is wrong', async () => {
  const broken = join(dir, 'broken.yaml');
  writeFileSync(broken, 'apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders: [{name: a/b}]\n');
  const flags = [`--image-credential-provider-config=${broken}`, `--image-credential-provider-bin-dir=${join(dir, 'bin')}`];
  const other = await createDaemon(lab, {}, flags);
  try {
    await other.start({ ready: false });
    await other.wait('its words', () => /providers\[0\]\.name.*\n.*providers\[0\]\.matchImages/.test(other.log()), { timeoutMs: 60_000 });
    await other.wait('its end', () => !other.alive(), { timeoutMs: 60_000 });
    expect(await other.end('SIGTERM')).toBe(1);
  } finally {
    await other.dispose();
  }
});
