/** Stand-ins for secrets in a recording of inputs. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Secrets } from '../../../src/replay/secrets.ts';

const secrets = () => new Secrets((text) => createHash('sha256').update(`key ${text}`).digest('hex'));
const PLACE = { key: '', secret: false };
const json = (value: object) => JSON.stringify(value);

describe('a stand-in', () => {
  it.each(['hunter2-and-more', 'пароль-очень', '密码密码密码', 'a b\n"quoted" \\ 0', 'AP8BgICAf3/+', 'x'.repeat(5_000)])(
    'of %j is another text of the same bytes, and the same each time',
    (secret) => {
      const s = secrets();
      const made = s.standIn(secret, 'password');
      expect(made).not.toBe(secret);
      expect(Buffer.byteLength(made)).toBe(Buffer.byteLength(secret));
      expect(s.standIn(secret, 'token')).toBe(made);
      expect(new Secrets((text) => createHash('sha256').update(`other ${text}`).digest('hex')).standIn(secret, '')).not.toBe(made);
    },
  );

  it('of base64 decodes to the stand-in of what it holds', () => {
    const s = secrets();
    const made = s.standIn(btoa('Correct-Horse-77'), 'password');
    expect(atob(made)).toBe(s.standIn('Correct-Horse-77', ''));
  });

  it('of a name and password keeps the name, and the password is known from then on', () => {
    const s = secrets();
    const made = s.standIn(btoa('puller:hunter2-and-more'), 'auth');
    expect(atob(made)).toBe(`puller:${s.standIn('hunter2-and-more', 'password')}`);
    expect(s.within('with hunter2-and-more in it')).not.toContain('hunter2');
  });

  it('of a header keeps the scheme; a section of the configuration with its name keeps all', () => {
    const s = secrets();
    const at = { key: 'authorization', secret: true };
    expect(s.text('Bearer hunter2-and-more', at)).toBe(`Bearer ${s.standIn('hunter2-and-more', '')}`);
    expect(Secrets.isSecret('authorization', { authorization: 'Bearer x' }, 'headers')).toBe(true);
    expect(Secrets.isSecret('authorization', { authorization: { mode: 'AlwaysAllow' } }, 'config')).toBe(false);
  });

  it('of credentials for registries keeps their shape', () => {
    const text = json({ auths: { 'registry.example': { username: 'me', password: 'open sesame', auth: btoa('me:open sesame') } } });
    const made = JSON.parse(secrets().standIn(text, '.dockerconfigjson')) as { auths: Record<string, Record<string, string>> };
    expect(Object.keys(made.auths)).toEqual(['registry.example']);
    expect(made.auths['registry.example']).toMatchObject({ username: 'me' });
    expect(json(made)).not.toContain('sesame');
  });
});

describe('a text', () => {
  const pod = {
    kind: 'Pod',
    metadata: { name: 'web', annotations: { last: json({ spec: { containers: [{ env: [{ name: 'A', value: 'swordfish-1' }] }] } }) } },
    spec: {
      containers: [
        {
          name: 'main',
          args: ['--password=swordfish-1'],
          env: [
            { name: 'A', value: 'swordfish-1' },
            { name: 'PORT', value: '8080' },
          ],
        },
      ],
    },
  };

  it('of a pod loses the values of its environment, wherever they stand, and keeps what is open', () => {
    const s = secrets();
    s.text(json(pod), PLACE);
    const made = s.text(json(pod), PLACE);
    expect(made).not.toContain('swordfish');
    expect(made).toContain('"value":"8080"');
    expect(JSON.parse(made)).toMatchObject({ kind: 'Pod', metadata: { name: 'web' } });
  });

  it('of a Secret loses all of its data; of a ConfigMap none', () => {
    const s = secrets();
    const secret = { kind: 'Secret', type: 'Opaque', metadata: { name: 's' }, data: { password: btoa('swordfish-2') } };
    expect(s.text(json(secret), PLACE)).not.toContain(btoa('swordfish-2'));
    expect(s.text(json({ kind: 'List', items: [{ ...secret, kind: undefined }] }), PLACE)).not.toContain(btoa('swordfish-2'));
    const map = json({ kind: 'ConfigMap', data: { colour: 'blue and green' } });
    expect(s.text(map, PLACE)).toBe(map);
  });

  it('loses tokens and private keys that nobody announced', () => {
    const s = secrets();
    const token = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJub2RlIn0.c2lnbmF0dXJl';
    expect(s.text(`Bearer ${token}`, PLACE)).not.toContain(token);
    const key = '-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----\n';
    expect(s.text(key, PLACE)).not.toContain('MIGHAgEAMBMG');
  });

  it('with protocols of a WebSocket loses the token among them alone', () => {
    const protocols = 'v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.c2VjcmV0LXRva2Vu, v4.channel.k8s.io';
    const made = secrets().text(protocols, { key: 'sec-websocket-protocol', secret: false });
    expect(made).toMatch(/^v5\.channel\.k8s\.io, base64url\.bearer\.authorization\.k8s\.io\.[\w-]{16}, v4\.channel\.k8s\.io$/);
    expect(made).not.toContain('c2VjcmV0LXRva2Vu');
  });

  it('is looked through in time that grows with its length alone', () => {
    const s = secrets();
    for (let i = 0; i < 3_000; i++) s.standIn(`secret-number-${i}`, 'password');
    const began = performance.now();
    for (let i = 0; i < 20; i++) s.text('{'.repeat(100_000), PLACE);
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  it('is looked through soon after each new secret, and one that begins like another is told from it', () => {
    const s = secrets();
    const known = Array.from({ length: 1_500 }, (_, i) => `a-long-beginning-${i}-`.padEnd(900, 'x'));
    const began = performance.now();
    for (const secret of known)
      expect(s.within(`with ${s.standIn(secret, 'password') === '' ? '' : secret} in it`)).not.toContain('beginning');
    expect(performance.now() - began).toBeLessThan(5_000);
    s.standIn('a-long-beginning', 'password');
    expect(s.within('a-long-beginning')).not.toContain('beginning');
    expect(s.within('a-long-b, a-long-beach')).toBe('a-long-b, a-long-beach');
  });

  it('that is nested deeper than the stack is replaced as a whole', () => {
    const s = secrets();
    const text = `{"env":${'['.repeat(100_000)}"swordfish-3"${']'.repeat(100_000)}}`;
    for (const made of [s.within(text), s.standIn(text, 'token')]) {
      expect(made).toHaveLength(text.length);
      expect(made.includes('swordfish')).toBe(false);
    }
    expect(Secrets.normal(text) === text).toBe(true);
  });

  it('is looked through as soon where all of it may begin a token, or a secret', () => {
    const s = secrets();
    const began = performance.now();
    expect(s.within('eyJ'.repeat(80_000))).toHaveLength(240_000);
    for (let i = 0; i < 1_900; i++) s.standIn(`${'a'.repeat(300)}${i}`, 'password');
    const text = `${'a'.repeat(60_000)}1899`;
    expect(s.within(text)).toHaveLength(text.length);
    expect(s.within(text).endsWith('1899')).toBe(false);
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  it.each(['', 'a.', 'x_', 'a.b.c.', 'eyJ0.', '.', 'eyJeyJ'])('after %j a token is found', (before) => {
    const token = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJub2RlIn0.c2lnbmF0dXJl';
    const made = secrets().within(`${before}${token}.rest`);
    expect(made).not.toContain('hbGciOiJSUzI1NiJ9');
    expect(made).not.toContain('zdWIiOiJub2RlIn0');
    expect(made.endsWith('.rest')).toBe(true);
  });
});
