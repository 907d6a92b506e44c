import { createInterface } from 'node:readline'
import { createVerifier, type TrustedRoot, type Verifier } from '@countersign/attestation'
import { fromHex, ServiceError } from '@countersign/protocol'
import { checkReceipt, parseReceiptCar, type ReceiptFiles } from '@countersign/receipt'
import { mapBlock, type Outcome, type Reader, type Request } from './protocol.ts'

/* The TypeScript verifier behind the line protocol (README.md). */

/** Checks one receipt. */
export async function checkRequest(request: Omit<Request, 'id'>): Promise<Outcome> {
  const { cid, opening, anchor, reader } = request
  const { revocations, chain, reevaluation, ...rest } = reader
  let files: ReceiptFiles
  try {
    files = readFiles(request)
  } catch (error) {
    if (error instanceof ServiceError) return { error: error.code }
    throw error
  }
  const { verdict, steps } = await checkReceipt(files.bytes, files.collateral, {
    ...rest,
    verifier: getVerifier(reader.roots),
    blocks: files.blocks,
    cid,
    opening: opening === undefined ? undefined : fromBase64(opening),
    anchor: anchor && { block: undefined, ...mapBlock(anchor, fromBase64) },
    revocations: revocations && { list: fromHex(revocations.list), at: new Date(revocations.at) },
    reevaluation: reevaluation && {
      at: new Date(reevaluation.at),
      collateral: fromBase64(reevaluation.collateral),
    },
    chain: chain && toChain(chain),
  })
  const first = steps.find(({ status }) => status === 'fail')
  return {
    verdict,
    steps: Object.fromEntries(steps.map(({ id, status }) => [id, status])),
    // The only step with codes in the specification.
    ...(first?.id === 'vault-budget' && first.code !== undefined && { codes: { [first.id]: first.code } }),
  }
}

function readFiles({ receipt = '', blocks = {}, car }: Omit<Request, 'id'>): ReceiptFiles {
  if (car !== undefined) return parseReceiptCar(fromBase64(car))
  const { collateral, ...others } = Object.fromEntries(
    Object.entries(blocks).map(([role, block]) => [role, fromBase64(block)]),
  )
  return { bytes: fromBase64(receipt), ...(collateral && { collateral }), blocks: others }
}

function toChain({ events, transaction }: NonNullable<Reader['chain']>) {
  return {
    getLogs: async () => events.map((event) => ({ ...event, blockTime: new Date(event.blockTime) })),
    getTransactionState: async () => transaction,
  }
}

const verifiers = new Map<string, Verifier>()

/** A verifier remembers the collateral and certificates that it checked. */
function getVerifier(roots: readonly TrustedRoot[]): Verifier {
  const key = JSON.stringify(roots)
  const verifier = verifiers.get(key) ?? createVerifier({ roots })
  verifiers.set(key, verifier)
  return verifier
}

function fromBase64(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'base64'))
}

if (import.meta.main) {
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, ...request } = JSON.parse(line) as Request
    console.log(JSON.stringify({ id, ...(await checkRequest(request)) }))
  }
}
