/** A registry on loopback that holds one image and shows it to one user only, or to everybody. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { busyboxParts, sha256 } from './images.ts';

export interface PrivateRegistry {
  /** `127.0.0.1:PORT`. */
  host: string;
  image: string;
  /** Who was let in, request by request; '' without credentials. */
  users: string[];
  stop(): Promise<void>;
}

const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
const LIST = 'application/vnd.docker.distribution.manifest.list.v2+json';

export interface RegistryOptions {
  /** '' lets everybody in. */
  username: string;
  password: string;
  /** Where containerd looks for the configuration of registries. */
  configDir?: string;
  /** Instead of busybox. */
  parts?: { layer: Buffer; more?: readonly Buffer[]; config: Buffer };
  /** Under the tag is a list of images for platforms, with this one for `other` alone. */
  other?: { os: string; architecture: string };
  /** Sees each answer before it is sent; null: no answer ever. */
  tamper?(data: Buffer, path: string): Buffer | null;
}

export async function startRegistry(o: RegistryOptions): Promise<PrivateRegistry> {
  const { layer, more = [], config } = { more: [], ...(o.parts ?? busyboxParts(`private ${Math.random()}`)) };
  const layers = [layer, ...more];
  const blob = (data: Buffer, mediaType: string) => ({ mediaType, size: data.length, digest: `sha256:${sha256(data)}` });
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: blob(config, 'application/vnd.docker.container.image.v1+json'),
      layers: layers.map((data) => blob(data, 'application/vnd.docker.image.rootfs.diff.tar')),
    }),
  );
  const list = Buffer.from(
    JSON.stringify({ schemaVersion: 2, mediaType: LIST, manifests: [{ ...blob(manifest, MANIFEST), platform: o.other }] }),
  );
  const tagged = o.other === undefined ? manifest : list;
  const content = new Map([...layers, config, manifest, list].map((data) => [`sha256:${sha256(data)}`, data]));
  const users: string[] = [];
  const wanted = `Basic ${Buffer.from(`${o.username}:${o.password}`).toString('base64')}`;
  const server = createServer((req, res) => {
    if (o.username !== '' && req.headers.authorization !== wanted) {
      users.push('');
      res.writeHead(401, { 'www-authenticate': 'Basic realm="lab"' }).end();
      return;
    }
    users.push(o.username);
    const reference = /^\/v2\/team\/app\/(?:manifests|blobs)\/(.+)$/.exec(req.url ?? '')?.[1];
    const data = reference === '1' ? tagged : content.get(reference ?? '');
    if (data === undefined) {
      res.writeHead(req.url === '/v2/' ? 200 : 404).end();
      return;
    }
    const sent = o.tamper === undefined ? data : o.tamper(data, req.url ?? '');
    if (sent === null) return;
    const type = data === manifest ? MANIFEST : data === list ? LIST : 'application/octet-stream';
    res.writeHead(200, { 'content-type': type, 'content-length': data.length, 'docker-content-digest': `sha256:${sha256(data)}` });
    res.end(req.method === 'HEAD' ? undefined : sent, () => {
      if (sent.length < data.length) res.destroy();
    });
  });
  await new Promise<void>((listening, failed) => {
    server.once('error', failed);
    server.listen(0, '127.0.0.1', listening);
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  if (o.configDir !== undefined) {
    const dir = join(o.configDir, host);
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, 'hosts.toml'), `server = "http://${host}"\n`);
  }
  return {
    host,
    image: `${host}/team/app:1`,
    users,
    stop: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}
