/** Opens the folder of a control plane, says so or why not, and closes it: `opener.ts DATA`. */
import { openFolder } from '../../src/boot/plane/folder.ts';

const [data = ''] = process.argv.slice(2);
const none = { path: '', version: '1.36.2' };
try {
  using folder = await openFolder(data, { etcd: { ...none, version: '3.5.30' }, 'kube-apiserver': none });
  folder.remove();
  process.stdout.write('opened\n');
} catch (error) {
  process.stdout.write(`${error instanceof Error ? error.message : String(error)}\n`);
}
