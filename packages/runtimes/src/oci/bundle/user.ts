/** Which ids a container runs with: what the pod says, else its image, by the image's own /etc/passwd and /etc/group. */
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import type { LinuxContainerSecurityContext } from '@actorlet/kubelet/machines/wire/cri.ts';
import { readRegularSync } from '@actorlet/process/src/regularFile.ts';

const DATABASE_BYTES_MAX = 4 * 1024 * 1024;

export interface Ids {
  uid: number;
  gid: number;
  additionalGids: number[];
}

/** @throws naming a user or group that the image does not have, or an id beyond `idMax`. */
export function idsOf(rootfs: string, s: LinuxContainerSecurityContext | undefined, o: { imageUser: string; idMax: number }): Ids {
  const asked = s?.runAsUser ? String(s.runAsUser.value) : s?.runAsUsername || '';
  const [imageUser = '', imageGroup = ''] = o.imageUser.split(':');
  const user = asked || imageUser || '0';
  const entry = database(rootfs, 'passwd').find((line) => line[0] === user || line[2] === user);
  if (entry === undefined && !isId(user)) throw new Error(`user ${JSON.stringify(user)} is not in the image's /etc/passwd`);
  const uid = Number(entry?.[2] ?? user);
  const groups = database(rootfs, 'group');
  const group = s?.runAsGroup ? String(s.runAsGroup.value) : asked === '' ? imageGroup : '';
  const named = groups.find((line) => line[0] === group);
  if (group !== '' && named === undefined && !isId(group))
    throw new Error(`group ${JSON.stringify(group)} is not in the image's /etc/group`);
  const gid = Number(group === '' ? (entry?.[3] ?? 0) : (named?.[2] ?? group));
  const name = entry?.[0];
  const merged =
    name === undefined || s?.supplementalGroupsPolicy === 'Strict'
      ? []
      : groups.filter((line) => (line[3] ?? '').split(',').includes(name)).map((line) => Number(line[2]));
  const additionalGids = [...new Set([...(s?.supplementalGroups ?? []).map(Number), ...merged])].filter((g) => Number.isInteger(g));
  const beyond = [uid, gid, ...additionalGids].find((id) => !Number.isInteger(id) || id < 0 || id > o.idMax);
  if (beyond !== undefined)
    throw new Error(`user or group ${beyond} is beyond the ids that /etc/subuid and /etc/subgid give (0 to ${o.idMax})`);
  return { uid, gid, additionalGids };
}

const isId = (text: string): boolean => /^\d+$/.test(text);

/** Lines of a database of the image, split; none where a link stands in its way, which may lead out of the image. */
function database(rootfs: string, name: 'passwd' | 'group'): string[][] {
  const etc = join(rootfs, 'etc');
  try {
    if (!lstatSync(etc).isDirectory()) return [];
    const text = readRegularSync(join(etc, name), { own: true, bytesMax: DATABASE_BYTES_MAX }).toString('utf8');
    return text.split('\n').map((line) => line.split(':'));
  } catch {
    return [];
  }
}
