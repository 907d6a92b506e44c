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
import { createLogTargets } from './logTargets.ts'
import { createReceiptTargets, createReceiptV2Targets, createVaultTargets } from './receiptTargets.ts'
import type { Target } from './sweep.ts'

const AT = new Date('2026-06-15T00:00:00Z')

/** All public byte strings: quotes, collateral, reports with their chains, and receipts. */
export async function createTargets(): Promise<Target[]> {
  return [
    ...createEvidenceTargets(),
    ...(await createReceiptTargets(AT)),
    ...(await createReceiptV2Targets(AT)),
    ...(await createVaultTargets()),
    ...(await createLogTargets(AT)),
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
    {
      name: 'report revocations',
      genuine: simulator.revocations({ revoked: ['asvk'] }),
      accept: (list) => isAccepted(async () => void (await verifier.verifyRevocations({ certificates, list, at: AT }))),
    },
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

/** Bytes that aren't UTF-8 become an empty text, which the verifier rejects. */
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

/** Replaces the chain in a quote with one of the same length. */
function withPckChain(quote: Uint8Array, chain: string): Uint8Array {
  const changed = Buffer.from(quote)
  changed.write(chain, changed.indexOf(BEGIN), 'latin1')
  return changed
}
