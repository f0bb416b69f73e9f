/** Images that a runtime has built in: no registry is asked for them, so they neither wait for nor count as pulls. */

/** Which images of the runtime at an endpoint are: docs/embedded-runtime.md. */
export function builtInto(endpoint: string): (image: string) => boolean {
  if (endpoint === 'embedded://process') return () => true;
  if (endpoint === 'embedded://oci') return (image) => image.startsWith('actorlet.dev/');
  return () => false;
}
