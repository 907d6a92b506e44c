import {
  createVerifier,
  PolicyError,
  parseCollateral,
  parsePem,
  parseQuote,
  parseReport,
  QuoteError,
} from '@countersign/attestation'
import { createSimulator } from '@countersign/attestation/simulator'
import fc from 'fast-check'

/** A parser, the kind of input it takes, and genuine inputs to start mutations from. */
type Subject = { name: string; parse(bytes: Uint8Array<ArrayBuffer>): unknown; seeds: Uint8Array[] }

const AT = new Date('2026-06-15T00:00:00Z')

export function createSubjects(): Subject[] {
  const simulator = createSimulator({ at: AT })
  const verifier = createVerifier({ roots: [simulator.intelRoot, simulator.amdRoot] })
  const reportData = new Uint8Array(64)
  const quote = simulator.quote({ reportData })
  const quoteV5 = simulator.quote({ reportData, version: 5 })
  const report = simulator.report({ reportData, version: 5 })
  const collateral = simulator.collateral({ faults: { pckRevoked: true } })
  const certificates = simulator.certificates()
  const bytes = (text: string) => new TextEncoder().encode(text)
  const text = (input: Uint8Array) => new TextDecoder().decode(input)
  const eventLog = bytes(
    JSON.stringify([{ imr: 3, event_type: 0x08000001, digest: '', event: 'a', event_payload: '00' }]),
  )
  return [
    { name: 'parseQuote', parse: parseQuote, seeds: [quote, quoteV5] },
    { name: 'parseReport', parse: parseReport, seeds: [report] },
    {
      name: 'parseCollateral',
      parse: (input) => parseCollateral(text(input)),
      seeds: [bytes(JSON.stringify(collateral))],
    },
    { name: 'parsePem', parse: (input) => parsePem(text(input)), seeds: [bytes(collateral.tcb_info_issuer_chain)] },
    {
      name: 'certificates',
      parse: (ek) => verifier.verifyReport({ report, certificates: { ...certificates, ek }, at: AT }),
      seeds: [certificates.ek, certificates.ask, certificates.ark],
    },
    {
      name: 'revocation lists',
      parse: (crl) =>
        verifier.verifyQuote({
          quote,
          collateral: { ...collateral, pck_crl: Buffer.from(crl).toString('hex') },
          at: AT,
        }),
      seeds: [Buffer.from(collateral.pck_crl, 'hex'), Buffer.from(collateral.root_ca_crl, 'hex')],
    },
    {
      name: 'AMD’s revocation list',
      parse: (list) => verifier.verifyRevocations({ certificates, list, at: AT }),
      // One that is out of date is read just as well, and none of its changes may be accepted.
      seeds: [
        simulator.revocations({ revoked: ['asvk', 'ask'] }),
        simulator.revocations({ faults: { expired: true } }),
      ],
    },
    {
      name: 'TCB info',
      parse: (input) => verifier.verifyQuote({ quote, collateral: { ...collateral, tcb_info: text(input) }, at: AT }),
      seeds: [bytes(collateral.tcb_info)],
    },
    {
      name: 'QE identity',
      parse: (input) =>
        verifier.verifyQuote({ quote, collateral: { ...collateral, qe_identity: text(input) }, at: AT }),
      seeds: [bytes(collateral.qe_identity)],
    },
    {
      name: 'event log',
      parse: (input) =>
        verifier.verifyQuote({ quote, collateral: simulator.collateral(), eventLog: text(input), at: AT }),
      seeds: [eventLog],
    },
  ]
}

/** Random bytes, or genuine ones with some bytes changed, runs removed, repeated or inserted. */
function inputs(seeds: Uint8Array[]): fc.Arbitrary<Uint8Array<ArrayBuffer>> {
  const edit = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    remove: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat(64)),
    insert: fc.oneof(
      { weight: 4, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 1 }) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 64 }) },
    ),
    overwrite: fc.boolean(),
  })
  const mutated = fc
    .tuple(fc.constantFrom(...seeds), fc.array(edit, { minLength: 1, maxLength: 6 }))
    .map(([seed, edits]) => {
      let bytes = Buffer.from(seed)
      for (const { at, remove, insert, overwrite } of edits) {
        const position = Math.floor(at * bytes.length)
        const resume = position + (overwrite ? insert.length : remove)
        bytes = Buffer.concat([bytes.subarray(0, position), insert, bytes.subarray(resume)])
      }
      return new Uint8Array(bytes)
    })
  const random = fc.uint8Array({ maxLength: 2048 }).map((bytes) => new Uint8Array(bytes))
  return fc.oneof({ weight: 3, arbitrary: mutated }, { weight: 1, arbitrary: random })
}

/** Whatever comes in, a parser answers or throws a typed error, and quickly. Throws with a small counterexample otherwise. */
export async function fuzz({ parse, seeds }: Subject, { runs, seed }: { runs: number; seed: number }) {
  const property = fc.asyncProperty(inputs(seeds), async (bytes) => {
    try {
      await parse(bytes)
    } catch (error) {
      if (!(error instanceof QuoteError || error instanceof PolicyError)) throw error
    }
  })
  // No input takes a parser near this long; one that hangs would end the run here as a failure.
  await fc.assert(property, { numRuns: runs, seed, interruptAfterTimeLimit: 600_000, markInterruptAsFailure: true })
}
