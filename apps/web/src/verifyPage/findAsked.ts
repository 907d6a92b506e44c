import { type FetchBytes, findApi, getProof, type NamedSubject } from '@countersign/verify'
import type { WebConfig } from '../config.ts'
import type { Asked } from './asked.ts'

/** What a pasted name asks for. A proof is fetched here, since the page shows what the service says of it. */
export async function findAsked(
  deps: { fetchBytes: FetchBytes },
  config: WebConfig,
  pasted: NamedSubject,
): Promise<Asked> {
  if (pasted.kind !== 'proof') return { subject: pasted, apiBaseUrl: config.apiBaseUrl }
  return askProof(deps, { slug: pasted.slug, api: await toApi(deps, config, pasted.origin) })
}

/** A proof as the service tells it now. */
export async function askProof(
  deps: { fetchBytes: FetchBytes },
  { slug, api }: { slug: string; api: string },
): Promise<Asked> {
  const proof = await getProof(deps, { api, slug })
  return { subject: { kind: 'proof', slug, api, proof }, proof, apiBaseUrl: api }
}

/** A link to this app is a link to its service; a link elsewhere leads to another one. */
async function toApi(deps: { fetchBytes: FetchBytes }, config: WebConfig, origin: string | undefined): Promise<string> {
  const isOurs = origin === undefined || origin === window.location.origin
  return isOurs ? config.apiBaseUrl : findApi(deps, origin)
}
