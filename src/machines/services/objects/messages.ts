/** What is asked about objects of the API that pods name, and what is published of services; absent in standalone mode. */

import type { ApiFound } from '../../api/messages.ts';
import type { ApiObject, ObjectResult, ServiceEntry, TokenRequest } from '../../kube/objects.ts';
import type { Pod } from '../../kube/types.ts';
import type { ObjectRef } from '../../pod/volumes/references.ts';
import { type Address, address, type Message, type ReplyTo, viewKey } from '../../supervision/address.ts';

export type ServiceListerEvent = ApiFound;
/** The pod is given so that what it names is kept for as long as it is there. */
export type ObjectsEvent = ApiFound | ObjectQuestion;
interface ObjectQuestion extends Message {
  type: 'object.get';
  pod: Pod;
  ref: ObjectRef;
  replyTo: ReplyTo<ObjectResult<ApiObject>>;
}
interface TokenQuestion extends Message {
  type: 'token.get';
  request: TokenRequest;
  replyTo: ReplyTo<ObjectResult<{ token: string }>>;
}
/** The pod is gone, and its tokens with it. */
interface TokenForget extends Message {
  type: 'token.forget';
  uid: string;
}
export type TokensEvent = TokenQuestion | TokenForget;

/** Published once a complete list was received, and whenever it changed. */
export type ServicesView = readonly ServiceEntry[];

export const objectsAddr = {
  objects: address<ObjectsEvent>('node/services/objects'),
  tokens: address<TokensEvent>('node/services/tokens'),
  serviceLister: address<ServiceListerEvent>('node/services/serviceLister'),
} as const satisfies Record<string, Address<never>>;

/** How long the cluster wants answers about objects to be kept under `Cache`, ms; from an annotation of the node. */
export const objectTtlView = viewKey<number>('apiObjectTtlMs');
export const servicesView = viewKey<ServicesView>('apiServices');
