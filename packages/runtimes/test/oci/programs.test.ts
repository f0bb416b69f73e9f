/** The programs that OCI images need: found, missing, too old, and what is said of it. */
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { parseName } from '../../src/oci/images/names.ts';
import { findPrograms, lackText } from '../../src/oci/programs.ts';
import { findCommand } from '../../src/process/probe.ts';
import { isPodAddress, podAddress } from '../../src/shared/podAddress.ts';
import { startRuntime } from '../processRuntime.ts';

describe('the programs of the kind oci', () => {
  let dir = '';
  const put = (name: string, says: string) => {
    rmSync(join(dir, name), { force: true });
    writeFileSync(join(dir, name), `#!/bin/sh\necho "${says}"\n`);
    chmodSync(join(dir, name), 0o755);
  };
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'programs-'));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    for (const [name, says] of Object.entries({
      ...{ crun: 'crun version 1.8.1', skopeo: 'skopeo version 1.9.3', umoci: 'umoci version 0.4.7', pasta: 'pasta unknown version' },
      ...{ unshare: '', nsenter: '', setpriv: '', prlimit: '', mount: '', newuidmap: '', newgidmap: '' },
    }))
      put(name, says);
    writeFileSync(join(dir, 'ids'), 'somebody:100000:65536\n4242:200000:65536\n');
  });
  const find = (o: Partial<Parameters<typeof findPrograms>[1]> = {}) =>
    findPrograms(dir, { uid: 4242, user: 'me', subuid: join(dir, 'ids'), subgid: join(dir, 'ids'), tun: '/dev/null', ...o });

  it('are found with their versions and the ids of the user', async () => {
    const { programs, missing, noNetwork } = await find();
    expect({ missing, noNetwork }).toEqual({ missing: [], noNetwork: null });
    expect(programs?.runtime).toEqual({ name: 'crun', path: join(dir, 'crun'), version: '1.8.1' });
    expect(programs?.network?.name).toBe('pasta');
    expect(programs?.ids?.uids).toEqual({ start: 200_000, count: 65_536 });
    expect((await find({ uid: 0 })).programs?.ids).toBeNull();
  });

  it('are named with their packages when they are missing or too old', async () => {
    rmSync(join(dir, 'crun'));
    expect(lackText((await find()).missing)).toBe('crun or runc is not installed. Install the package crun or the package runc.');
    put('runc', 'runc version 1.1.5');
    expect((await find()).programs?.runtime.name).toBe('runc');
    put('umoci', 'umoci version 0.4.5');
    expect(lackText((await find()).missing)).toMatch(/umoci is version 0\.4\.5, 0\.4\.7 is needed\. Install a newer package umoci/);
    rmSync(join(dir, 'skopeo'));
    rmSync(join(dir, 'newuidmap'));
    const { programs, missing } = await find({ user: 'nobody-here', uid: 4343 });
    expect(programs).toBeNull();
    const text = lackText(missing);
    for (const words of ['Install the package skopeo.', 'Install the package uidmap.', 'usermod --add-subuids'])
      expect(text).toContain(words);
  });

  it('are enough without a way out of a pod’s network, which is said', async () => {
    expect((await find({ tun: '/no/tun' })).noNetwork?.what).toBe('/no/tun cannot be opened');
    rmSync(join(dir, 'pasta'));
    const { programs, noNetwork } = await find();
    expect(programs?.network).toBeNull();
    expect(noNetwork?.todo).toBe('Install the package passt or the package slirp4netns.');
    put('slirp4netns', 'slirp4netns version 1.2.0');
    expect((await find()).programs?.network?.name).toBe('slirp4netns');
  });

  it('stop the runtime where one is missing, in words', async () => {
    for (const name of ['sh', 'cat', 'flock', 'getconf', 'mkfifo']) symlinkSync(findCommand(name, process.env.PATH ?? ''), join(dir, name));
    rmSync(join(dir, 'skopeo'));
    const started = startRuntime({ args: ['--kind', 'oci'], env: { PATH: dir } });
    await expect(started).rejects.toThrow(
      /OCI images cannot run here: skopeo is not installed\. Install the package skopeo\. Or use embedded:\/\/process/,
    );
  });
});

describe('names of images', () => {
  it('have a registry and a tag, as in Docker and the CRI runtimes', () => {
    const full = (name: string) => parseName(name)?.full;
    expect(full('nginx')).toBe('docker.io/library/nginx:latest');
    expect(full('me/app:2')).toBe('docker.io/me/app:2');
    expect(full('localhost/app')).toBe('localhost/app:latest');
    expect(full('127.0.0.1:5000/a/b:1')).toBe('127.0.0.1:5000/a/b:1');
    const digest = `sha256:${'a'.repeat(64)}`;
    expect(parseName(`quay.io/a/b:1@${digest}`)).toMatchObject({ repository: 'quay.io/a/b', digest });
    for (const bad of ['', '-x', '../etc', 'a b', 'docker.io/../x', `x@sha256:short`, '--flag/x']) expect(parseName(bad), bad).toBeNull();
  });
});

it('addresses of pods are told from all others', () => {
  expect(isPodAddress(podAddress(() => 0))).toBe(true);
  expect(isPodAddress(podAddress((below) => below - 1))).toBe(true);
  for (const other of ['127.0.0.1', '127.0.0.53', '127.128.0.1', '10.64.0.1', '::1', 'localhost'])
    expect(isPodAddress(other), other).toBe(false);
});
