/**
 * Who may use an image that is on the node already (resources and volumes 4.4): the policies, what counts as credentials
 * that opened it before, the files that say so, and that whatever cannot be known means "ask the registry".
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PullRecords, type VerificationOptions } from '../../../src/actors/runtime/imagePuller/pullRecords.ts';
import { createEntropy } from '../../../src/boot/dependencies/clock.ts';
import type { OwnedAuth, PullOwner } from '../../../src/machines/runtime/imagePuller/keyring.ts';
import type { ImageEvent } from '../../../src/machines/runtime/imagePuller/messages.ts';
import {
  type AccessGranted,
  accessOf,
  credentialText,
  grantedBy,
  IDENTITIES_MAX,
  mustVerify,
  type PulledRecord,
  readIntent,
  readRecord,
  recordText,
  withAccess,
} from '../../../src/machines/runtime/imagePuller/pullRecords.ts';
import type { AuthConfig, Image } from '../../../src/machines/wire/cri.ts';
import type { CriRequest } from '../../../src/machines/wire/criCalls.ts';
import { type MemFs, memFs } from '../../integration/memFs.ts';
import { collectingLogger } from '../../supervision/fakePorts.ts';
import { fail, fakeCri, healthy } from '../fakeCri.ts';
import { askImage, type World, world } from '../world.ts';

const hash = (auth: AuthConfig) => `h(${auth.username})`;
const owned = (username: string, name: string, o: { uid?: string; kind?: PullOwner['kind'] } = {}): OwnedAuth => ({
  auth: { username, password: 'hunter2' },
  owner: { kind: o.kind ?? 'secret', uid: o.uid ?? `uid-${name}`, namespace: 'ns', name },
});
const secret = (name: string, credentialHash: string) => ({ uid: `uid-${name}`, namespace: 'ns', name, credentialHash });

describe('the policy', () => {
  const allowlist = ['r.io/team/app', 'docker.io/library/*', 'alpine', 'tools/*'];
  it.each([
    ['NeverVerify', 'r.io/x', true, false],
    ['NeverVerifyPreloadedImages', 'r.io/x', true, true],
    ['NeverVerifyPreloadedImages', 'r.io/x', false, false],
    ['NeverVerifyAllowlistedImages', 'r.io/team/app:1', true, false],
    ['NeverVerifyAllowlistedImages', 'r.io/team/app2:1', true, true],
    ['NeverVerifyAllowlistedImages', 'r.io/team/app2:1', false, true],
    ['NeverVerifyAllowlistedImages', 'busybox', true, false],
    // Names as people write them, in the list and in the pod.
    ['NeverVerifyAllowlistedImages', 'alpine:3', true, false],
    ['NeverVerifyAllowlistedImages', 'docker.io/library/alpine', true, false],
    ['NeverVerifyAllowlistedImages', 'r.io/library/alpine', true, true],
    ['NeverVerifyAllowlistedImages', 'tools/jq:1', true, false],
    ['NeverVerifyAllowlistedImages', 'r.io/tools/jq:1', true, true],
    ['NeverVerifyAllowlistedImages', 'NOT A NAME', false, true],
    ['AlwaysVerify', 'r.io/x', false, true],
  ] as const)('%s, %s, pulled here: %s', (policy, image, pulledHere, verify) => {
    expect(mustVerify({ policy, allowlist }, { image, pulledHere })).toBe(verify);
  });
});

describe('access', () => {
  const known: AccessGranted = {
    kubernetesSecrets: [secret('a', 'h(ann)'), secret('broken', '')],
    kubernetesServiceAccounts: [{ uid: 'uid-robot', namespace: 'ns', name: 'robot' }],
  };
  const learned = (name: string, credentialHash: string) => ({ kubernetesSecrets: [secret(name, credentialHash)] });
  it.each<[string, AccessGranted | undefined, OwnedAuth[], ReturnType<typeof accessOf>]>([
    ['nothing known', undefined, [owned('ann', 'a')], { granted: false }],
    ['an image for everybody', { nodePodsAccessible: true }, [], { granted: true, learn: null }],
    ['no credentials', known, [], { granted: false }],
    ['the same secret with the same credentials', known, [owned('ann', 'a')], { granted: true, learn: null }],
    ['the same credentials from another secret', known, [owned('ann', 'b')], { granted: true, learn: learned('b', 'h(ann)') }],
    ['the same secret with other credentials', known, [owned('bob', 'a')], { granted: true, learn: learned('a', 'h(bob)') }],
    ['a secret of that name made anew, other credentials', known, [owned('bob', 'a', { uid: 'new' })], { granted: false }],
    ['credentials whose hash was never known', known, [owned('', 'c')], { granted: false }],
    ['the second of two', known, [owned('eve', 'e'), owned('ann', 'a')], { granted: true, learn: null }],
    ['a service account that pulled it', known, [owned('x', 'robot', { kind: 'serviceAccount' })], { granted: true, learn: null }],
    ['one made anew', known, [owned('x', 'robot', { kind: 'serviceAccount', uid: 'new' })], { granted: false }],
    ["the node's own credentials alone", known, [{ auth: { username: 'ann' } }], { granted: false }],
  ])('with %s', (_, access, auths, expected) => {
    expect(accessOf(access, auths, hash)).toEqual(expected);
  });

  it('teaches no more once there are many identities', () => {
    const many = { kubernetesSecrets: Array.from({ length: IDENTITIES_MAX }, (_, i) => secret(`s${i}`, i === 0 ? 'h(ann)' : `h${i}`)) };
    expect(accessOf(many, [owned('ann', 'b')], hash)).toEqual({ granted: true, learn: null });
  });

  it('is for everybody where none was needed, or the node had its own; else for who brought it', () => {
    expect(grantedBy(null, hash)).toEqual({ nodePodsAccessible: true });
    expect(grantedBy({ auth: { username: 'node' } }, hash)).toEqual({ nodePodsAccessible: true });
    expect(grantedBy(owned('ann', 'a'), hash)).toEqual({ kubernetesSecrets: [secret('a', 'h(ann)')] });
    expect(grantedBy(owned('x', 'robot', { kind: 'serviceAccount' }), hash)).toEqual({
      kubernetesServiceAccounts: [{ uid: 'uid-robot', namespace: 'ns', name: 'robot' }],
    });
  });

  it('adds up: a secret once with its newest credentials, and everybody once and for all', () => {
    const two = withAccess({ kubernetesSecrets: [secret('a', '1')] }, { kubernetesSecrets: [secret('b', '2')] });
    expect(two).toEqual({ kubernetesSecrets: [secret('a', '1'), secret('b', '2')] });
    expect(withAccess(two, { kubernetesSecrets: [secret('a', '3')] })).toEqual({ kubernetesSecrets: [secret('b', '2'), secret('a', '3')] });
    expect(withAccess(two, { nodePodsAccessible: true })).toEqual({ nodePodsAccessible: true });
    expect(withAccess({ nodePodsAccessible: true }, two)).toEqual({ nodePodsAccessible: true });
  });
});

describe('the files', () => {
  it('are those of the reference, both ways', () => {
    const record: PulledRecord = {
      updatedMs: Date.UTC(2026, 0, 2, 3, 4, 5),
      imageRef: 'sha256:1',
      access: { 'docker.io/a/b': { kubernetesSecrets: [secret('a', 'x')] }, 'r.io/c': { nodePodsAccessible: true } },
    };
    expect(readRecord(recordText(record))).toEqual(record);
    expect(JSON.parse(recordText(record))).toEqual({
      kind: 'ImagePulledRecord',
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      lastUpdatedTime: '2026-01-02T03:04:05Z',
      imageRef: 'sha256:1',
      credentialMapping: {
        'docker.io/a/b': { kubernetesSecrets: [{ uid: 'uid-a', namespace: 'ns', name: 'a', credentialHash: 'x' }] },
        'r.io/c': { nodePodsAccessible: true },
      },
    });
    expect(readIntent('{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":"a:1"}')).toBe('a:1');
  });

  it.each(['', '{', '[]', '{"kind":"ImagePulledRecord","imageRef":"x"}', '{"kind":"Other","apiVersion":"kubelet.config.k8s.io/v1"}'])(
    'that hold something else are none: %s',
    (text) => {
      expect([readRecord(text), readIntent(text)]).toEqual([null, null]);
    },
  );

  it('hash credentials as Go writes them', () => {
    expect(credentialText({ username: 'a<b', password: 'p&"', serverAddress: '' })).toBe(
      '{"username":"a\\u003cb","password":"p\\u0026\\""}',
    );
  });
});

describe('the records', () => {
  it('need to know whose credentials a pod has only where that decides', async () => {
    const clock = { wallMs: () => 0, monoMs: () => 0, setTimeout: () => 0, clearTimeout: () => {} };
    const ports = { fs: memFs(clock), entropy: createEntropy(), clock };
    const named = (name: string): Image => ({
      ...{ id: `id of ${name}`, repoTags: [name], repoDigests: [], size: '1', uid: null, username: '', spec: null, pinned: false },
    });
    const images = async () => ['r.io/public:1', 'r.io/a:1', 'r.io/preloaded:1'].map(named);
    const under = (policy: VerificationOptions['policy']) =>
      new PullRecords({ policy, allowlist: [], dir: '/root/image_manager', ports, log: collectingLogger([]), images });
    let asked = 0;
    const auths = async () => {
      asked++;
      return [owned('ann', 'a')];
    };
    const records = under('NeverVerifyPreloadedImages');
    for (const [image, auth] of [['r.io/public:1', null] as const, ['r.io/a:1', owned('ann', 'a')] as const]) {
      await records.begin(image);
      await records.pulled({ image, imageRef: `id of ${image}`, listed: [image], auth });
    }
    const mustPull = (of: PullRecords, image: string) => of.mustPull({ image, imageRef: `id of ${image}`, listed: [image], auths });
    expect(await mustPull(under('NeverVerify'), 'r.io/a:1')).toBe(false);
    expect(await mustPull(records, 'r.io/preloaded:1')).toBe(false);
    expect(await mustPull(records, 'r.io/public:1')).toBe(false);
    expect(await mustPull(under('AlwaysVerify'), 'r.io/preloaded:1')).toBe(true);
    expect(asked).toBe(0);
    expect(await mustPull(records, 'r.io/a:1')).toBe(false);
    expect(asked).toBe(1);
  });
});

describe('the image puller', () => {
  const DIR = '/root/image_manager';
  const VERSION = 'kubelet.config.k8s.io/v1beta1';
  const entropy = createEntropy();
  let w: World;
  let fs: MemFs;
  /** What the runtime has, by name. */
  let present: Map<string, string>;
  /** Whom the registry lets in; null: everybody. */
  let users: string[] | null;
  beforeEach(() => {
    present = new Map();
    users = ['ann'];
    fs = memFs({ wallMs: () => 0, monoMs: () => 0, setTimeout: () => 0, clearTimeout: () => {} });
  });
  afterEach(() => w.stop());

  const imageOf = (id: string): Image => {
    const names = [...present].flatMap(([name, of]) => (of === id ? [name] : []));
    const [repoTags, repoDigests] = [names.filter((name) => !name.includes('@')), names.filter((name) => name.includes('@'))];
    return { ...{ id, repoTags, repoDigests, size: '1', uid: null, username: '', spec: null, pinned: false } };
  };
  async function start(
    policy: VerificationOptions['policy'] = 'NeverVerifyPreloadedImages',
    own: readonly OwnedAuth[] = [],
  ): Promise<void> {
    const cri = healthy(fakeCri());
    cri.answer('ImageStatus', ({ image }: CriRequest<'ImageStatus'>) => {
      const [, id] = [...present].find((entry) => entry.includes(image.image)) ?? [];
      return { image: id === undefined ? null : imageOf(id), info: {} };
    });
    cri.answer('ListImages', () => ({ images: [...new Set(present.values())].map(imageOf) }));
    cri.answer('PullImage', ({ image, auth }: CriRequest<'PullImage'>) => {
      if (users !== null && !users.includes(auth?.username ?? '')) return fail(7, 'denied');
      present.set(image.image, `id of ${image.image}`);
      return { imageRef: `id of ${image.image}` };
    });
    const verification = { policy, allowlist: ['r.io/p'], dir: DIR };
    const images = { verification, registryPullQPS: 0, credentials: async () => own };
    w = await world({ only: ['cri', 'imagePuller'], cri, images, ports: { fs, entropy } });
  }
  async function ensure(name: string, auths: readonly OwnedAuth[] = [], policy: ImageEvent['policy'] = 'IfNotPresent') {
    const uid = `u${Math.max(0, w.events.length)}-${w.cri.of('ImageStatus').length}`;
    const asked = askImage(w, { uid, image: name, policy, credentials: { ok: true, auths } });
    await w.ports.settle();
    const result = await asked;
    if (typeof result === 'string') return result;
    return result.ok ? (result.pulled ? 'pulled' : 'present') : result.failure.reason;
  }
  const pulls = () => w.cri.of('PullImage').length;
  const files = (kind: string) => fs.below(`${DIR}/${kind}`);
  const intend = (image: string) =>
    fs.put(`${DIR}/pulling/sha256-${entropy.sha256Hex(image)}`, JSON.stringify({ kind: 'ImagePullIntent', apiVersion: VERSION, image }));

  it('lets a pod use an image that another pulled only with credentials that open it', async () => {
    await start();
    expect(await ensure('r.io/a:1', [owned('ann', 'a')])).toBe('pulled');
    expect([files('pulling').length, files('pulled').length]).toEqual([0, 1]);
    expect(await ensure('r.io/a:1', [owned('ann', 'a')])).toBe('present');
    expect(w.events.at(-1)?.event.message).toBe('Container image "r.io/a:1" already present on machine and can be accessed by the pod');
    expect(await ensure('r.io/a:1', [owned('ann', 'copy')])).toBe('present');
    expect(pulls()).toBe(1);
    expect(await ensure('r.io/a:1')).toBe('ErrImagePull');
    expect(await ensure('r.io/a:1', [owned('eve', 'e')])).toBe('ErrImagePull');
    expect(await ensure('r.io/a:1', [owned('eve', 'e')], 'Never')).toBe('ErrImageNeverPull');
    expect(w.events.at(-1)?.event.message).toBe('Container image "r.io/a:1" is not present with pull policy of Never');
    expect(await ensure('r.io/a:1', [owned('ann', 'a')], 'Never')).toBe('present');
    expect(files('pulling')).toEqual([]);
    users = ['ann', 'bob'];
    expect(await ensure('r.io/a:1', [owned('bob', 'b')])).toBe('pulled');
    expect(await ensure('r.io/a:1', [owned('bob', 'b')])).toBe('present');
    const checks = (await w.ports.metrics.render()).split('\n').filter((line) => line.includes('mustpull_checks_total'));
    expect(checks).toEqual([
      'kubelet_imagemanager_image_mustpull_checks_total{result="credentialRecordFound"} 4',
      'kubelet_imagemanager_image_mustpull_checks_total{result="mustAuthenticate"} 4',
    ]);
  });

  it('lets everybody use what was pulled without credentials, or with those of the node', async () => {
    users = null;
    await start();
    expect(await ensure('r.io/public:1')).toBe('pulled');
    expect(await ensure('r.io/public:1', [owned('eve', 'e')], 'Never')).toBe('present');
    await w.stop();
    users = ['node'];
    await start('NeverVerifyPreloadedImages', [{ auth: { username: 'node' } }]);
    expect(await ensure('r.io/private:1')).toBe('pulled');
    expect(await ensure('r.io/private:1', [], 'Never')).toBe('present');
  });

  it.each([
    ['NeverVerify', 'present'],
    ['NeverVerifyPreloadedImages', 'present'],
    ['NeverVerifyAllowlistedImages', 'ErrImagePull'],
    ['AlwaysVerify', 'ErrImagePull'],
  ] as const)('of an image that was there before, under %s: %s', async (policy, expected) => {
    present.set('r.io/preloaded:1', 'id');
    await start(policy);
    expect(await ensure('r.io/preloaded:1')).toBe(expected);
  });

  it('remembers over a restart, also a pull that a killed daemon never saw the end of', async () => {
    await start();
    expect(await ensure('r.io/a:1', [owned('ann', 'a')])).toBe('pulled');
    await w.stop();
    intend('r.io/late:1');
    // The same image has names by which nobody pulled it.
    present.set('r.io/late:1', 'late');
    present.set('r.io/late:2', 'late');
    present.set('r.io/other:1', 'late');
    await start();
    expect(await ensure('r.io/a:1', [owned('ann', 'a')])).toBe('present');
    expect(await ensure('r.io/a:1')).toBe('ErrImagePull');
    expect(await ensure('r.io/late:2')).toBe('present');
    expect(await ensure('r.io/late:1')).toBe('ErrImagePull');
    expect(await ensure('r.io/other:1')).toBe('present');
    expect(files('pulling')).toEqual([]);
  });

  describe('an image that was there before, whose content a pod pulls by another name,', () => {
    const DIGEST = `sha256:${'a'.repeat(64)}`;
    const preloaded = ['docker.io/library/tool:1', `docker.io/library/tool@${DIGEST}`];
    const full = (name: string) => (name.includes('/') ? name : `docker.io/library/${name}`);
    /** All names are one image, as in a runtime that keeps images by their content: a pull by a tag brings the digest, too. */
    const begin = async (listed: readonly string[], policy?: VerificationOptions['policy']) => {
      for (const name of listed) present.set(name, DIGEST);
      await start(policy);
      w.cri.answer('ImageStatus', ({ image: { image } }: CriRequest<'ImageStatus'>) => ({
        image: present.has(full(image)) || image.endsWith(DIGEST) ? imageOf(DIGEST) : null,
        info: {},
      }));
      w.cri.answer('PullImage', ({ image: { image }, auth }: CriRequest<'PullImage'>) => {
        if (auth?.username !== 'ann') return fail(7, 'denied');
        for (const name of [full(image), `${full(image).replace(/[:@].*/, '')}@${DIGEST}`])
          if (!/:.*@/.test(name)) present.set(name, DIGEST);
        return { imageRef: DIGEST };
      });
    };
    const again = async (policy?: VerificationOptions['policy']) => w.stop().then(() => begin([], policy));
    const pull = (name: string) => ensure(name, [owned('ann', 'a')]);
    const byAnn = { uid: 'uid-a', namespace: 'ns', name: 'a' };
    const written = async () => {
      const [record = ''] = files('pulled');
      return JSON.parse(new TextDecoder().decode(await fs.readFile(record, { bytesMax: 1e6 }))) as Record<string, unknown>;
    };

    it.each(['tool:1', `tool@${DIGEST}`, ...preloaded])('stays usable as %s, also after a restart', async (name) => {
      await begin(preloaded);
      expect(await ensure(name, [], 'Never')).toBe('present');
      expect(await pull('r.io/private:1')).toBe('pulled');
      expect(await ensure(name, [], 'Never')).toBe('present');
      expect(await pull('tool:2')).toBe('pulled');
      expect(await ensure(name, [], 'Never')).toBe('present');
      await again();
      expect(await ensure(name)).toBe('present');
      for (const other of ['tool:2', 'r.io/private:1', `r.io/private@${DIGEST}`])
        expect(await ensure(other, [], 'Never')).toBe('ErrImageNeverPull');
    });

    it.each([
      ['another tag', ['r.io/p:1'], 'r.io/p:2', 'r.io/p:1'],
      ['its digest', ['r.io/p:1'], `r.io/p@${DIGEST}`, 'r.io/p:1'],
      ['a tag with its digest', ['r.io/p:1'], `r.io/p:2@${DIGEST}`, 'r.io/p:1'],
      ['a tag, where it was there by its digest alone', [`r.io/p@${DIGEST}`], 'r.io/p:2', `r.io/p@${DIGEST}`],
    ])('stays usable when a pod pulls %s of its repository, also after a restart', async (_, listed, pulled, name) => {
      await begin(listed);
      expect(await ensure(name)).toBe('present');
      expect(await ensure(pulled, [owned('ann', 'a')], 'Always')).toBe('pulled');
      expect(await ensure(name)).toBe('present');
      expect(await ensure(pulled, [], 'Never')).toBe('ErrImageNeverPull');
      await again();
      expect([await ensure(name), await ensure(pulled, [], 'Never')]).toEqual(['present', 'ErrImageNeverPull']);
      // Only a key of the map says so: the reference refuses fields that it does not know, and looks repositories up.
      expect(await written()).toEqual({
        ...{ kind: 'ImagePulledRecord', apiVersion: VERSION, lastUpdatedTime: expect.any(String), imageRef: DIGEST },
        credentialMapping: expect.objectContaining({
          'r.io/p': { kubernetesSecrets: [expect.objectContaining(byAnn)] },
          [name]: { nodePodsAccessible: true },
        }),
      });
    });

    it('stays usable also where nobody had used it before, and where the pull came after one of another repository', async () => {
      await begin(['r.io/p:1']);
      for (const name of ['r.io/private:1', 'r.io/p:2', 'r.io/p:3']) expect(await pull(name)).toBe('pulled');
      expect(await ensure('r.io/p:1', [], 'Never')).toBe('present');
      for (const name of ['r.io/p:2', 'r.io/p:3']) expect(await ensure(name, [], 'Never')).toBe('ErrImageNeverPull');
      for (const [policy, expected] of [
        ['AlwaysVerify', 'ErrImageNeverPull'],
        ['NeverVerifyAllowlistedImages', 'present'],
      ] as const) {
        await again(policy);
        expect(await ensure('r.io/p:1', [], 'Never')).toBe(expected);
      }
    });

    it('gives nobody what was pulled: not its name, its id, another tag, or another repository with its digest', async () => {
      await begin(preloaded);
      for (const name of ['r.io/private:1', 'r.io/private:2']) expect(await pull(name)).toBe('pulled');
      const others = [
        'r.io/private:1',
        'r.io/private:2',
        ...['r.io/private', 'r.io/other', 'docker.io/library/other'].map((n) => `${n}@${DIGEST}`),
      ];
      for (const name of [...others, DIGEST]) expect(await ensure(name, [], 'Never')).toBe('ErrImageNeverPull');
      expect(await ensure('r.io/private:1', [owned('ann', 'a')], 'Never')).toBe('present');
    });

    it.each(['r.io/private:1', 'tool:2'])('has to be opened once it was pulled by that name too, after %s', async (other) => {
      await begin(preloaded);
      expect(await pull(other)).toBe('pulled');
      expect(await ensure('tool:1', [owned('eve', 'e')], 'Always')).toBe('ErrImagePull');
      expect(await ensure('tool:1', [], 'Never')).toBe('present');
      expect(await ensure('tool:1', [owned('ann', 'a')], 'Always')).toBe('pulled');
      expect(await ensure('tool:1', [], 'Never')).toBe('ErrImageNeverPull');
    });

    it('is not one that pods pulled: under way, of a record that cannot be read, or as the reference names it', async () => {
      await begin(['r.io/p:1']);
      expect(await ensure('r.io/p:1', [], 'Always')).toBe('ErrImagePull');
      intend('r.io/p:1');
      expect(await ensure('r.io/p:2', [owned('ann', 'a')], 'Always')).toBe('pulled');
      expect(await ensure('r.io/p:1', [], 'Never')).toBe('ErrImageNeverPull');
      const [record = ''] = files('pulled');
      fs.put(record, 'nonsense');
      expect(await ensure('r.io/p:3', [owned('ann', 'a')], 'Always')).toBe('pulled');
      expect(await ensure('r.io/p:2', [], 'Never')).toBe('ErrImageNeverPull');
      present.set('docker.io/library/tool:1', DIGEST);
      fs.put(record, JSON.stringify({ ...(await written()), credentialMapping: { tool: { kubernetesSecrets: [byAnn] } } }));
      expect(await ensure('tool:1', [], 'Never')).toBe('ErrImageNeverPull');
      expect(await ensure('tool:1', [owned('bob', 'a')], 'Never')).toBe('present');
    });
  });

  it('forgets records of images that are gone, and knows those that are there', async () => {
    await start();
    for (const name of ['r.io/a:1', 'r.io/b:1']) expect(await ensure(name, [owned('ann', 'a')])).toBe('pulled');
    await w.stop();
    present.delete('r.io/a:1');
    await start();
    expect(await ensure('r.io/b:1', [owned('ann', 'a')])).toBe('present');
    expect(files('pulled')).toHaveLength(1);
  });

  it('asks the registry where a record cannot be read, and pulls nothing that it cannot write down', async () => {
    await start();
    expect(await ensure('r.io/a:1', [owned('ann', 'a')])).toBe('pulled');
    const [record = ''] = files('pulled');
    fs.put(record, 'nonsense');
    expect(await ensure('r.io/a:1', [owned('ann', 'a')], 'Never')).toBe('ErrImageNeverPull');
    expect(await ensure('r.io/a:1', [owned('ann', 'a')])).toBe('pulled');
    expect(await ensure('r.io/a:1', [owned('ann', 'a')])).toBe('present');
    fs.failing = (op) => (op === 'readFile' ? 'EIO' : undefined);
    expect(await ensure('r.io/a:1', [owned('ann', 'a')], 'Never')).toBe('ErrImageNeverPull');
    const before = pulls();
    fs.failing = (op, path) => (op === 'writeFile' && path.includes('/pulling/') ? 'ENOSPC' : undefined);
    expect(await ensure('r.io/new:1', [owned('ann', 'a')])).toBe('ErrImagePull');
    expect(pulls()).toBe(before);
    // Without its record the pull itself counts, and the note of it stays.
    fs.failing = (op, path) => (op === 'writeFile' && path.includes('/pulled/') ? 'ENOSPC' : undefined);
    expect(await ensure('r.io/new:1', [owned('ann', 'a')])).toBe('pulled');
    expect(files('pulling')).toHaveLength(1);
    fs.failing = () => undefined;
    expect(await ensure('r.io/new:1')).toBe('ErrImagePull');
  });

  it('keeps the note of a pull whose outcome nobody knows', async () => {
    await start();
    w.cri.answer('PullImage', ({ image }: CriRequest<'PullImage'>) => {
      present.set(image.image, 'late');
      return fail(14, 'connection lost', 'unknown');
    });
    expect(await ensure('r.io/a:1', [owned('ann', 'a')])).toBe('ErrImagePull');
    expect(files('pulling')).toHaveLength(1);
    expect(await ensure('r.io/a:1', [], 'Never')).toBe('ErrImageNeverPull');
  });

  it('records a pull after which the runtime does not tell what came', async () => {
    await start();
    let away = true;
    w.cri.answer('ImageStatus', ({ image }: CriRequest<'ImageStatus'>) =>
      away ? fail(14, 'connection lost') : { image: imageOf(`id of ${image.image}`), info: {} },
    );
    expect(await ensure('r.io/a:1', [owned('ann', 'a'), owned('bob', 'b')], 'Always')).toBe('pulled');
    expect([pulls(), files('pulling').length, files('pulled').length]).toEqual([1, 0, 1]);
    away = false;
    expect(await ensure('r.io/a:1', [], 'Never')).toBe('ErrImageNeverPull');
    expect(await ensure('r.io/a:1', [owned('ann', 'a')], 'Never')).toBe('present');
  });

  it('writes nothing secret, and for root alone', async () => {
    await start();
    await ensure('r.io/a:1', [owned('ann', 'a')]);
    const [record = ''] = files('pulled');
    const text = new TextDecoder().decode(await fs.readFile(record, { bytesMax: 1e6 }));
    expect(text).not.toMatch(/hunter2|ann/);
    expect(text).toContain(entropy.sha256Hex('{"username":"ann","password":"hunter2"}'));
    expect((await fs.stat(record)).mode).toBe(0o600);
  });
});
