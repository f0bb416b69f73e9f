/**
 * The JSON Schema files for editors: as the tables say, and of the same opinion as the daemon. A schema may accept what
 * the daemon refuses (rules about several values); it refuses nothing that the daemon takes.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FAULT_KIND_NAMES, FAULT_KINDS } from '@actorlet/faults/src/kinds.ts';
import { decodeScenario } from '@actorlet/faults/src/read/decode.ts';
import { BEYOND_SHAPE, HEAD, NEEDED, REFUSED } from '@actorlet/faults/test/refused.ts';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { schemaFiles } from '../../scripts/schemas/files.ts';
import { decodeConfigFile } from '../../src/boot/config/decode.ts';
import { applyDefaults } from '../../src/boot/config/merge.ts';
import { runnable } from '../../src/boot/config/runnable.ts';
import { validate as problemsOf } from '../../src/boot/config/validate.ts';
import { defaultKubeletConfiguration, defaultKubeletFlags } from '../../src/machines/config/defaults.ts';
import { createFeatureGates } from '../../src/machines/config/gates.ts';
import { toV1beta1 } from '../../src/machines/config/v1beta1.ts';
import { podFields } from '../../src/machines/pods/admission/supported.ts';
import { decodeManifest } from '../../src/machines/pods/sources/decode.ts';
import { md5Hex } from '../growth/inputs.ts';
import { rotating } from '../rotation.ts';
import { complaintsOf, examples, root, validator, variants } from './rig.ts';

/** Each commit takes one part in so many of the variants: no divisor of how many values a field is given. */
const PARTS = 7;
/** What differs from a document in one place. */
const changed = ({ file, doc }: { file: string; doc: unknown }) => [...variants(doc)].map((variant) => [file, variant] as const);

describe('the files', () => {
  it('are what the tables say: npm run schemas', () => {
    const files = schemaFiles();
    expect(readdirSync(join(root, 'schemas')).sort()).toEqual(Object.keys(files).sort());
    for (const [name, text] of Object.entries(files)) expect(readFileSync(join(root, 'schemas', name), 'utf8'), name).toBe(text);
  });

  it('are named by every example, and accept it', () => {
    const all = examples();
    expect(all.length).toBeGreaterThan(10);
    for (const { file, doc, schema } of all) {
      if (schema === undefined) throw new Error(`${file}: its first line names no schema`);
      expect(complaintsOf(validator(schema), doc), file).toEqual([]);
    }
  });
});

describe('scenario.json', () => {
  const validate = validator('scenario.json');
  const complaints = (text: string) => complaintsOf(validate, parse(`${HEAD}  faults:\n${text}`));

  it('accepts every kind of fault, with each of its actions', () => {
    for (const kind of FAULT_KIND_NAMES) {
      for (const action of FAULT_KINDS[kind].actions ?? [undefined]) {
        const text = `  - {kind: ${kind}${action === undefined ? '' : `, action: ${action}`}${NEEDED[kind] ?? ''}}\n`;
        expect(complaints(text), text).toEqual([]);
      }
    }
  });

  it('refuses what the daemon refuses', () => {
    for (const [what, text] of REFUSED) {
      if (BEYOND_SHAPE.includes(what)) continue;
      expect(complaints(text), what).not.toEqual([]);
    }
  });

  it('refuses nothing that the daemon takes', () => {
    const docs = examples().filter((e) => e.schema === 'scenario.json');
    for (const [file, variant] of rotating('variants of scenarios', docs.flatMap(changed), PARTS)) {
      if (!decodeScenario(stringify(variant), 'simulation').ok) continue;
      expect(complaintsOf(validate, variant), `${file}\n${JSON.stringify(variant)}`).toEqual([]);
    }
  });
});

describe('kubelet-configuration.json', () => {
  const validate = validator('kubelet-configuration.json');
  const takes = (doc: unknown): boolean => {
    const { values, errors, warnings } = decodeConfigFile('/config.yaml', stringify(doc, { version: '1.1' }));
    if (errors.length > 0 || warnings.length > 0) return false;
    const written = applyDefaults(values);
    const { gates, locked, unknown } = createFeatureGates(written.featureGates);
    const { config, warnings: odd } = runnable({ config: written, flags: defaultKubeletFlags(), gates });
    const problems = problemsOf({ flags: defaultKubeletFlags(), config, gates, origins: new Map(), given: new Map() });
    return locked.length + unknown.length + odd.length + problems.length === 0;
  };

  it('refuses what the daemon warns of or refuses', () => {
    for (const [what, text] of Object.entries({
      'an unknown field': 'maxPod: 3',
      'an unknown field of an object': 'logging: {formt: json}',
      'a wrong type': 'maxPods: many',
      'a number for a duration': 'syncFrequency: 60',
      'an unknown word': 'cgroupDriver: systmd',
      'an unknown signal': 'evictionHard: {memory.avail: 1Gi}',
      'an unknown gate': 'featureGates: {NoSuchGate: true}',
      'a locked gate': 'featureGates: {CPUManagerPolicyOptions: false}',
      'a port out of range': 'port: 70000',
      'another version': 'apiVersion: v1',
    })) {
      const doc: unknown = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', ...(parse(text) as object) };
      expect(takes(doc), what).toBe(false);
      expect(complaintsOf(validate, doc), what).not.toEqual([]);
    }
  });

  it('accepts all defaults, as /configz shows them', () => {
    const doc = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', ...toV1beta1(defaultKubeletConfiguration()) };
    expect(complaintsOf(validate, doc)).toEqual([]);
  });

  it('refuses nothing that the daemon takes', () => {
    const defaults = {
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      ...toV1beta1(defaultKubeletConfiguration()),
    };
    const docs = examples().filter((e) => e.schema === 'kubelet-configuration.json');
    let taken = 0;
    const all = [...docs, { file: 'all defaults', doc: defaults }].flatMap(changed);
    for (const [file, variant] of rotating('variants of configurations', all, PARTS)) {
      if (!takes(variant)) continue;
      taken += 1;
      expect(complaintsOf(validate, variant), `${file}\n${JSON.stringify(variant)}`).toEqual([]);
    }
    expect(taken).toBeGreaterThan(300 / PARTS);
  });
});

/** A manifest with many fields, all of which this node honours or ignores. */
const RICH = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}, annotations: {a.b/c: d}}
spec:
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 5
  activeDeadlineSeconds: 60
  dnsPolicy: None
  dnsConfig: {nameservers: [10.0.0.1], searches: [a.b], options: [{name: ndots, value: "5"}]}
  hostAliases: [{ip: 10.0.0.2, hostnames: [db]}]
  nodeSelector: {disk: ssd}
  overhead: {cpu: 10m}
  tolerations: [{key: k, operator: Equal, value: v, effect: NoExecute, tolerationSeconds: 3}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}}
  os: {name: linux}
  securityContext:
    {runAsUser: 1, fsGroup: 2, supplementalGroups: [3], fsGroupChangePolicy: Always, sysctls: [{name: net.core.somaxconn, value: "1"}], seccompProfile: {type: Localhost, localhostProfile: a}}
  resources: {limits: {cpu: 2}, requests: {cpu: 1}}
  volumes:
    - {name: a, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
    - {name: b, hostPath: {path: /tmp, type: Directory}}
    - {name: c, downwardAPI: {items: [{path: x, fieldRef: {fieldPath: metadata.name}}]}}
  initContainers:
    - {name: side, image: i, restartPolicy: Always, startupProbe: {exec: {command: [a]}}}
  containers:
    - name: c
      image: i
      command: [a]
      args: [b]
      imagePullPolicy: Never
      terminationMessagePolicy: File
      ports: [{name: http, containerPort: 80, hostPort: 81, protocol: TCP}]
      env: [{name: A, value: b}, {name: B, valueFrom: {fieldRef: {fieldPath: status.podIP}}}, {name: C, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}]
      resources: {limits: {cpu: 500m, memory: 1Gi, hugepages-2Mi: 2Mi}, requests: {cpu: 0.25}}
      resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]
      volumeMounts: [{name: a, mountPath: /a, mountPropagation: None, subPath: x, readOnly: true, recursiveReadOnly: IfPossible}]
      livenessProbe: {httpGet: {path: /, port: http, scheme: HTTPS, httpHeaders: [{name: A, value: b}]}, periodSeconds: 3, terminationGracePeriodSeconds: 3}
      readinessProbe: {grpc: {port: 9, service: s}, successThreshold: 2}
      startupProbe: {tcpSocket: {port: 80}, failureThreshold: 3}
      lifecycle: {preStop: {sleep: {seconds: 1}}, stopSignal: SIGINT}
      securityContext: {runAsUser: 1, capabilities: {add: [NET_ADMIN]}, procMount: Default, readOnlyRootFilesystem: true}
      stdin: true
`;

describe('pod.json', () => {
  const validate = validator('pod.json');
  const opts = { source: 'file', where: '/m.yaml', nodeName: 'n', md5Hex, preventApiReferences: false } as const;
  const takes = (doc: unknown): boolean => {
    const decoded = decodeManifest(doc, opts);
    if (!decoded.ok || decoded.notes.length > 0) return false;
    const fields = decoded.pods.map((pod) => podFields(pod, { podGroups: true, extendedResources: true }));
    // An editor is there for authors: it complains of what this node would leave alone, or takes for something else.
    return fields.every(({ refused, leftAlone }) => refused.length + leftAlone.length === 0);
  };
  const rich = parse(RICH) as { spec: { containers: object[] } };

  it('accepts what the daemon takes', () => {
    expect(takes(rich)).toBe(true);
    expect(complaintsOf(validate, rich)).toEqual([]);
  });

  it('refuses what the daemon refuses, with the reason where there is one', () => {
    const [container] = rich.spec.containers;
    const withContainer = (fields: object): unknown => ({ ...rich, spec: { ...rich.spec, containers: [{ ...container, ...fields }] } });
    for (const [what, doc] of Object.entries({
      'an unknown field': { ...rich, spec: { ...rich.spec, restartPolcy: 'Never' } },
      'an unknown field of the pod': { ...rich, sepc: {} },
      'an unknown field of a container': withContainer({ comand: ['a'] }),
      'a wrong type': withContainer({ command: 'a' }),
      'a number for a text': withContainer({ env: [{ name: 'A', value: 1 }] }),
      'an unknown word': { ...rich, spec: { ...rich.spec, restartPolicy: 'Sometimes' } },
      'no image': withContainer({ image: undefined }),
      'a port out of range': withContainer({ ports: [{ containerPort: 70_000 }] }),
      'a strange amount': withContainer({ resources: { limits: { cpu: 'much' } } }),
      'objects of an API server': withContainer({ envFrom: [{ configMapRef: { name: 'c' } }] }),
      'a kind of volume without a plugin': {
        ...rich,
        spec: { ...rich.spec, volumes: [{ name: 'a', quobyte: { registry: 's', volume: 'x' } }] },
      },
      'another system': { ...rich, spec: { ...rich.spec, os: { name: 'windows' } } },
      'another kind': { ...rich, kind: 'Deployment' },
    })) {
      const plain: unknown = JSON.parse(JSON.stringify(doc));
      expect(takes(plain), what).toBe(false);
      expect(complaintsOf(validate, plain), what).not.toEqual([]);
    }
  });

  // Unknown fields of metadata, which the daemon only keeps, and a limit that is no quantity, which it reads as none.
  const STRICTER = [/^\/metadata must NOT have additional properties$/, /^\/spec\/volumes\/0\/emptyDir\/sizeLimit must match pattern/];

  it('refuses nothing that the daemon takes, but two mistakes that it does not see', () => {
    let taken = 0;
    for (const variant of rotating('variants of a pod', [...variants(rich)], PARTS)) {
      if (!takes(variant)) continue;
      taken += 1;
      const found = complaintsOf(validate, variant).filter((c) => !STRICTER.some((known) => known.test(c)));
      expect(found, JSON.stringify(variant)).toEqual([]);
    }
    expect(taken).toBeGreaterThan(500 / PARTS);
  });
});
