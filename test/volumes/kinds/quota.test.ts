/** Project quotas of emptyDirs on a disk in memory, with a fake xfs_quota; `test/e2e/vm/disks/quota.nightly.ts` has the real one. */
import { describe, expect, it } from 'vitest';
import { assignQuota, clearQuota, quotaUse } from '../../../src/actors/services/volumes/disk/quota.ts';
import { freeProjects, projectUse, quotaMount, withoutProject, withProject } from '../../../src/machines/services/volumes/devices/quota.ts';
import type { Mounter } from '../../../src/ports/machine/mounter.ts';
import { memFs } from '../../integration/memFs.ts';
import { virtualTime } from '../../integration/virtualTime.ts';

const signal = new AbortController().signal;
const DIR = '/root/pods/u/volumes/kubernetes.io~empty-dir/v';
const said = (out: string, code = 0) => ({ code, out, err: '' });

async function machine(o: { type?: string; accounting?: string; noProgram?: boolean; used?: Record<string, string> } = {}) {
  const fs = memFs(virtualTime().clock);
  for (const dir of [DIR, `${DIR}2`, '/etc']) await fs.mkdirp(dir, 0o755);
  const commands: string[] = [];
  const shown = new Map<string, string>();
  const mounter = {
    list: async (dir: string, at = dir) =>
      at !== '/'
        ? []
        : [
            { path: '/', root: '/', type: 'ext4', source: '/dev/a', device: '8:1' },
            { path: '/root', root: '/', type: o.type ?? 'xfs', source: '/dev/b', device: '8:2' },
          ],
    tool: async (name: string, args: readonly string[]) => {
      if (o.noProgram === true) throw Object.assign(new Error('no such program'), { code: 'ENOENT' });
      const command = args.at(-1) ?? '';
      if (name === 'lsattr') return said(`${shown.get(command) ?? 0} ---P--- ${command}\n`);
      if (command === 'state -p') return said(`Project quota state on /root\n  Accounting: ${o.accounting ?? 'ON'}\n`);
      const [, dir = '', id = ''] = /^project -s -p (\S+) (\d+)$/.exec(command) ?? [];
      if (dir !== '') shown.set(dir, id);
      const [, what = '', of = ''] = /^quota .* -([bi]) (\d+)$/.exec(command) ?? [];
      if (of !== '') return said(o.used?.[`${what}${of}`] ?? '');
      commands.push(command);
      return said('');
    },
  } as unknown as Mounter;
  const text = async (file: string) => new TextDecoder().decode(await fs.readFile(file, { bytesMax: 1000 }));
  return { commands, text, fs, quotas: { ports: { fs, mounter }, facts: () => ({ rootDir: '/root' }) } };
}

describe('a directory', () => {
  it('gets a project of its own in the files and numbers of the kubelet, is counted by it, and gives it back', async () => {
    const used: Record<string, string> = { b1048577: '/dev/b 8 0 0 00 [--]', i1048577: '/dev/b 3 0 0 00 [--]' };
    const m = await machine({ used });
    m.fs.put('/etc/projects', '7:/srv');
    // The first is in use on the disk, although no file says so.
    expect(await assignQuota(m.quotas, DIR, signal)).toBe(true);
    expect([await m.text('/etc/projects'), await m.text('/etc/projid')]).toEqual([`7:/srv\n1048578:${DIR}\n`, 'volume1048578:1048578\n']);
    expect(m.commands).toEqual(['limit -p bhard=9223372036854775807 bsoft=9223372036854775807 1048578', `project -s -p ${DIR} 1048578`]);
    Object.assign(used, { b1048578: '/dev/b 5120 0 0', i1048578: '/dev/b 2' });
    expect(await quotaUse(m.quotas, DIR, signal)).toEqual({ bytes: 5120 * 1024, inodes: 2 });
    await assignQuota(m.quotas, DIR, signal);
    expect(await m.text('/etc/projid')).toBe('volume1048578:1048578\n');
    await clearQuota(m.quotas, DIR, signal);
    expect(m.commands.at(-1)).toBe('limit -p bhard=0 bsoft=0 1048578');
    expect([await m.text('/etc/projects'), await m.text('/etc/projid')]).toEqual(['7:/srv\n', '']);
    expect(await quotaUse(m.quotas, DIR, signal)).toBeNull();
  });

  it.each([
    ['of a file system that does not count', { accounting: 'OFF' }],
    ['of another file system', { type: 'btrfs' }],
    ['on a host without xfs_quota', { noProgram: true }],
  ])('%s gets none', async (_, how) => {
    const m = await machine(how);
    expect(await assignQuota(m.quotas, DIR, signal)).toBe(false);
    await clearQuota(m.quotas, DIR, signal);
    expect([m.commands, m.fs.has('/etc/projects')]).toEqual([[], false]);
  });

  it('that was made anew after a reboot of the files is not counted by what they say', async () => {
    const m = await machine();
    m.fs.put('/etc/projects', `1048577:${DIR}\n`);
    expect(await quotaUse(m.quotas, DIR, signal)).toBeNull();
  });

  it('two at once get two projects', async () => {
    const m = await machine();
    await Promise.all([DIR, `${DIR}2`].map((dir) => assignQuota(m.quotas, dir, signal)));
    expect((await m.text('/etc/projects')).split('\n').sort()).toEqual(['', `1048577:${DIR}`, `1048578:${DIR}2`].sort());
  });
});

it('files of projects keep lines that are not theirs; a name stays while a directory has its project', () => {
  const files = { projects: '# mine\n1048577:/a\n1048577:/b\nnonsense\n', ids: '#x:1\nmine:1048579\nvolume1048577:1048577\n' };
  expect(freeProjects(files).slice(0, 3)).toEqual([1_048_578, 1_048_580, 1_048_581]);
  expect(freeProjects(files)).toHaveLength(129);
  const one = withoutProject(files, '/a', 1_048_577);
  expect(one).toEqual({ projects: '# mine\n1048577:/b\nnonsense\n', ids: files.ids });
  expect(withoutProject(one, '/b', 1_048_577)).toEqual({ projects: '# mine\nnonsense\n', ids: '#x:1\nmine:1048579\n' });
  expect(withProject({ projects: 'x', ids: '' }, '/c', 5)).toEqual({ projects: 'x\n5:/c\n', ids: 'volume5:5\n' });
});

it('what is no answer of xfs_quota is not believed; nothing at all means an empty project', () => {
  expect(projectUse(said('no such mount'), said(''))).toBeNull();
  expect(projectUse(said('/dev/b 1', 1), said('/dev/b 1'))).toBeNull();
  expect(projectUse(said(''), said(''))).toEqual({ bytes: 0, inodes: 0 });
});

it('the mount that counts is the topmost of the longest path around the directory', () => {
  const at = (path: string, type: string) => ({ path, type, root: '/', source: type, device: '8:1' });
  const mounts = [at('/', 'ext4'), at('/r', 'tmpfs'), at('/r', 'xfs'), at('/r/x', 'xfs'), at('/ro', 'xfs')];
  expect(quotaMount(mounts, '/r/a')).toMatchObject({ path: '/r', type: 'xfs' });
  expect(quotaMount(mounts, '/root')).toMatchObject({ path: '/' });
  expect(quotaMount(mounts, '/r/a b')).toBeNull();
  expect(quotaMount([at('/r', 'xfs'), at('/r', 'tmpfs')], '/r/a')).toBeNull();
});
