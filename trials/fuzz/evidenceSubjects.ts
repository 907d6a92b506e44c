import { createVerifier, parseCollateral, parsePem, parseQuote, parseReport } from '@countersign/attestation'
import { createSimulator } from '@countersign/attestation/simulator'
import type { Subject } from './subject.ts'

const AT = new Date('2026-06-15T00:00:00Z')

/** Evidence signed by vendors and their firmware. */
export function createEvidenceSubjects(): Subject[] {
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
      // Expired lists are parsed like others, and no mutation of one may be accepted.
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
