// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables are systemd's.
/** Units and environment files as people write them, and what systemd made of each: `recorded.json` is from `record.ts`. */

export interface UnitCase {
  name: string;
  /** By path. `null`: a link to /dev/null. */
  files: Readonly<Record<string, string | null>>;
}
/** What the kubelet was started with. `argv` null: systemd did not start it. */
export interface Started {
  argv: readonly string[] | null;
}

export const UNIT = '/usr/lib/systemd/system/kubelet.service';
const DROP = (name: string, folder = '/etc/systemd/system') => `${folder}/kubelet.service.d/${name}`;
const EXTRA = '/etc/default/kubelet';
const service = (...lines: string[]) => `[Service]\n${lines.join('\n')}\n`;

/** As Kubernetes' packages have them. */
export const PACKAGE = {
  [UNIT]: `[Unit]
Description=kubelet: The Kubernetes Node Agent
Documentation=https://kubernetes.io/docs/
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/kubelet
Restart=no
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
`,
  [DROP('10-kubeadm.conf', '/usr/lib/systemd/system')]: `# Note: This dropin only works with kubeadm and kubelet v1.11+
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
# This is a file that "kubeadm init" and "kubeadm join" generates at runtime, populating the KUBELET_KUBEADM_ARGS variable dynamically
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
# This is a file that the user can use for overrides of the kubelet args as a last resort. KUBELET_EXTRA_ARGS should be sourced from it.
EnvironmentFile=-${EXTRA}
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`,
};
/** As kubeadm wrote it until 1.33. */
const FLAGS = {
  '/var/lib/kubelet/kubeadm-flags.env':
    'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///var/run/containerd/containerd.sock --pod-infra-container-image=registry.k8s.io/pause:3.10.1"\n',
};
/** As kubeadm 1.36.2 wrote it for the arguments node-ip, node-labels and v. */
const FLAGS_1_36 = {
  '/var/lib/kubelet/kubeadm-flags.env':
    'KUBELET_KUBEADM_ARGS="--hostname-override=n1 --node-ip=192.0.2.7 --node-labels=a=b,c=\\"d e\\" --v=2"\n',
};
const packaged = (extra: string): UnitCase['files'] => ({ ...PACKAGE, ...FLAGS, [EXTRA]: extra });
const exec = (...lines: string[]): UnitCase['files'] => ({ [UNIT]: service(...lines) });
const variable = (text: string): UnitCase['files'] => ({
  [UNIT]: service('EnvironmentFile=/etc/default/kubelet', 'ExecStart=/usr/bin/kubelet $A -- ${A} -- $B -- ${B}'),
  [EXTRA]: text,
});

export const CASES: readonly UnitCase[] = [
  { name: 'the packages', files: { ...PACKAGE, ...FLAGS } },
  { name: 'the packages, without files of kubeadm', files: PACKAGE },
  { name: 'the packages, with flags as kubeadm 1.36.2 writes them', files: { ...PACKAGE, ...FLAGS_1_36 } },
  { name: 'extra flags', files: packaged('KUBELET_EXTRA_ARGS=--node-ip=192.0.2.1 --v=2\n') },
  { name: 'extra flags in quotes', files: packaged('KUBELET_EXTRA_ARGS="--node-ip=192.0.2.1 --v=2"\n') },
  { name: 'a quote in the middle of a value', files: packaged('KUBELET_EXTRA_ARGS=--node-labels="a=b c" --v=2\n') },
  { name: 'quotes in quotes', files: packaged(`KUBELET_EXTRA_ARGS='--node-labels="a=b c" --v=2'\n`) },
  { name: 'escaped quotes in quotes', files: packaged('KUBELET_EXTRA_ARGS="--node-labels=\\"a=b c\\" --v=2"\n') },
  { name: 'a quote that is not closed', files: packaged('KUBELET_EXTRA_ARGS="--node-ip=192.0.2.1 --v=2\n') },
  { name: 'a value that holds an open quote', files: packaged(`KUBELET_EXTRA_ARGS=--node-labels='a b\n`) },
  { name: 'two quoted parts', files: packaged(`KUBELET_EXTRA_ARGS="--v=2 " '--node-ip=192.0.2.1'\n`) },
  { name: 'a word behind quotes', files: packaged('KUBELET_EXTRA_ARGS="--v=2" --x\n') },
  { name: 'lines that go on', files: packaged('KUBELET_EXTRA_ARGS=--v=2 \\\n  --node-ip=192.0.2.1\n') },
  { name: 'lines of another machine', files: packaged('KUBELET_EXTRA_ARGS=--v=2\r\nB=1\r\n') },
  {
    name: 'export, comments, spaces',
    files: packaged('export KUBELET_EXTRA_ARGS=--v=1\n# KUBELET_EXTRA_ARGS=--v=3\n ; x\n KUBELET_EXTRA_ARGS  =  --v=4  \n'),
  },
  { name: 'a comment that ends in a backslash', files: packaged('# a \\\nKUBELET_EXTRA_ARGS=--v=4\n') },
  { name: 'the last of two counts', files: packaged('KUBELET_EXTRA_ARGS=--v=1\nKUBELET_EXTRA_ARGS=--v=2\n') },
  { name: 'a variable in a file', files: packaged('X=1\nKUBELET_EXTRA_ARGS=--v=$X --w=${X}\n') },
  { name: 'a specifier in a file', files: packaged('KUBELET_EXTRA_ARGS=--hostname-override=%H\n') },
  { name: 'values: escapes', files: variable('A=a\\ b\\"c \\d\nB="a\\ b \\n \\$x \\\\ \\`"\n') },
  { name: 'values: single quotes', files: variable("A='a\\ b \\'x\nB=x'y z'\n") },
  { name: 'values: quotes over lines', files: variable('A="a\nb"\nB=\'c\n d\'\n') },
  { name: 'values: no value, no name, bad names', files: variable('A\n=x\n1B=2\nB-C=3\nB =4\n') },
  { name: 'values: tabs and trailing backslash', files: variable('A=a\tb\nB=c\\') },
  { name: 'values: a line that goes on in a key', files: variable('A\\\n=1\nB=2\n') },

  { name: 'words: quotes and escapes', files: exec(`ExecStart=/usr/bin/kubelet --a='b c' "--d e" --f=\\"g --h="i"j k'l m'n`) },
  { name: 'words: C escapes', files: exec(String.raw`ExecStart=/usr/bin/kubelet a\tb c\x41 d\s\s e\101 f\u00e9 g\\h "i\nj" 'k\tl'`) },
  { name: 'words: escapes that nobody knows', files: exec(String.raw`ExecStart=/usr/bin/kubelet a\-b c\$d 'e\;f' \q`) },
  { name: 'words: an open quote', files: exec('ExecStart=/usr/bin/kubelet --a="b') },
  { name: 'words: a backslash at the end', files: exec('ExecStart=/usr/bin/kubelet --a=b\\\\', 'Restart=no') },
  {
    name: 'words: lines that go on, with comments',
    files: exec('ExecStart=/usr/bin/kubelet \\', '  --a=1 \\', '# no', '; no', '\t--b=2\\', '--c=3', 'Restart=no'),
  },
  {
    name: 'words: variables',
    files: exec('Environment=A=1 "B=2  3" C=', 'ExecStart=/usr/bin/kubelet $A $B ${B} x${A}y x$A $A/x $C ${C} $D ${D} $$A $${A} "$B" ${A'),
  },
  { name: 'words: a default of a variable', files: exec('Environment=A=1', 'ExecStart=/usr/bin/kubelet ${A:-x} ${Z:-x} ${A:+y}') },
  {
    name: 'words: specifiers',
    files: exec('ExecStart=/usr/bin/kubelet %n %N %p %i %% %u %U %t %S %C %L %E %T %V %h %g %G x%nx 100% a'),
  },
  { name: 'words: a specifier that nobody knows', files: exec('ExecStart=/usr/bin/kubelet a %z') },
  { name: 'words: specifiers in variables', files: exec('Environment=A=%n B=%%x', 'ExecStart=/usr/bin/kubelet $A ${B}') },
  { name: 'words: a semicolon', files: exec('Type=oneshot', 'ExecStart=/usr/bin/kubelet a ; /bin/true b') },
  { name: 'words: an escaped semicolon', files: exec(String.raw`ExecStart=/usr/bin/kubelet a \; b ";" c;`) },
  { name: 'prefix: no variables', files: exec('Environment=A=1', 'ExecStart=:/usr/bin/kubelet $A ${A} $$') },
  { name: 'prefix: another name of the program', files: exec('ExecStart=@/usr/bin/kubelet hyper a b') },
  { name: 'prefix: errors do not count', files: exec('ExecStart=-+/usr/bin/kubelet a') },
  { name: 'two commands', files: exec('ExecStart=/usr/bin/kubelet a', 'ExecStart=/usr/bin/kubelet b') },
  { name: 'two commands, the first taken back', files: exec('ExecStart=/usr/bin/kubelet a', 'ExecStart=', 'ExecStart=/usr/bin/kubelet b') },
  { name: 'a command taken back', files: exec('ExecStart=/usr/bin/kubelet a', 'ExecStart=') },
  {
    name: 'a drop-in without a reset',
    files: { ...exec('ExecStart=/usr/bin/kubelet a'), [DROP('20-x.conf')]: service('ExecStart=/usr/bin/kubelet b') },
  },
  { name: 'a program by its name', files: exec('ExecStart=kubelet a') },

  { name: 'environment: quotes', files: exec(`Environment="A=x y" B='z  w' C=1"2 3"4`, 'ExecStart=/usr/bin/kubelet ${A} ${B} ${C}') },
  { name: 'environment: bad words', files: exec('Environment=A=1 B 2C=3 D-E=4 F=5', 'ExecStart=/usr/bin/kubelet ${A} ${F}') },
  { name: 'environment: a bad escape', files: exec(String.raw`Environment=A=1 B=\q C=2`, 'ExecStart=/usr/bin/kubelet ${A} ${B} ${C}') },
  { name: 'environment: an open quote', files: exec('Environment=A=1 "B=2', 'ExecStart=/usr/bin/kubelet ${A} ${B}') },
  {
    name: 'environment: taken back',
    files: exec('Environment=A=1', 'Environment=', 'Environment=B=2', 'ExecStart=/usr/bin/kubelet x${A} ${B}'),
  },
  {
    name: 'environment: unset',
    files: exec('Environment=A=1 B=2 C=3', 'UnsetEnvironment=A B=9 C=3', 'ExecStart=/usr/bin/kubelet x${A} x${B} x${C}'),
  },
  { name: 'environment: of the manager', files: exec('PassEnvironment=NOT_SET', 'ExecStart=/usr/bin/kubelet x${NOT_SET} ${LANG}x') },

  {
    name: 'files: they win over the unit',
    files: {
      ...exec('EnvironmentFile=/etc/default/kubelet', 'Environment=A=unit', 'ExecStart=/usr/bin/kubelet ${A}'),
      [EXTRA]: 'A=file\n',
    },
  },
  { name: 'files: missing', files: exec('EnvironmentFile=/etc/default/kubelet', 'ExecStart=/usr/bin/kubelet a') },
  { name: 'files: missing, and may be', files: exec('EnvironmentFile=-/etc/default/kubelet', 'ExecStart=/usr/bin/kubelet a') },
  {
    name: 'files: taken back',
    files: { ...exec('EnvironmentFile=/etc/default/kubelet', 'EnvironmentFile=', 'ExecStart=/usr/bin/kubelet x${A}'), [EXTRA]: 'A=1\n' },
  },
  {
    name: 'files: a pattern',
    files: {
      ...exec('EnvironmentFile=-/etc/default/kube*', 'ExecStart=/usr/bin/kubelet x${A} ${B}'),
      [EXTRA]: 'A=1\nB=2\n',
      '/etc/default/kubez': 'A=3\n',
    },
  },
  { name: 'files: a pattern without a file', files: exec('EnvironmentFile=/etc/default/no*', 'ExecStart=/usr/bin/kubelet a') },
  { name: 'files: not an absolute path', files: exec('EnvironmentFile=etc/default/kubelet', 'ExecStart=/usr/bin/kubelet a') },
  {
    name: 'files: a specifier',
    files: { ...exec('EnvironmentFile=/etc/default/%N', 'ExecStart=/usr/bin/kubelet x${A}'), [EXTRA]: 'A=1\n' },
  },
  {
    name: 'files: quotes around the path',
    files: { ...exec('EnvironmentFile="/etc/default/kubelet"', 'ExecStart=/usr/bin/kubelet x${A}'), [EXTRA]: 'A=1\n' },
  },

  {
    name: 'drop-ins: by their names, of all folders',
    files: {
      ...exec('ExecStart=/usr/bin/kubelet $A'),
      [DROP('30-c.conf', '/usr/lib/systemd/system')]: service('Environment=A=lib'),
      [DROP('20-b.conf')]: service('Environment=A=etc'),
      [DROP('10-a.conf', '/run/systemd/system')]: service('Environment=A=run'),
    },
  },
  {
    name: 'drop-ins: the same name, and a link to nothing',
    files: {
      ...exec('Environment=A=unit', 'ExecStart=/usr/bin/kubelet $A $B'),
      [DROP('10-a.conf', '/usr/lib/systemd/system')]: service('Environment=A=lib'),
      [DROP('10-a.conf')]: service('Environment=B=etc'),
      [DROP('20-b.conf', '/usr/lib/systemd/system')]: service('Environment=A=lib2'),
      [DROP('20-b.conf')]: null,
    },
  },
  {
    name: 'drop-ins: of all services, and in other folders',
    files: {
      ...exec('ExecStart=/usr/bin/kubelet $A $B $C'),
      '/etc/systemd/system/service.d/10-all.conf': service('Environment=A=all'),
      [DROP('20-b.conf', '/usr/local/lib/systemd/system')]: service('Environment=B=local'),
      [DROP('50-c.conf', '/etc/systemd/system.control')]: service('Environment=C=control'),
    },
  },
  { name: 'drop-ins: no .conf', files: { ...exec('ExecStart=/usr/bin/kubelet x$A'), [DROP('10-a')]: service('Environment=A=1') } },
  {
    name: 'a unit in /etc takes the place of the one in /usr',
    files: { ...exec('ExecStart=/usr/bin/kubelet lib'), '/etc/systemd/system/kubelet.service': service('ExecStart=/usr/bin/kubelet etc') },
  },
  { name: 'a unit that is masked', files: { ...exec('ExecStart=/usr/bin/kubelet lib'), '/etc/systemd/system/kubelet.service': null } },
  {
    name: 'other sections, keys and lines',
    files: {
      [UNIT]:
        '[Unit]\nExecStart=/usr/bin/kubelet no\n[X-Mine]\nExecStart=/usr/bin/kubelet no\n[Service]\nexecstart=/usr/bin/kubelet no\nnonsense\n  ExecStart  =  /usr/bin/kubelet yes  \n',
    },
  },
  {
    name: 'a byte order mark and lines of another machine',
    files: { [UNIT]: '\ufeff[Service]\r\nExecStart=/usr/bin/kubelet a \\\r\n  b\r\n' },
  },
];
