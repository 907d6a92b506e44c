import { rootSecretPaths } from '@countersign/protocol'
import {
  type CallPeer,
  PeerError,
  type TransferRequest,
  type TransferResponse,
  transferRequest,
} from '@countersign/root-secret'
import { parseRequest } from '../src/parseRequest.ts'
import { createDonor, type Donor } from '../src/rootSecret/donor.ts'
import { join } from '../src/rootSecret/join.ts'
import { createTestPeer, type TestPeer as Peer } from './peers.ts'

export type Change = {
  request?(request: TransferRequest): unknown
  response?(response: TransferResponse): unknown | Promise<unknown>
}

/** Enclaves at addresses on a simulated network. A man in the middle can change messages. */
export function connect(donors: Record<string, Donor>, change: Change = {}): CallPeer & { calls: string[] } {
  const calls: string[] = []
  const callPeer = async (url: string, path: string, body: unknown) => {
    calls.push(`${url}${path}`)
    const donor = donors[url]
    if (donor === undefined) throw new PeerError('peer_unreachable', 'no response from the enclave')
    try {
      if (path === rootSecretPaths.challenge) return donor.challenge()
      const request = JSON.parse(JSON.stringify(change.request?.(body as TransferRequest) ?? body))
      const response = await donor.transfer(parseRequest(transferRequest, request))
      return (await change.response?.(response)) ?? response
    } catch (error) {
      const { code, status = 403 } = error as { code: string; status?: number }
      throw new PeerError('peer_refused', 'the enclave refused', { details: code, status })
    }
  }
  return Object.assign(callPeer, { calls })
}

export async function createGiving(options: Parameters<typeof createTestPeer>[0] = {}) {
  const peer = createTestPeer(options)
  await peer.holder.generate()
  return { peer, donor: createDonor(peer) }
}

export const joinFrom = (peer: Peer, donor: Donor, change: Change = {}) =>
  join({ ...peer, callPeer: connect({ a: donor }, change) }, ['a'])

export const readReasons = ({ lines }: Peer) => lines.map((line) => JSON.parse(line).reason).filter(Boolean)

/** The joiner's part of the protocol, step by step. */
export async function transferDirectly(
  donor: Donor,
  peer: Peer,
  change: (request: TransferRequest) => unknown = (r) => r,
) {
  let captured: TransferRequest | undefined
  const capture: Donor = {
    challenge: () => donor.challenge(),
    transfer: async (request) => {
      captured = request
      throw Object.assign(new Error('captured'), { code: 'captured' })
    },
  }
  await joinFrom(peer, capture).catch(() => {})
  if (captured === undefined) throw new Error('nothing was sent')
  return donor.transfer(change(captured) as TransferRequest)
}
