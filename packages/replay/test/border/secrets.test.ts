/** Stand-ins for secrets in a recording of inputs. */
import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { OWN_ENDS } from '@actorlet/kubelet/machines/pod/ends/ownEnds.ts';
import type { RuntimeContainer } from '@actorlet/kubelet/machines/pod/runtime/seen.ts';
import { chooseTerminationMessage, headBytes } from '@actorlet/kubelet/machines/pod/runtime/terminationMessage.ts';
import { describe, expect, test } from 'vitest';
import { seeded } from '../../src/border.ts';
import type { Door } from '../../src/secrets/doors.ts';
import { READ_QUERIES } from '../../src/secrets/requests.ts';
import { Secrets } from '../../src/secrets/secrets.ts';
import { revive } from '../../src/values.ts';
import { planted } from './planted.ts';

const hashed = (key: string) => (text: string) => createHash('sha256').update(`${key} ${text}`).digest('hex');
const secrets = (more: object = {}) => new Secrets({ hash: hashed('key'), ...more });
const it = test.extend('s', () => secrets());
const by = (door: Door, key = '') => ({ key, door });
const OPEN = by('open');
const json = (value: object) => JSON.stringify(value);
const lossy = new TextDecoder('utf-8', { ignoreBOM: true });

const NOTHING = { fn: () => () => undefined, promise: () => undefined, signal: () => new AbortController().signal };

/** What a container says at its end: in short and in long, in pieces, in letters of several bytes, and cut where the node reads a tail. */
function lastWords(seed: number): { container: RuntimeContainer; file: Uint8Array; log: Uint8Array; containers: number } {
  const random = seeded(seed);
  const below = (n: number) => Math.floor(random() * n);
  const pick = <T>(of: readonly [T, ...T[]]): T => of[below(of.length)] ?? of[0];
  const words = (count: number): string =>
    Array.from({ length: count }, () =>
      pick(['failed', 'error:', 'tok-7Q', 'ключ', '密码', '🔑', 'a: b', 'x', ' ', ':', 'passphrase']),
    ).join(pick([' ', '']));
  const text = (lines: number, wide: number) => Array.from({ length: lines }, () => words(1 + below(wide))).join('\n') + pick(['', '\n']);
  const head = (tag: string) => `2026-01-01T00:00:00.${String(below(1e9)).padStart(9, '0')}Z ${pick(['stdout', 'stderr'])} ${tag} `;
  const log = Array.from({ length: below(200) }, () => `${head(pick(['F', 'F', 'F', 'P']))}${words(1 + below(pick([6, 400])))}\n`).join('');
  const tail = (whole: string, bytes: number) => new TextEncoder().encode(whole).slice(-bytes);
  const container = {
    ...{ state: 'exited', exitCode: 1, reason: 'Error', terminationMessagePath: '/dev/termination-log' },
    ...{ terminationMessagePolicy: 'FallbackToLogsOnError', message: pick(['', '', words(3), text(3, 4), words(40)]) },
  } as unknown as RuntimeContainer;
  return {
    ...{ container, containers: pick([1, 3, 7, 12]) },
    file: tail(pick(['', '', text(1 + below(4), 5), text(60, 30)]), 4_096),
    log: tail(log, 2_048 + 80 * 64),
  };
}

describe('a stand-in', () => {
  it.each(planted().map(({ kind, bytes }) => [`${kind}, ${bytes.length} bytes`, bytes] as const))(
    'of %s is as long, never the same, and always the same',
    (_, bytes) => {
      const s = secrets();
      const madeOf = (of: Secrets) => of.bytes(bytes, by('secret')) as { $: string; v: string };
      const made = madeOf(s);
      const like = made.$ === 'x' ? Buffer.from(made.v) : Buffer.from(made.v, 'base64');
      expect(like).toHaveLength(bytes.length);
      expect(Buffer.compare(like, bytes)).not.toBe(0);
      expect(madeOf(s)).toEqual(made);
      // What the tree makes a text of is as long, too.
      const [text, standIn] = [lossy.decode(bytes), lossy.decode(like)];
      expect([standIn.length, Buffer.byteLength(standIn)]).toEqual([text.length, Buffer.byteLength(text)]);
      expect(s.text(Buffer.from(bytes).toString('base64'), by('base64'))).toBe(like.toString('base64'));
    },
  );

  it('is no other value’s, however short both are', ({ s }) => {
    const values = [...'abcdefghijklmnopqrstuvwxyz0123456789', 'aa', 'ab', 'ba', 'true', 'tru', '!', '"', '\n', 'é', 'ü'];
    expect(new Set(values.map((value) => s.standIn(value))).size).toBe(values.length);
  });

  it('of another recording is another one', () => {
    const [a, b] = [hashed('key'), hashed('other')].map((hash) => new Secrets({ hash }).standIn('hunter2-and-more'));
    expect(a).not.toBe(b);
  });

  it('of base64 decodes to the stand-in of what it holds, of names and passwords to both', ({ s }) => {
    expect(atob(s.text(btoa('Correct-Horse-77'), by('base64')))).toBe(s.standIn('Correct-Horse-77'));
    expect(atob(s.text(btoa('puller:hunter2'), by('auth', 'auth')))).toBe(`${s.standIn('puller')}:${s.standIn('hunter2')}`);
  });

  it('of words keeps what the tree expands, so that it is as long after that', ({ s }) => {
    expect(s.text('--a=$(A)$$(A)b', by('words'))).toBe(`${s.standIn('--a=')}$(A)$$${s.standIn('(A)b')}`);
    expect(s.text('$$$', by('words'))).not.toBe('$$$');
  });

  it('of a header keeps the scheme', ({ s }) => {
    expect(s.text('Bearer hunter2', by('token', 'authorization'))).toBe(`Bearer ${s.standIn('hunter2')}`);
    expect(s.text(`Basic ${btoa('me:pass')}`, by('token'))).toBe(`Basic ${btoa(`${s.standIn('me')}:${s.standIn('pass')}`)}`);
    expect(s.door('authorization', { authorization: 'Bearer x' }, by('open', 'headers'))).toBe('token');
    expect(s.door('authorization', { authorization: { mode: 'AlwaysAllow' } }, by('open', 'config'))).toBe('open');
  });

  it('in a message that is an end, too: another length is not compared', ({ s }) => {
    s.text('{"user":"me","password":"hunter2"}', by('words'));
    const message = String.raw`exec: "{\"user\":\"me\",\"password\":\"hunter2\"}": not found`;
    const told = s.text(message, by('free'));
    expect([told.length === message.length, s.text(message, by('lines')).length === message.length]).toEqual([false, true]);
    expect(s.masked({ message }).json).toEqual({ message: '§' });
  });

  it('of a line of a log is the one that it has in a last message', ({ s }) => {
    const made = s.text('2026-01-01T00:00:00Z stdout F the first line\n2026-01-01T00:00:01Z stdout F and it says hunter2\n', by('log'));
    const [first = '', second = ''] = made.split('\n').map((line) => line.split(' F ')[1] ?? '');
    expect(made).not.toMatch(/first|hunter2/);
    expect(s.text('the first line\nand it says hunter2\n', by('lines'))).toBe(`${first}\n${second}\n`);
  });

  // What the tree joins and cuts comes back from the API server, or comes from there first.
  it.each(Array.from({ length: 40 }, (_, i) => i))('of a message of an end is what the tree makes of its parts (%i)', async (seed) => {
    const { container, file, log, containers } = lastWords(seed);
    const told = async (message: string, said: { file: Uint8Array; log: Uint8Array }) =>
      headBytes(
        await chooseTerminationMessage({ ...container, message }, new TextDecoder().decode(said.file), async () =>
          new TextDecoder().decode(said.log),
        ),
        Math.floor(12_288 / containers),
      );
    const real = await told(container.message, { file, log });
    for (const isFirst of [true, false]) {
      const s = secrets();
      const echo = (): string =>
        JSON.parse(s.text(json({ lastState: { terminated: { exitCode: 1, message: real } } }), OPEN)).lastState.terminated.message;
      const before = isFirst ? echo() : null;
      const status = json({ status: { id: 'c1', exitCode: 1, imageRef: 'sha256:1', message: container.message } });
      const message = JSON.parse(s.text(status, OPEN)).status.message as string;
      const bytesOf = (bytes: Uint8Array, door: Door): Uint8Array => revive(s.bytes(bytes, by(door)), NOTHING) as Uint8Array;
      const made = await told(message, { file: bytesOf(file, 'lines'), log: bytesOf(log, 'log') });
      expect([before ?? made, echo()]).toEqual([made, made]);
      if (/[a-z]{9}/.test(real)) expect(made).not.toBe(real);
    }
  });

  it('of credentials stays JSON, with escapes in it', ({ s }) => {
    const escaped = JSON.stringify({ auths: { r: { auth: btoa('me:a\\b"c'), username: 'a\\b' } } });
    expect(() => JSON.parse(atob(s.text(btoa(escaped), by('credentials64'))))).not.toThrow();
  });

  it('of credentials for registries keeps their shape, and texts that are no JSON stay none', () => {
    const text = JSON.stringify(
      { auths: { 'registry.example': { username: 'me', password: 'open sesame', auth: btoa('me:open sesame') } } },
      null,
      2,
    );
    const made = secrets().text(btoa(text), by('credentials64'));
    const { auths } = JSON.parse(atob(made)) as { auths: Record<string, Record<string, string>> };
    expect(Object.keys(auths)).toEqual(['registry.example']);
    expect(json(auths)).not.toMatch(/"me"|sesame/);
    expect(atob(made)).toHaveLength(text.length);
    expect(() => JSON.parse(secrets().text('{"auths": hunter2', by('credentials')))).toThrow();
  });

  it.each(['secret', 'words', 'credentials'] as const)(
    'of credentials keeps their shape where they come in by the door %s first',
    (first) => {
      const s = secrets();
      for (const config of [
        { auths: { 'registry.example': { auth: btoa('me:open sesame') } } },
        { r: { username: 'me', password: 'p "q\\' } },
      ]) {
        const text = JSON.stringify(config);
        const made = s.text(text, by(first));
        expect(Object.keys(JSON.parse(made))).toEqual(Object.keys(config));
        expect(atob(s.text(btoa(text), by('credentials64')))).toBe(made);
        expect(made).not.toMatch(/open sesame|p \\"q/);
      }
      expect(s.text('{"pin":4711,"auth":true}', by(first === 'credentials' ? 'secret' : first))).not.toMatch(/4711|true/);
    },
  );

  it('of a web token tells the same times', () => {
    const claims = { exp: 1_900_000_000, sub: 'system:serviceaccount:team:web', aud: ['api'] };
    const part = (value: object) => Buffer.from(json(value)).toString('base64url');
    const token = `${part({ alg: 'RS256', kid: 'k1' })}.${part(claims)}.c2lnbmF0dXJlLW9mLWl0`;
    const made = secrets().text(token, by('token'));
    const payload = Buffer.from(made.split('.')[1] ?? '', 'base64url').toString();
    expect(JSON.parse(payload)).toMatchObject({ exp: claims.exp });
    expect(made).toHaveLength(token.length);
    expect(payload + made).not.toMatch(/serviceaccount|c2lnbmF0dXJl/);
  });

  it.each([
    ['http://me:secret@host:80/path?token=secret&x=1#part', 'http://', '@host:80/path?token='],
    ['https://registry.example/v2/?service=secret', 'https://registry.example/v2/?service=', ''],
    ['Get "http://10.0.0.1:80/healthz?token=secret": refused', 'Get "http://10.0.0.1:80/healthz?token=', '": refused'],
  ])('of a URL hides user and query: %s', (url, ...stays) => {
    const made = secrets().text(url, OPEN);
    expect(made).toHaveLength(url.length);
    expect(made).not.toMatch(/secret|\bme:/);
    for (const part of stays) expect(made).toContain(part);
  });

  it.each([
    ['//me:secret@host/x?t=secret', '@host/x?t='],
    ['/x?t=secret', '/x?t='],
    ['http://me:secret@host/', 'http://', '@host/'],
  ])('of a part of a URL hides the same: %s', (url, ...stays) => {
    const made = secrets().text(url, by('link'));
    expect(made).toHaveLength(url.length);
    expect(made).not.toMatch(/secret|\bme:/);
    for (const part of stays) expect(made).toContain(part);
  });

  it('of a command in one text is that of each of its words, which its output may repeat', ({ s }) => {
    expect(s.door('cmd', new URLSearchParams({ cmd: 'x' }), OPEN)).toBe('line');
    const [echo, , word = ''] = s.text('echo  hunter2-word', by('line')).split(' ');
    expect([echo, s.free('hunter2-word\n')]).toEqual([s.standIn('echo'), `${word}\n`]);
  });

  it('of a bundle of a death leaves its first line, and is JSON however much was read', ({ s }) => {
    expect(s.doorOfAnswer('fs.openRead', ['/r/actorlet/deaths/20260101-000000-abcdef.json'])).toBe('bundle');
    const rest = JSON.stringify({
      log: { lines: [{ text: 'said "hunter2"\\ ключ' }], note: '' },
      end: { message: 'hunter2\n', exitCode: 3 },
    });
    const head = '{"id":"a","title":"exited"}\n';
    const made = s.text(head + rest, by('bundle'));
    expect(made.startsWith(head)).toBe(true);
    expect(JSON.parse(made.slice(head.length))).toMatchObject({ log: { lines: [{ text: expect.any(String) }] }, end: { exitCode: 3 } });
    for (let to = 0; to <= rest.length; to++) expect(s.text(head + rest.slice(0, to), by('bundle'))).not.toMatch(/hunt|ключ/);
    for (const damaged of ['{"m":"hunter2\\x"}', '{"m":"hunter2\n"}']) expect(s.text(head + damaged, by('bundle'))).not.toContain('hunt');
  });

  it('of the folder of a sub-path is the same in a mount and in a table of mounts', ({ s }) => {
    const [root, path] = ['/r/pods/u/volumes/kubernetes.io~empty-dir/e/x-hunter2/logs', '/r/pods/u/volume-subpaths/e/main/0'];
    const other = '28 1 0:5 / /r/pods/u/volumes/kubernetes.io~csi/c/mount rw - ext4 /dev/a rw';
    const made = s.text(root, by(s.door('root', { path, root }, OPEN)));
    expect(made).toMatch(/^\/r\/pods\/u\/volumes\/kubernetes\.io~empty-dir\/e\/[^/]{9}\/[^/]{4}$/);
    expect(made).not.toMatch(/hunter2|logs/);
    expect(s.doorOfAnswer('fs.readFile', ['/proc/self/mountinfo'])).toBe('folder');
    const table = (at: string) => `${other}\n27 1 0:5 ${at} ${path} rw - ext4 /dev/a rw\n`;
    expect(s.text(table(root), by('folder'))).toBe(table(made));
    expect(s.door('root', { path: '/r/pods/u/volumes/kubernetes.io~local-volume/v', root }, OPEN)).toBe('open');
  });

  it('of options of a mount hides who asks, and is known in a list and in one text', ({ s }) => {
    const made = s.text('password=abc', by('option'));
    expect(made).toMatch(/^password=(?!abc)[a-z]{3}$/);
    expect(s.text('hard,user=me,password=abc,nfsvers=4.2', by('option'))).toBe(`hard,user=${s.standIn('me')},${made},nfsvers=4.2`);
    expect(s.text('nfsvers=4.2', by('option'))).toBe('nfsvers=4.2');
  });

  it('is not made of what the tree reads of a query, and is of all else', () => {
    const read = globSync('{src/actors,src/machines/edge,packages/{shown,deaths,faults,observe}/src}/**/*.ts').flatMap((file) => {
      const text = readFileSync(file, 'utf8');
      return [...text.matchAll(/\bquery\.(?:get|has|getAll)\('(\w+)'\)/g)].map(([, name = '']) => name);
    });
    expect(read.length).toBeGreaterThan(20);
    expect(read.filter((name) => !READ_QUERIES.has(name))).toEqual([]);
    const query = new URLSearchParams({ tailLines: '5', limitBytes: 'hunter2', sinceTime: '2026-01-02T03:04:05.6Z', follow: 'true' });
    const door = (key: string) => secrets().door(key, query, by('open', 'query'));
    expect(['tailLines', 'sinceTime', 'follow', 'pod'].map(door)).toEqual(['open', 'open', 'open', 'open']);
    expect(['limitBytes', 'sig', 'access_token', 'cmd'].map(door)).toEqual(['secret', 'secret', 'secret', 'line']);
  });

  it('is not made of paths of pages and names in them, and of all else of a path', ({ s }) => {
    const files = globSync('{src/actors/edge,packages/{shown,deaths,faults}/src}/**/*.ts').map((file) => readFileSync(file, 'utf8'));
    const served = files.flatMap((text) => [...text.matchAll(/'\/([a-z]+)': |table\.set\(\s*'(\w+)'|\['(\w+)', (?:\(?req|streams|with)/g)]);
    const names = served.map((found) => found.slice(1).find((name) => name !== undefined) ?? '');
    expect(names).toEqual(expect.arrayContaining(['containerLogs', 'pods', 'inject', 'death', 'checkpoint', 'exec', 'record']));
    expect(names.filter((name) => s.text(`/${name}/a`, by('address')) !== `/${name}/a`)).toEqual([]);
    const open = '/containerLogs/default/web-1.a_b/main';
    expect([open, '/logs/a b.log', '/', ''].map((path) => s.text(path, by('address')))).toEqual([open, '/logs/a b.log', '/', '']);
    expect(s.text('/hunter2/default', by('address'))).toMatch(/^\/(?!hunter2)[a-z]{6}\d\/(?!default)[a-z]{7}$/);
    expect(s.text('/run/default/p@ss word/main', by('address'))).toMatch(/^\/run\/default\/(?!p@ss)[a-z].[a-z]{2} [a-z]{4}\/main$/);
    const asked = (path: string, text: string) =>
      s.door('body', { method: 'POST', path, query: null, headers: {}, body: Buffer.from(text) }, OPEN);
    expect([asked('/inject', 'faults:\n- kind: x\n'), asked('/debug/flags/v', '4'), asked('/debug/flags/v', 'hunter2')]).toEqual([
      ...['free', 'free', 'secret'],
    ]);
  });

  it('stays hidden in what a runtime says of an image, and a name stays where a variable has it for its value', ({ s }) => {
    const image = 'me:hushhush@registry.example/x:1';
    for (const [key, value] of Object.entries({ name: 'checkout', image })) {
      const owner = { [key]: value };
      s.text(value, by(s.door(key, owner, by('open', 'containers')), key));
    }
    s.standIn('checkout');
    s.standIn('hushhush');
    expect(s.free(`pull "${image}" for checkout`)).toBe(`pull "me:${s.standIn('hushhush')}@registry.example/x:1" for checkout`);
    expect(s.free('xcheckoutx')).not.toContain('checkout');
  });

  it('of an image hides what stands before it, and no digest', ({ s }) => {
    expect(s.text('me:secret@registry.example/x:1', by('image'))).toBe(`${s.standIn('me')}:${s.standIn('secret')}@registry.example/x:1`);
    expect(s.text(`nginx:1.25@sha256:${'0'.repeat(64)}`, by('image'))).toBe(`nginx:1.25@sha256:${'0'.repeat(64)}`);
  });
});

describe('a text', () => {
  const container = {
    ...{ name: 'main', image: 'busybox:1', command: ['sh'], args: ['--password=qqq1'], env: [{ name: 'A', value: 'qqq2' }] },
    livenessProbe: {
      httpGet: { path: '/?t=qqq3', port: 80, httpHeaders: [{ name: 'X-Key', value: 'qqq4' }] },
      exec: { command: ['qqq5'] },
    },
  };
  const pod = {
    kind: 'Pod',
    metadata: {
      name: 'web',
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': json({ spec: { containers: [container] } }) },
    },
    spec: { containers: [container] },
    status: { containerStatuses: [{ state: { terminated: { message: 'qqq6', reason: 'Error' } } }] },
  };

  it('of a pod loses what stands at a door, also where it is applied from, and keeps all else', () => {
    const made = secrets().text(json(pod), OPEN);
    expect(made).not.toMatch(/qqq|"sh"/);
    expect(JSON.parse(made)).toMatchObject({
      kind: 'Pod',
      metadata: { name: 'web' },
      spec: { containers: [{ name: 'main', image: 'busybox:1' }] },
    });
    expect(made).toHaveLength(json(pod).length);
  });

  it.each(Object.values(OWN_ENDS))(
    'of the node itself about the end of a container stays, as it comes back from the API server: %s',
    (own) => {
      const status = (message: string) =>
        json({ status: { containerStatuses: [{ lastState: { terminated: { exitCode: 137, message } } }] } });
      expect(secrets().text(status(own), OPEN)).toBe(status(own));
      expect(secrets().text(status(`${own} qqq`), OPEN)).not.toMatch(/qqq/);
    },
  );

  it('of a runtime about the end of a container has the stand-in that it has in the status of the pod', ({ s }) => {
    const message = 'no such file: qqq';
    const seen = JSON.parse(s.text(json({ status: { id: 'c1', exitCode: 128, imageRef: 'sha256:1', message } }), OPEN));
    const shown = JSON.parse(s.text(json({ lastState: { terminated: { exitCode: 128, message } } }), OPEN));
    expect(seen.status.message).not.toContain('qqq');
    expect(seen.status.message).toBe(shown.lastState.terminated.message);
    // The tree decides by this one.
    const brokenOff = { state: 'CONTAINER_EXITED', reason: 'StartError', startedAt: '0', message: 'context canceled' };
    const status = json({ status: { exitCode: 128, imageRef: 'sha256:1', ...brokenOff } });
    expect(s.text(status, OPEN)).toBe(status);
  });

  it('of a Secret loses all of its data; of a ConfigMap none', ({ s }) => {
    const secret = { kind: 'Secret', type: 'Opaque', metadata: { name: 's' }, data: { password: btoa('x') } };
    expect(s.text(json(secret), OPEN)).not.toContain(btoa('x'));
    expect(s.text(json({ kind: 'List', items: [{ ...secret, kind: undefined }] }), OPEN)).not.toContain(btoa('x'));
    const bare = { metadata: { name: 's' }, data: { password: btoa('x') }, stringData: { other: 'qqq' } };
    expect(s.text(json({ kind: 'SecretList', items: [bare] }), OPEN)).not.toMatch(new RegExp(`${btoa('x')}|qqq`));
    const map = json({ kind: 'ConfigMap', data: { colour: 'blue and green' } });
    expect(s.text(map, OPEN)).toBe(map);
    expect(secrets({ isPrivate: true }).text(map, OPEN)).not.toContain('blue');
  });

  it('of a variable that names a folder of a volume stays', () => {
    const of = (volumeMounts: object[]) =>
      secrets().text(json({ containers: [{ env: [{ name: 'A', value: 'logs' }], volumeMounts }] }), OPEN);
    expect(of([{ subPathExpr: 'x/$(A)' }])).toContain('"logs"');
    expect(of([{ subPath: 'x' }])).not.toContain('"logs"');
  });

  it('loses tokens and private keys that nobody announced', ({ s }) => {
    const token = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJub2RlIn0.c2lnbmF0dXJl';
    expect(s.text(`Bearer ${token}`, OPEN)).not.toContain(token);
    const key = '-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----\n';
    expect(s.text(key, OPEN)).not.toContain('MIGHAgEAMBMG');
  });

  it('that repeats a header loses its token, and no word', ({ s }) => {
    const made = s.text(
      'denied: Authorization: Bearer sha-4-xyz, then bearer a1b2c3d4e5==; Basic dXNlcjpwYXNz; Basic authentication failed',
      by('free'),
    );
    expect(made).toMatch(/^denied: Authorization: Bearer \S{9}, then bearer \S{12}; Basic \S{12}; Basic authentication failed$/);
    expect(made).not.toContain('dXNlcjpwYXNz');
    expect(made).not.toMatch(/sha-4-xyz|a1b2c3d4/);
    expect(s.text(made, by('free'))).toHaveLength(made.length);
  });

  it('with protocols of a WebSocket loses the token among them alone', () => {
    const protocols = 'v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.c2VjcmV0LXRva2Vu, v4.channel.k8s.io';
    const made = secrets().text(protocols, OPEN);
    expect(made).toMatch(/^v5\.channel\.k8s\.io, base64url\.bearer\.authorization\.k8s\.io\.[\w-]{16}, v4\.channel\.k8s\.io$/);
    expect(made).not.toContain('c2VjcmV0LXRva2Vu');
  });

  it('of a program loses what is known, however it is written, and is the same each time', ({ s }) => {
    const secret = 'p "w"\n\\1 ü';
    const first = s.text('it says secret-2', by('free'));
    s.standIn(secret);
    s.standIn('secret-2');
    const writings = [
      secret,
      json([secret]),
      json([json([secret])]),
      encodeURIComponent(secret),
      btoa(unescape(encodeURIComponent(secret))),
    ];
    writings.push(Buffer.from(secret).toString('hex'), Buffer.from(secret).toString('base64url'));
    for (const written of writings) expect(s.text(`exec: ${written}: not found`, by('free'))).not.toContain(written);
    expect(s.text('it says secret-2', by('free'))).toBe(first);
    // Where a program cuts its text, what stands before is the first part of one.
    for (const written of writings)
      for (const cut of ['...', '…', '... (9000 characters)']) {
        const torn = `exec: ${written.slice(0, -2)}${cut}`;
        expect([s.text(torn, by('free')).includes(written.slice(0, -2)), s.hides(torn)]).toEqual([false, true]);
      }
    expect(s.text('a pod in secre...', by('free'))).toBe('a pod in secre...');
  });

  it('is looked through in time that grows with its length alone', ({ s }) => {
    for (let i = 0; i < 3_000; i++) s.standIn(`secret-number-${i}`);
    const began = process.cpuUsage();
    for (let i = 0; i < 20; i++) s.free(`${i}${'{'.repeat(100_000)}`);
    // What a name of a URL, a name of an option and the scheme of a header may begin with.
    for (const part of ['a.', 'key', 'Basic ', ',', ' ']) {
      const text = `${part.repeat(300_000 / part.length)} ://`;
      for (const door of ['free', 'option'] as const) expect(s.text(text, by(door))).toHaveLength(text.length);
    }
    expect(process.cpuUsage(began).user / 1_000).toBeLessThan(5_000);
  });

  it('is looked through soon after each new secret, and one that begins like another is told from it', ({ s }) => {
    const known = Array.from({ length: 1_500 }, (_, i) => `a-long-beginning-${i}-`.padEnd(900, 'x'));
    const began = process.cpuUsage();
    for (const secret of known) expect(s.free(`with ${s.standIn(secret) === '' ? '' : secret} in it`)).not.toContain('beginning');
    expect(process.cpuUsage(began).user / 1_000).toBeLessThan(5_000);
    s.standIn('a-long-beginning');
    expect(s.free('a-long-beginning')).not.toContain('beginning');
    expect(s.free('a-long-b, a-long-beach')).toBe('a-long-b, a-long-beach');
  });

  it('that is nested deeper than the stack is replaced as a whole', ({ s }) => {
    const text = `{"env":${'['.repeat(100_000)}"swordfish-3"${']'.repeat(100_000)}}`;
    for (const made of [s.text(text, OPEN), s.standIn(text)]) {
      expect(made).toHaveLength(text.length);
      expect(made.includes('swordfish')).toBe(false);
    }
  });

  it('is looked through as soon where all of it may begin a token, or a secret', ({ s }) => {
    const began = process.cpuUsage();
    expect(s.free('eyJ'.repeat(80_000))).toHaveLength(240_000);
    for (let i = 0; i < 1_900; i++) s.standIn(`${'a'.repeat(300)}${i}`);
    const text = `${'a'.repeat(60_000)}1899`;
    expect(s.free(text)).toHaveLength(text.length);
    expect(s.free(text).endsWith('1899')).toBe(false);
    expect(process.cpuUsage(began).user / 1_000).toBeLessThan(5_000);
  });

  it.each(['', 'a.', 'x_', 'a.b.c.', 'eyJ0.', '.', 'eyJeyJ'])('after %j a token is found', (before) => {
    const token = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJub2RlIn0.c2lnbmF0dXJl';
    const made = secrets().text(`${before}${token}.rest`, OPEN);
    expect(made).not.toContain('zdWIiOiJub2RlIn0');
    expect(made).not.toContain('c2lnbmF0dXJl');
    expect(made.endsWith('.rest')).toBe(true);
  });
});
