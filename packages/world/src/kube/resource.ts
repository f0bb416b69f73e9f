/** One of the kinds of objects that the API server keeps. */
export interface Resource {
  name: string;
  kind: string;
  apiVersion: string;
  namespaced: boolean;
}
