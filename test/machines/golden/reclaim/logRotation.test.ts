/** Rotation of logs (resources and volumes 5.5): what goes, what is compressed, and the name of what was rotated. */
import { planRotation, rotatedName } from '../../../../src/machines/reclaim/logRotation.ts';
import { goldenTable } from '../table.ts';

const LOG = '3.log';
const at = (second: number, ending = '') => `${LOG}.20240101-0000${String(second).padStart(2, '0')}${ending}`;
const planned =
  (names: readonly string[], filesMax = 5) =>
  () =>
    planRotation({ name: LOG, names, filesMax });
/** In the time of the machine that runs this, whatever that is. */
const WALL_MS = new Date(2024, 0, 1, 0, 0, 0, 999).getTime();
const named =
  (names: readonly string[], wallMs = WALL_MS) =>
  () =>
    rotatedName({ name: LOG, names, wallMs });

goldenTable('logs are rotated as recorded', 'reclaim/logRotation', {
  'the first time': planned([LOG]),
  'the one before is compressed': planned([LOG, at(1)]),
  'those that are compressed stay so': planned([LOG, at(1, '.gz'), at(2, '.gz'), at(3)]),
  'one more than may be: the oldest goes': planned([LOG, at(1, '.gz'), at(2, '.gz'), at(3, '.gz'), at(4)]),
  'many more than may be, in any order': planned([at(9), at(2, '.gz'), LOG, at(7, '.gz'), at(1), at(8), at(3, '.gz')]),
  'one that goes is not compressed first': planned([LOG, at(1), at(2), at(3), at(4)]),
  'two files in all: none but the newest stays': planned([LOG, at(1, '.gz'), at(2)], 2),
  'three files in all': planned([LOG, at(1, '.gz'), at(2)], 3),
  'half a compressed one goes, and is made again': planned([LOG, at(1), at(1, '.tmp')]),
  'one that was compressed and not yet removed goes': planned([LOG, at(1), at(1, '.gz')]),
  'what goes does not count': planned([LOG, at(1), at(1, '.gz'), at(2, '.gz'), at(3), at(3, '.tmp')]),
  'logs of other instances are no matter': planned(['13.log', '13.log.20240101-000001', '2.log', '2.log.20240101-000001.gz', LOG]),

  'name: the time, to the second': named([LOG]),
  'name: taken by one that was rotated in that second': named([LOG, at(0)]),
  'name: taken by a compressed one': named([LOG, at(0, '.gz'), at(1)]),
  'name: every part has its digits': named([LOG], new Date(2024, 10, 22, 13, 4, 59).getTime()),
});
