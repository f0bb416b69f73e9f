/** The controller under test: a Website becomes a Deployment of as many replicas. It stands for yours. */
import { AppsV1Api, CustomObjectsApi, KubeConfig, type V1Deployment } from '@kubernetes/client-node';

interface Website {
  metadata: { name: string; namespace: string; uid: string };
  spec: { replicas: number };
}

const EVERY_MS = 200;

export interface Controller {
  stop(): Promise<void>;
}

export function startController(kubeconfig: string): Controller {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  const websites = config.makeApiClient(CustomObjectsApi);
  const apps = config.makeApiClient(AppsV1Api);
  let stopped = false;

  async function reconcile(): Promise<void> {
    const { items } = (await websites.listClusterCustomObject({ group: 'example.com', version: 'v1', plural: 'websites' })) as {
      items: Website[];
    };
    for (const website of items) {
      const { name, namespace } = website.metadata;
      const wanted = deploymentOf(website);
      const [present] = (await apps.listNamespacedDeployment({ namespace, fieldSelector: `metadata.name=${name}` })).items;
      if (present === undefined) await apps.createNamespacedDeployment({ namespace, body: wanted });
      else if (present.spec?.replicas !== website.spec.replicas) {
        await apps.replaceNamespacedDeployment({
          name,
          namespace,
          body: { ...wanted, metadata: { ...present.metadata, ...wanted.metadata } },
        });
      }
    }
  }

  async function run(): Promise<void> {
    while (!stopped) {
      await reconcile().catch((error: unknown) => console.error(`tried again: ${String(error)}`));
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }

  const running = run();
  return {
    async stop() {
      stopped = true;
      await running;
    },
  };
}

function deploymentOf({ metadata: { name, uid }, spec: { replicas } }: Website): V1Deployment {
  const labels = { website: name };
  return {
    metadata: { name, ownerReferences: [{ apiVersion: 'example.com/v1', kind: 'Website', name, uid }] },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'web' }] } },
    },
  };
}
