import {
  assertQuotePolicy,
  assertReportPolicy,
  createVerifier,
  PolicyError,
  parseCollateral,
  parsePem,
  QuoteError,
} from '@countersign/attestation'
import { createSimulator } from '@countersign/attestation/simulator'
import { toCanonicalJson } from '@countersign/protocol'
import { type CheckReceiptOptions, checkReceipt, parseBlock, toCid } from '@countersign/receipt'
import { createReceiptSimulator } from '@countersign/receipt/simulator'

/** One byte string of otherwise genuine evidence, and how to have the whole judged with another in its place. */
export type Target = {
  name: string
  genuine: Uint8Array
  /** Whether the evidence is accepted under the default policy. Anything but a typed refusal is thrown on. */
  accept(bytes: Uint8Array): Promise<boolean>
}

const AT = new Date('2026-06-15T00:00:00Z')

/** Every byte string that a stranger is shown: quotes, collateral, reports with their chains, and receipts. */
export async function createTargets(): Promise<Target[]> {
  return [...createEvidenceTargets(), ...(await createReceiptTargets()), ...(await createReceiptV2Targets())]
}

/**
 * Every block of a receipt of version 2, as it stands and, for the blocks that a release covers, with the blocks above naming the
 * changed one by its new CID: then nothing but signatures can tell.
 */
async function createReceiptV2Targets(): Promise<Target[]> {
  const service = createReceiptSimulator()
  const signing = { kind: 'message' } as const
  const issue = await service.issueV2({ signedAt: AT, treeSize: 3, leafIndex: 1, signing })
  const { bytes, collateral, blocks, anchors, receipt } = issue
  const { roots, mockEntropyKeys } = service
  const verifier = createVerifier({ roots })
  const opening = new TextEncoder().encode(JSON.stringify(issue.opening))
  const options: CheckReceiptOptions = { roots, anchors, mockEntropyKeys, verifier, blocks, opening }
  const release = parseBlock('release', blocks.release)

  type Changes = { bytes?: Uint8Array; collateral?: Uint8Array } & Partial<CheckReceiptOptions>
  async function accept(changes: Changes) {
    const { bytes: receiptBytes = bytes, collateral: block = collateral, ...others } = changes
    return (await checkReceipt(receiptBytes, block, { ...options, ...others })).verdict === 'mock'
  }

  function acceptNamedAnew(name: 'batch' | 'coordinator' | 'collateral', block: Uint8Array) {
    const named = { ...release, [name]: toCid(block) }
    const newRelease = toCanonicalJson(named)
    const signer = { ...receipt.signer, batch: named.batch }
    const newReceipt = toCanonicalJson({ ...receipt, signer, coordinator: { release: toCid(newRelease) } })
    const given = name === 'collateral' ? { collateral: block } : {}
    const newBlocks = { ...blocks, release: newRelease, ...(name === 'collateral' ? {} : { [name]: block }) }
    return accept({ bytes: newReceipt, blocks: newBlocks, ...given })
  }

  const names = ['release', 'batch', 'coordinator'] as const
  return [
    { name: 'receipt v2', genuine: bytes, accept: (candidate) => accept({ bytes: candidate }) },
    { name: 'receipt v2 opening', genuine: opening, accept: (candidate) => accept({ opening: candidate }) },
    { name: 'receipt v2 collateral', genuine: collateral, accept: (candidate) => accept({ collateral: candidate }) },
    ...names.map((name) => ({
      name: `receipt v2 ${name}`,
      genuine: blocks[name],
      accept: (candidate: Uint8Array) => accept({ blocks: { ...blocks, [name]: candidate } }),
    })),
    ...(['batch', 'coordinator', 'collateral'] as const).map((name) => ({
      name: `receipt v2 ${name} named anew`,
      genuine: name === 'collateral' ? collateral : blocks[name],
      accept: (candidate: Uint8Array) => acceptNamedAnew(name, candidate),
    })),
    {
      name: 'receipt v2 release named anew',
      genuine: blocks.release,
      accept: (candidate) => {
        const coordinator = { release: toCid(candidate) }
        const newBlocks = { ...blocks, release: candidate }
        return accept({ bytes: toCanonicalJson({ ...receipt, coordinator }), blocks: newBlocks })
      },
    },
  ]
}

async function createReceiptTargets(): Promise<Target[]> {
  const service = createReceiptSimulator()
  const { bytes, collateral, anchors } = await service.issue({ signedAt: AT, treeSize: 3, leafIndex: 1 })
  const { roots, mockEntropyKeys } = service
  const verifier = createVerifier({ roots })

  async function accept(receipt: Uint8Array, block = collateral as Uint8Array) {
    return (await checkReceipt(receipt, block, { roots, anchors, mockEntropyKeys, verifier })).verdict === 'mock'
  }

  return [
    { name: 'receipt', genuine: bytes, accept: (candidate) => accept(candidate) },
    { name: 'receipt collateral', genuine: collateral, accept: (candidate) => accept(bytes, candidate) },
  ]
}

function createEvidenceTargets(): Target[] {
  const simulator = createSimulator({ at: AT })
  const verifier = createVerifier({ roots: [simulator.intelRoot, simulator.amdRoot] })
  const reportData = Uint8Array.from({ length: 64 }, (_, index) => index)
  const quotes = {
    'quote v4': simulator.quote({ reportData }),
    'quote v4 with padding': simulator.quote({ reportData, trailing: new Uint8Array(70) }),
    'quote v5': simulator.quote({ reportData, version: 5 }),
  }
  const quote = quotes['quote v4']
  const collateral = simulator.collateral()
  const certificates = simulator.certificates()
  const report = simulator.report({ reportData })

  function acceptQuote(candidate: Uint8Array, json = JSON.stringify(collateral)) {
    return isAccepted(async () =>
      assertQuotePolicy(await verifier.verifyQuote({ quote: candidate, collateral: parseCollateral(json), at: AT })),
    )
  }

  function acceptReport(candidate: Uint8Array, chain = certificates) {
    return isAccepted(async () =>
      assertReportPolicy(await verifier.verifyReport({ report: candidate, certificates: chain, at: AT })),
    )
  }

  const withMember = (name: keyof typeof collateral, value: string) => JSON.stringify({ ...collateral, [name]: value })
  return [
    ...Object.entries(quotes).map(([name, genuine]) => ({
      name,
      genuine,
      accept: (bytes: Uint8Array) => acceptQuote(bytes),
    })),
    {
      name: 'collateral JSON',
      genuine: new TextEncoder().encode(JSON.stringify(collateral)),
      accept: async (bytes) => acceptQuote(quote, decodeUtf8(bytes)),
    },
    ...(['root_ca_crl', 'pck_crl'] as const).map((name) => ({
      name,
      genuine: new Uint8Array(Buffer.from(collateral[name], 'hex')),
      accept: (bytes: Uint8Array) => acceptQuote(quote, withMember(name, Buffer.from(bytes).toString('hex'))),
    })),
    ...(['pck_crl_issuer_chain', 'tcb_info_issuer_chain', 'qe_identity_issuer_chain'] as const).flatMap((name) => {
      const chain = parsePem(collateral[name])
      return chain.map((genuine, index) => ({
        name: `${name}[${index}]`,
        genuine,
        accept: (bytes: Uint8Array) => acceptQuote(quote, withMember(name, toPem(chain.with(index, toPlain(bytes))))),
      }))
    }),
    ...parsePem(pckChainOf(quote)).map((genuine, index, chain) => ({
      name: `PCK chain[${index}]`,
      genuine,
      accept: (bytes: Uint8Array) => acceptQuote(withPckChain(quote, toPem(chain.with(index, toPlain(bytes))))),
    })),
    { name: 'report', genuine: report, accept: (bytes) => acceptReport(bytes) },
    ...(['ek', 'ask', 'ark'] as const).map((name) => ({
      name: `report ${name}`,
      genuine: certificates[name],
      accept: (bytes: Uint8Array) => acceptReport(report, { ...certificates, [name]: bytes }),
    })),
  ]
}

async function isAccepted(verify: () => Promise<void>): Promise<boolean> {
  try {
    await verify()
    return true
  } catch (error) {
    if (error instanceof QuoteError || error instanceof PolicyError) return false
    throw error
  }
}

/** Bytes that are not UTF-8 can be no JSON text; said as the verifier says it. */
function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return ''
  }
}

function toPlain(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes)
}

function toPem(chain: Uint8Array[]): string {
  return chain
    .map((der) => {
      const lines = Buffer.from(der)
        .toString('base64')
        .replace(/.{64}(?=.)/g, '$&\n')
      return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
    })
    .join('')
}

const BEGIN = '-----BEGIN CERTIFICATE-----'

function pckChainOf(quote: Uint8Array): string {
  const text = Buffer.from(quote).toString('latin1')
  return text.slice(text.indexOf(BEGIN), text.lastIndexOf('-----\n') + 6)
}

/** Puts another chain of the same length into a quote; a mutated certificate keeps its length. */
function withPckChain(quote: Uint8Array, chain: string): Uint8Array {
  const changed = Buffer.from(quote)
  changed.write(chain, changed.indexOf(BEGIN), 'latin1')
  return changed
}
