/** The gates of the kubelet (boot-and-node 4.2): stage and default of each, and whether it may be set to the opposite. */
import { KUBELET_GATES } from '../../../../src/machines/config/gateTable.ts';
import { goldenTable } from '../table.ts';

goldenTable('gates are as recorded', 'node/gates', {
  ...Object.fromEntries(
    Object.entries(KUBELET_GATES).map(([name, { stage, default: on, locked }]) => [
      name,
      () => `${stage} ${on ? 'on' : 'off'}${locked ? ' locked' : ''}`,
    ]),
  ),
});
