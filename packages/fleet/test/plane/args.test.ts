/** Options of `--api local`, and `--ready-fd`. */
import { describe, expect, it } from 'vitest';
import { parsed } from '../../src/boot/args.ts';

const local = (...args: string[]) => parsed(['--nodes=1', '--api=local', ...args]);

describe('options of a control plane', () => {
  it('are read', async () => {
    const flags = ['kube-apiserver:--feature-gates=A=true,B=false', 'kube-apiserver:--v=4', 'etcd:--quota-backend-bytes=1'];
    const args = await local('--data=/d', '--api-port=6443', ...flags.flatMap((of) => ['--api-flag', of]), '--ready-fd=1');
    expect(args).toMatchObject({
      api: 'local',
      // Fleets with control planes of their own stand side by side.
      port: undefined,
      readyFd: 1,
      plane: {
        ...{ data: '/d', port: 6443 },
        flags: { 'kube-apiserver': ['--feature-gates=A=true,B=false', '--v=4'], etcd: ['--quota-backend-bytes=1'] },
      },
    });
    expect(await local()).toMatchObject({ plane: { data: '', port: 0, flags: {} }, readyFd: undefined });
  });

  it.each<[string[], string]>([
    [['--nodes=1', '--api=embedded', '--data=/d'], '--data, --api-port and --api-flag: they belong to --api local'],
    [['--nodes=1', '--kubeconfig=/k', '--api-port=1'], '--data, --api-port and --api-flag: they belong to --api local'],
    [['--nodes=1', '--api=local', '--api-port=70000'], '--api-port must be a whole number from 0 to 65535, is 70000'],
    [
      ['--nodes=1', '--api=local', '--api-flag', 'kubelet:--v=4'],
      '--api-flag must be PROGRAM:--FLAG=VALUE with a PROGRAM of etcd, kube-apiserver',
    ],
    [['--nodes=1', '--api=local', '--api-flag', 'etcd:v=4'], 'is "etcd:v=4"'],
    [['--nodes=1', '--api=local', '--bootstrap-kubeconfig=/b'], '--bootstrap-kubeconfig: it is of a cluster'],
    [['--nodes=1', '--api=local', '--ready-fd=0'], '--ready-fd 0: this process was given no such descriptor'],
    [['--nodes=1', '--api=local', '--ready-fd=999'], '--ready-fd 999: this process was given no such descriptor'],
    [['--nodse=1', '--api=local'], 'Unknown argument: nodse (did you mean --nodes?)'],
    [['--nodes=1', '--kubeconfig='], 'without a cluster take --api local or --api embedded'],
  ])('of %j are refused', async (argv, why) => {
    await expect(parsed(argv)).rejects.toThrow(why);
  });
});
