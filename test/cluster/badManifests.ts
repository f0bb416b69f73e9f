/** Thirty manifests of static pods, written as badly as people write them. The kubelet runs each of them. */
import { IMAGE } from '../e2e/manifests.ts';

const RUN = `command: [sh, -c, 'trap "exit 0" TERM; while :; do sleep 3600 & wait; done']`;
const head = (name: string) => `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\n`;
const container = (more = '') => `  containers:\n  - name: main\n    image: ${IMAGE}\n    ${RUN}\n${more}`;
const pod = (name: string, o: { spec?: string; container?: string; metadata?: string } = {}) =>
  `${head(name)}${o.metadata ?? ''}spec:\n  terminationGracePeriodSeconds: 1\n${o.spec ?? ''}${container(o.container)}`;

const WRITTEN: Readonly<Record<string, (name: string) => string>> = {
  'begins with a mark': (n) => `---\n${pod(n)}`,
  'ends with a mark': (n) => `${pod(n)}---\n`,
  'two documents': (n) => `${pod(n)}---\n${pod('second')}`,
  'broken behind its end': (n) => `${pod(n)}---\n}{ : nonsense\n\t-`,
  'a comment and a mark': (n) => `# by hand\n\n---\n${pod(n)}...\n`,
  'YAML 1.1 booleans': (n) => pod(n, { spec: '  hostNetwork: y\n  hostPID: No\n  enableServiceLinks: off\n' }),
  'an unknown field of the pod': (n) => `restart: always\n${pod(n)}`,
  'an unknown field of the spec': (n) => pod(n, { spec: '  replicas: 1\n' }),
  'a field in the wrong place': (n) => pod(n, { container: '    hostNetwork: true\n    restartPolcy: Always\n' }),
  'another case': (n) => pod(n, { spec: '  hostnetwork: true\n', container: '    imagepullpolicy: Never\n' }),
  'kind in another case': (n) => pod(n).replace('kind:', 'Kind:').replace('apiVersion:', 'apiversion:'),
  'a field twice': (n) => pod(n, { spec: '  priority: 1\n  priority: 2\n' }),
  'labels twice': (n) => pod(n, { metadata: '  labels: {a: b}\n  labels: {c: d}\n' }),
  'empty lists and maps': (n) =>
    pod(n, { spec: '  volumes:\n  tolerations: []\n  nodeSelector: {}\n', container: '    env:\n    ports:\n' }),
  'empty elements': (n) => pod(n, { container: '    args:\n    - a\n    -\n' }),
  'null in a map': (n) => pod(n, { metadata: '  annotations: {a: , b: ~}\n' }),
  'an octal number': (n) =>
    pod(n, {
      spec: '  volumes:\n  - name: v\n    downwardAPI:\n      defaultMode: 0o644\n      items: [{path: name, mode: 0400, fieldRef: {fieldPath: metadata.name}}]\n',
      container: '    volumeMounts: [{name: v, mountPath: about}]\n',
    }),
  'a whole number with a point': (n) => pod(n, { spec: '  activeDeadlineSeconds: 1e6\n  priority: 5.0\n' }),
  'amounts of many forms': (n) =>
    pod(n, { container: '    resources: {requests: {cpu: 0.01, memory: 1e6}, limits: {memory: " 64Mi "}}\n' }),
  'anchors and a merge': (n) =>
    `x-common: &c\n  image: ${IMAGE}\n${head(n)}spec:\n  terminationGracePeriodSeconds: 1\n  containers:\n  - <<: *c\n    name: main\n    ${RUN}\n`,
  'Windows line ends': (n) => pod(n).replaceAll('\n', '\r\n'),
  'a byte order mark': (n) => `\ufeff${pod(n)}`,
  'a wide indentation': (n) => pod(n).replaceAll(/^ /gm, '     '),
  'brackets over lines': (n) => pod(n, { spec: '  tolerations: [\n {operator: Exists},\n  ]\n' }),
  'tabs between': (n) => pod(n).replaceAll(': ', ':\t'),
  'a negative grace': (n) => pod(n).replace('Seconds: 1', 'Seconds: -1'),
  'a status of an export': (n) =>
    `${pod(n, { metadata: '  creationTimestamp: null\n  resourceVersion: "7"\n  uid: ""\n  managedFields: []\n' })}status:\n  phase: Running\n`,
  'a volume without a source': (n) =>
    pod(n, { spec: '  volumes: [{name: v}]\n', container: '    volumeMounts: [{name: v, mountPath: /v}]\n' }),
  'JSON with a field twice': (n) =>
    `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "${n}"}, "spec": {"hostNetwork": false}, "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "${IMAGE}", "command": ["sleep", "3600"], "unknown": 1}]}}`,
  'text behind the name of a file': (n) => pod(n, { metadata: '  generateName: other-\n  selfLink: /a\n  ownerReferences: []\n' }),
};

/** By the name of the pod. */
export const BAD_MANIFESTS: ReadonlyMap<string, { what: string; text: string }> = new Map(
  Object.entries(WRITTEN).map(([what, write], i) => {
    const name = `bad-${i}`;
    return [name, { what, text: write(name) }];
  }),
);
