/** `actorctl pods` where there is nothing to show. */
import { expect, it } from 'vitest';
import { renderPods } from '../src/render.ts';

it('says in which namespace there is no pod', () => {
  expect(renderPods([], { namespace: 'shop' })).toEqual(['No pods in namespace shop on this node.']);
  expect(renderPods([])).toEqual(['No pods on this node.']);
});
