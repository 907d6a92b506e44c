import { slug } from '../issues.fake.ts'
import { apiBaseUrl, type FakeNetwork, html, json } from '../network.fake.ts'
import { honest, other } from './honest.fake.ts'
import { accepted, type SubjectRow } from './subjectRow.fake.ts'

const appUrl = 'https://app.test'
const config = () => json({ apiBaseUrl, chainId: 31337 })

/** A proof link of a web app: its `/config.json` answers so, and everything else with its page. */
function app(
  name: string,
  category: SubjectRow['category'],
  answer: () => Response,
  rest: Pick<SubjectRow, 'expected'> & { spoil?: (network: FakeNetwork) => void },
): SubjectRow {
  const spoil = (network: FakeNetwork) => {
    rest.spoil?.(network)
    network.routes.push([`${appUrl}/config.json`, answer], [appUrl, html])
  }
  return { ...rest, name, category, subject: `${appUrl}/proof/${slug}`, hasSources: false, spoil }
}

/** A gateway that gives each CID a name of its own, with these bytes of the receipt. */
function named(bytes: Uint8Array<ArrayBuffer>) {
  return ({ routes }: FakeNetwork) => {
    const { collateral } = honest.receipt.signer
    routes.push(
      [`https://${honest.cid}.ipfs.links.test/?format=raw`, () => new Response(bytes)],
      [`https://${collateral}.ipfs.links.test/?format=raw`, () => new Response(honest.collateral)],
      ['https://links.test/', () => new Response(null, { status: 301, headers: { location: 'https://x.test/' } })],
    )
  }
}

/** Links, by a reader who names no gateway and no service beside them. */
export const linkRows: readonly SubjectRow[] = [
  app('the link of a web app', 'good', config, { expected: accepted }),
  app('the link of a web app whose service knows no such proof', 'unreachable', config, {
    spoil: ({ routes }) => void routes.push([`${apiBaseUrl}/proof/`, () => json({ code: 'proof_not_found' }, 404)]),
    expected: { error: 'proof_not_found' },
  }),
  app('the link of a web app without a configuration', 'unreachable', html, { expected: { error: 'fetch_failed' } }),
  app(
    'the link of a web app whose configuration redirects',
    'redirect',
    () => new Response(null, { status: 302, headers: { location: `${apiBaseUrl}/config.json` } }),
    { expected: { error: 'fetch_failed' } },
  ),
  app('the link of a web app whose configuration has no end', 'oversized', () => new Response('x'.repeat(3_000_000)), {
    expected: { error: 'fetch_failed' },
  }),
  {
    name: 'a link of a gateway',
    category: 'good',
    subject: `https://links.test/ipfs/${honest.cid}`,
    hasSources: false,
    expected: accepted,
  },
  {
    name: 'a link of a gateway with names',
    category: 'good',
    subject: `https://${honest.cid}.ipfs.links.test/`,
    hasSources: false,
    spoil: named(honest.bytes),
    expected: accepted,
  },
  {
    name: 'a link of a gateway with names that lies',
    category: 'lying gateway',
    subject: `https://${honest.cid}.ipfs.links.test/`,
    hasSources: false,
    spoil: named(other.bytes),
    expected: { error: 'fetch_failed' },
  },
]
