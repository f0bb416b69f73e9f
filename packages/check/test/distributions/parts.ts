/** What the tables of distributions have in common. */
export interface Distribution {
  name: string;
  /** Where its values are said. */
  source: string;
  /** By path. */
  files: Readonly<Record<string, string>>;
  words?: readonly string[];
  /** Flags that the kubelet 1.36.2 refuses. */
  refused?: readonly string[];
  /** Why no node starts with them. */
  error?: string;
  /** Warnings of the check, and notes of what has no effect: how each begins. */
  said: readonly string[];
  /** What it asks for and gets. */
  config: Readonly<Record<string, unknown>>;
}

export const UNIT = '/etc/systemd/system/kubelet.service';
export const DROP = (name: string) => `${UNIT}.d/${name}`;
export const service = (...lines: string[]) => `[Service]\n${lines.join('\n')}\n`;
export const yaml = (text: string) => `kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n${text}`;
export const json = (fields: object) =>
  JSON.stringify({ kind: 'KubeletConfiguration', apiVersion: 'kubelet.config.k8s.io/v1beta1', ...fields });
export const SOCKET = 'unix:///run/containerd/containerd.sock';
/** Of clouds: a token program, whose kubelet gets its client's credentials from it. */
export const EXEC = (command: string) => `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'https://192.0.2.1'}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ${command}, interactiveMode: Never}}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`;
export const TOKEN = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'https://192.0.2.1:6443'}}]
users: [{name: u, user: {token: abcdef.0123456789abcdef}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`;
export const PROVIDERS = `apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
  - name: ecr-credential-provider
    matchImages: ["*.dkr.ecr.*.amazonaws.com"]
    defaultCacheDuration: 12h
    apiVersion: credentialprovider.kubelet.k8s.io/v1
`;
export const PROGRAM = '#!/bin/sh\n';
export const CA = 'CA';
