import { execFile } from 'node:child_process';
import { appendFile, mkdir, rename, rm, symlink, truncate, unlink, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fileSourceSpec } from '../../../src/actors/pods/sources/file.ts';
import { createClock, createEntropy } from '../../../src/boot/dependencies/clock.ts';
import { createDocuments } from '../../../src/boot/dependencies/documents/documents.ts';
import { createHostFs } from '../../../src/boot/dependencies/fs.ts';
import { errorsSent, lastSet, names, type Running, run, sets, tempDir, until, wheres, yaml } from './harness.ts';

const PERIOD_MS = 20_000;
let t: Awaited<ReturnType<typeof tempDir>>;
let r: Running | null = null;

beforeEach(async () => {
  t = await tempDir();
});
afterEach(async () => {
  r?.stop();
  r = null;
  await t.remove();
});

function start(path = t.dir, overrides: Parameters<typeof run>[1] = {}): Running {
  r = run(fileSourceSpec({ path, checkFrequencyMs: PERIOD_MS, nodeName: 'n1', preventApiReferences: true }), overrides);
  return r;
}
const idle = (s: Running) => s.state().includes('"idle"');
async function listed(path = t.dir): Promise<Running> {
  const s = start(path);
  await until(s, () => sets(s).length > 0 && idle(s));
  return s;
}
const it = test.extend('s', () => listed());
/** One periodic listing, with the hints of earlier changes already handled. */
async function nextListing(s: Running): Promise<void> {
  const before = sets(s).length;
  await until(s, () => idle(s));
  await s.ports.advance(PERIOD_MS);
  await until(s, () => sets(s).length > before && idle(s), { what: 'a listing' });
}

describe('the first listing', () => {
  it('posts an empty set for an empty directory, so that the source counts as seen', async ({ s }) => {
    expect(sets(s)).toHaveLength(1);
    expect(lastSet(s)).toMatchObject({ source: 'file', pods: [], errors: [] });
  });

  it('takes files of any name but dot files, and does not enter directories', async () => {
    await Promise.all(['a.yaml', 'b.txt', 'c', 'd.yaml~', '.hidden.yaml'].map((n, i) => writeFile(t.file(n), yaml(`p${i}`))));
    await mkdir(t.file('sub'));
    await writeFile(t.file('sub/x.yaml'), yaml('inside'));
    const s = await listed();
    expect(names(s)).toEqual(['p0-n1', 'p1-n1', 'p2-n1', 'p3-n1']);
    expect(lastSet(s).errors).toEqual([]);
    expect(s.ports.lines.filter((l) => l.level === 'warn').map((l) => l.msg)).toEqual([
      expect.stringContaining('/sub is left out: a directory is not entered'),
    ]);
  });

  it('shows which file holds which pod', async () => {
    await writeFile(t.file('a.yaml'), yaml('p0'));
    await writeFile(t.file('b.yaml'), 'kind: [');
    const s = await listed();
    expect([...(s.views.get('manifests') as ReadonlyMap<string, object>)]).toEqual([
      [t.file('a.yaml'), { namespace: 'default', name: 'p0-n1' }],
    ]);
  });

  it('gives one manifest in two files two pods with two UIDs, and says which file loses the name', async () => {
    await Promise.all([writeFile(t.file('a.yaml'), yaml('same')), writeFile(t.file('b.yaml'), yaml('same'))]);
    const s = await listed();
    expect(new Set(lastSet(s).pods.map((p) => p.metadata.uid)).size).toBe(2);
    expect(wheres(s)).toEqual([`b.yaml: pod default/same-n1 is already defined by ${t.file('a.yaml')}; this file is ignored`]);
  });

  it('reads JSON too', async () => {
    await writeFile(
      t.file('a.json'),
      JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'j' }, spec: { containers: [{ name: 'c', image: 'i:1' }] } }),
    );
    expect(names(await listed())).toEqual(['j-n1']);
  });

  it('follows symbolic links, and names one that leads nowhere', async () => {
    await mkdir(t.file('..v1'));
    await writeFile(t.file('..v1/real'), yaml('linked'));
    await symlink('..v1', t.file('..data'));
    await symlink('..data/real', t.file('a.yaml'));
    await symlink('nowhere', t.file('b.yaml'));
    const s = await listed();
    expect(names(s)).toEqual(['linked-n1']);
    expect(wheres(s)).toEqual(['b.yaml: a symbolic link to nothing']);
  });

  it('does not read a FIFO', async () => {
    await promisify(execFile)('mkfifo', [t.file('pipe')]);
    await writeFile(t.file('a.yaml'), yaml('a'));
    expect(names(await listed())).toEqual(['a-n1']);
  });

  it('tells every bad file apart and keeps the good ones', async () => {
    await writeFile(t.file('good.yaml'), yaml('good'));
    await writeFile(t.file('1.yaml'), 'kind: Pod\napiVersion: v1\n  bad: indent\n');
    await writeFile(t.file('2.yaml'), '');
    await writeFile(t.file('3.yaml'), `${yaml('a')}---\n${yaml('b')}`);
    await writeFile(t.file('4.yaml'), 'apiVersion: apps/v1\nkind: Deployment\n');
    await writeFile(t.file('5.yaml'), yaml('UPPER'));
    await writeFile(t.file('6.yaml'), '');
    await truncate(t.file('6.yaml'), 11 * 1024 * 1024);
    await writeFile(t.file('7.yaml'), Buffer.from([0xff, 0xfe, 0x00]));
    await writeFile(
      t.file('8.yaml'),
      'a: &a [x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n',
    );
    const s = await listed();
    expect(names(s)).toEqual(['a-n1', 'good-n1']);
    expect(wheres(s)).toEqual([
      expect.stringMatching(/^1.yaml: line 2, column \d+: /),
      '2.yaml: the document is empty',
      expect.stringMatching(/^3.yaml: line \d+: another document begins here; only the first one of a file counts/),
      expect.stringMatching(/^4.yaml: apiVersion apps\/v1, kind Deployment: not supported here/),
      expect.stringMatching(/^5.yaml: metadata.name: "UPPER-n1" must be lower-case/),
      '6.yaml: larger than the limit of 10485760 bytes (10 MiB)',
      '7.yaml: not UTF-8 text',
      expect.stringMatching(/^8.yaml: kind: required/),
    ]);
  });
});

describe('changes', () => {
  it('sees a manifest renamed into place, changed, and removed, and says why', async ({ s }) => {
    await writeFile(t.file('.tmp'), yaml('web'));
    await rename(t.file('.tmp'), t.file('web.yaml'));
    await until(s, () => names(s)[0] === 'web-n1');
    expect(lastSet(s).causes?.map((c) => c.what)).toEqual([`manifest ${t.file('web.yaml')} appeared`]);
    const uid = lastSet(s).pods[0]?.metadata.uid;
    await writeFile(t.file('web.yaml'), yaml('web', 'other:1'));
    await until(s, () => lastSet(s).pods[0]?.metadata.uid !== uid);
    expect(lastSet(s).causes?.map((c) => c.what)).toEqual([`manifest ${t.file('web.yaml')} changed`]);
    await unlink(t.file('web.yaml'));
    await until(s, () => names(s).length === 0);
    expect(lastSet(s).causes?.map((c) => c.what)).toEqual([`manifest ${t.file('web.yaml')} is gone`]);
  });

  it('ends the pod of a manifest that goes and comes back unchanged, and begins it anew; not of one that is written again', async ({
    s,
  }) => {
    const path = t.file('web.yaml');
    const counts = () => sets(s).map(({ pods }) => pods.length);
    await writeFile(path, yaml('web'));
    await until(s, () => names(s)[0] === 'web-n1' && idle(s));
    await writeFile(path, yaml('web'));
    await s.ports.advance(1_000);
    await until(s, () => idle(s));
    const known = counts();
    await rename(path, t.file('.away'));
    await rename(t.file('.away'), path);
    await until(s, () => sets(s).length > known.length + 1);
    expect(counts()).toEqual([0, 1, 0, 1]);
  });

  it('keeps the pod of a manifest that became unusable until the next listing, then removes it', async () => {
    await writeFile(t.file('web.yaml'), yaml('web'));
    await writeFile(t.file('other.yaml'), yaml('other'));
    const s = await listed();
    await writeFile(t.file('web.yaml'), 'kind: [Pod');
    await until(s, () => lastSet(s).errors.length > 0);
    expect(names(s).sort()).toEqual(['other-n1', 'web-n1']);
    expect(lastSet(s).errors[0]).toMatchObject({
      where: t.file('web.yaml'),
      fullName: 'web-n1_default',
      message: expect.stringMatching(/line 1.*runs on as last read/),
    });
    await nextListing(s);
    expect(names(s)).toEqual(['other-n1']);
    expect(lastSet(s).errors[0]).toMatchObject({ fullName: 'web-n1_default' });
    expect(lastSet(s).causes?.[0]?.what).toMatch(/still unusable at this listing/);
    await writeFile(t.file('web.yaml'), yaml('web'));
    await until(s, () => names(s).length === 2);
    expect(lastSet(s).errors).toEqual([]);
  });

  it('gives a manifest first found unusable by a listing until the next one', async () => {
    await writeFile(t.file('web.yaml'), yaml('web'));
    const sys = { watchDir: () => ({ [Symbol.dispose]: () => {} }), notify: () => false };
    const s = start(t.dir, { sys });
    await until(s, () => names(s)[0] === 'web-n1' && idle(s));
    await writeFile(t.file('web.yaml'), '');
    await nextListing(s);
    expect([names(s), lastSet(s).errors.length]).toEqual([['web-n1'], 1]);
    await nextListing(s);
    expect(names(s)).toEqual([]);
  });

  it('finds changes by listing when no hint comes', async () => {
    const sys = { watchDir: () => ({ [Symbol.dispose]: () => {} }), notify: () => false };
    const s = start(t.dir, { sys });
    await until(s, () => sets(s).length > 0 && idle(s));
    await writeFile(t.file('web.yaml'), yaml('web'));
    await nextListing(s);
    expect(names(s)).toEqual(['web-n1']);
  });

  it('never posts half of a manifest that is being written', async ({ s }) => {
    const whole = yaml('slow');
    await writeFile(t.file('slow.yaml'), '');
    for (let i = 0; i < whole.length; i += 20) {
      await appendFile(t.file('slow.yaml'), whole.slice(i, i + 20));
      await s.ports.advance(2);
    }
    await until(s, () => names(s)[0] === 'slow-n1');
    expect(sets(s).flatMap((x) => x.errors)).toEqual([]);
  });

  const afterRead = (act: (path: string) => Promise<void>) => {
    const real = createHostFs();
    return {
      ...real,
      readFile: (path: string, o: { bytesMax: number }) => real.readFile(path, o).then((bytes) => act(path).then(() => bytes)),
    };
  };

  it('reads a file again that was written to while it was read', async () => {
    let reads = 0;
    const fs = afterRead(async (path) => {
      reads += 1;
      if (reads === 1) await writeFile(path, yaml('second', 'longer-image:1'));
    });
    await writeFile(t.file('a.yaml'), yaml('first'));
    const s = start(t.dir, { fs });
    await until(s, () => names(s)[0] === 'second-n1');
    expect(
      sets(s)
        .flatMap((x) => x.pods)
        .map((p) => p.metadata.name),
    ).not.toContain('first-n1');
  });

  it('posts no first set that lacks a manifest replaced in the middle of the first listing', async () => {
    let reads = 0;
    const fs = afterRead(async (path) => {
      if (path.endsWith('a.yaml')) reads += 1;
      if (reads !== 1) return;
      reads += 1;
      await writeFile(t.file('.new'), yaml('one'));
      await rename(t.file('.new'), t.file('a.yaml'));
    });
    await writeFile(t.file('a.yaml'), yaml('one'));
    await writeFile(t.file('b.yaml'), yaml('two'));
    const s = start(t.dir, { fs });
    await until(s, () => sets(s).length > 0);
    expect(
      sets(s)[0]
        ?.pods.map((p) => p.metadata.name)
        .sort(),
    ).toEqual(['one-n1', 'two-n1']);
  });

  it('lets the file that had a pod name first keep it, whatever the new file is called', async () => {
    await writeFile(t.file('b.yaml'), yaml('same'));
    const s = await listed();
    const uid = lastSet(s).pods[0]?.metadata.uid;
    await writeFile(t.file('a.yaml'), yaml('same'));
    await until(s, () => lastSet(s).errors.length === 1);
    expect(lastSet(s).pods[0]?.metadata.uid).toBe(uid);
    expect(lastSet(s).errors[0]?.where).toBe(t.file('a.yaml'));
  });

  it('re-reads links when the data behind them is swapped in one step', async () => {
    await mkdir(t.file('..v1'));
    await mkdir(t.file('..v2'));
    await writeFile(t.file('..v1/m'), yaml('v1'));
    await writeFile(t.file('..v2/m'), yaml('v2'));
    await symlink('..v1', t.file('..data'));
    await symlink('..data/m', t.file('a.yaml'));
    const s = await listed();
    expect(names(s)).toEqual(['v1-n1']);
    await symlink('..v2', t.file('..tmp'));
    await rename(t.file('..tmp'), t.file('..data'));
    await until(s, () => names(s)[0] === 'v2-n1');
  });
});

describe('the path itself', () => {
  it('counts as empty while it is missing, and is picked up within about a second of appearing', async () => {
    const s = start(t.file('later'));
    await until(s, () => s.state().includes('missing'));
    expect(lastSet(s)).toMatchObject({ pods: [], errors: [{ where: t.file('later') }] });
    await mkdir(t.file('later'));
    await writeFile(t.file('later/a.yaml'), yaml('a'));
    await s.ports.advance(1_000);
    await until(s, () => names(s)[0] === 'a-n1', { ticking: false });
    expect(lastSet(s).errors).toEqual([]);
  });

  it('is watched again after it was removed and made anew', async () => {
    const path = t.file('m');
    await mkdir(path);
    await writeFile(`${path}/a.yaml`, yaml('a'));
    const s = await listed(path);
    await until(s, () => s.state().includes('"open"'), { what: 'the watch is open' });
    await rm(path, { recursive: true });
    // By the hint, or, where the watch broke before it told, by the listing.
    await s.ports.advance(PERIOD_MS);
    await until(s, () => names(s).length === 0, { what: 'empty' });
    await mkdir(path);
    await writeFile(`${path}/b.yaml`, yaml('b'));
    await until(s, () => names(s)[0] === 'b-n1', { what: 'b' });
    await writeFile(`${path}/c.yaml`, yaml('c'));
    await until(s, () => names(s).length === 2, { what: 'c, by a hint' });
  });

  it('may be one file, whose change is seen and whose damage keeps the pod', async () => {
    await writeFile(t.file('one.yaml'), yaml('one'));
    const s = await listed(t.file('one.yaml'));
    expect(names(s)).toEqual(['one-n1']);
    await writeFile(t.file('.new'), yaml('two'));
    await rename(t.file('.new'), t.file('one.yaml'));
    await until(s, () => names(s)[0] === 'two-n1');
    await writeFile(t.file('one.yaml'), 'nonsense');
    await until(s, () => lastSet(s).errors.length === 1);
    await nextListing(s);
    await nextListing(s);
    expect(names(s)).toEqual(['two-n1']);
  });

  it('posts no set for one file that never held a pod', async () => {
    await writeFile(t.file('one.yaml'), 'nonsense');
    const s = start(t.file('one.yaml'));
    await until(s, () => errorsSent(s).length > 0);
    expect(sets(s)).toEqual([]);
  });

  it('keeps the pods when it cannot be listed', async () => {
    await writeFile(t.file('a.yaml'), yaml('a'));
    const real = createHostFs();
    let broken = false;
    const fs = { ...real, readdir: async (p: string) => (broken ? Promise.reject(new Error('EIO: i/o error')) : real.readdir(p)) };
    const s = start(t.dir, { fs });
    await until(s, () => names(s)[0] === 'a-n1' && idle(s));
    broken = true;
    await s.ports.advance(PERIOD_MS);
    await until(s, () => errorsSent(s).length > 0);
    expect(sets(s)).toHaveLength(1);
    expect(errorsSent(s)[0]?.errors).toEqual([{ where: t.dir, message: 'cannot be listed: EIO: i/o error' }]);
    expect(s.state()).toContain('unreadable');
    broken = false;
    await s.ports.advance(PERIOD_MS);
    await until(s, () => sets(s).length === 2);
  });

  it('goes on by listing when the watch breaks, and backs off reopening it', async () => {
    let opened = 0;
    const sys = {
      watchDir: () => {
        opened += 1;
        throw Object.assign(new Error('ENOSPC: no watches left'), { code: 'ENOSPC' });
      },
      notify: () => false,
    };
    const s = start(t.dir, { sys });
    await until(s, () => sets(s).length === 1, { ticking: false });
    expect(opened).toBe(1);
    await s.ports.advance(15_500);
    expect(opened).toBe(5);
    expect(s.ports.lines.some((l) => l.level === 'warn' && l.msg.includes('ENOSPC'))).toBe(true);
  });
});

it('brings a manifest renamed into place to podConfig before the next listing is due', async () => {
  const s = start(t.dir, { clock: createClock() });
  await until(s, () => sets(s).length > 0, { ticking: false });
  await writeFile(t.file('.tmp'), yaml('web'));
  await rename(t.file('.tmp'), t.file('web.yaml'));
  await until(s, () => names(s)[0] === 'web-n1', { ticking: false, withinMs: 15_000 });
});

it('names a file that needs too much to decode, and takes the others', async () => {
  using documents = createDocuments({ entropy: createEntropy(), memoryMiB: 48 });
  await writeFile(t.file('a.yaml'), yaml('a'));
  await writeFile(t.file('b.yaml'), `${yaml('b')}\nstatus: [${'a,'.repeat(700_000)}]\n`);
  // Decoded in the thread too: it has an anchor.
  await writeFile(t.file('c.yaml'), `${yaml('c')}\nstatus: &s {}\n`);
  const s = start(t.dir, { documents });
  await until(s, () => sets(s).length > 0 && idle(s), { withinMs: 50_000 });
  expect(names(s)).toEqual(['a-n1', 'c-n1']);
  expect(wheres(s)).toEqual(['b.yaml: takes more than 48 MiB of memory to decode']);
});
