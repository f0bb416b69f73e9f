/**
 * The Deployment of the tests of kubeadm's days: each pod serves its own name, and is Ready while it does. Pods without a request get the
 * least of a busy processor, and answer no probe in time.
 */

export function webDeployment(o: { replicas: number; image: string; probe: { periodSeconds: number; timeoutSeconds: number } }): object {
  const command = ['sh', '-c', 'mkdir -p /w; hostname >/w/index.html; exec httpd -f -p 8080 -h /w'];
  const readinessProbe = { httpGet: { path: '/', port: 8080 }, ...o.probe };
  const resources = { requests: { cpu: '10m' } };
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } },
    spec: {
      replicas: o.replicas,
      selector: { matchLabels: { app: 'web' } },
      template: {
        metadata: { labels: { app: 'web' } },
        spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'web', image: o.image, command, readinessProbe, resources }] },
      },
    },
  };
}
