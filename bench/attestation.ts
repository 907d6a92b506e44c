import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import {
  type Collateral,
  createVerifier,
  parseCollateral,
  parsePem,
  type TrustedRoot,
  vendorRoots,
} from '@countersign/attestation'
import { createSimulator } from '@countersign/attestation/simulator'
import { QuoteVerifier } from '@phala/dcap-qvl'
import initWasm, { js_verify } from '@phala/dcap-qvl-web'
import { type Candidate, takeTurns } from './takeTurns.ts'

type Evidence = { label: string; quote: Uint8Array; collateral: Collateral; at: Date; roots: readonly TrustedRoot[] }

/** This verifier, cold and warm, beside the best-known ones in JavaScript and WebAssembly, on the same quote. */
export async function benchAttestation({ fixtures, rounds }: { fixtures: string; rounds: number }) {
  const evidence = await readEvidence(fixtures)
  console.log(`quote: ${evidence.label}; ${rounds} rounds; Node ${process.version} on ${process.arch}`)
  const others = await createOthers(evidence)
  const warm = createVerifier(evidence)
  const measurements = await takeTurns(
    [
      { name: 'countersign, warm', run: () => warm.verifyQuote(evidence) },
      { name: 'countersign, cold', run: () => createVerifier(evidence).verifyQuote(evidence) },
      ...others,
    ],
    rounds,
  )
  const fastestOther = Math.min(
    ...measurements.filter(({ name }) => others.some((other) => other.name === name)).map(({ medianMs }) => medianMs),
  )
  for (const { name, medianMs } of measurements) {
    const ratio = (fastestOther / medianMs).toFixed(2)
    console.log(`${name.padEnd(28)} ${medianMs.toFixed(3).padStart(9)} ms   ${ratio.padStart(7)} × the fastest other`)
  }
}

/** The real quote that the WebAssembly verifier can judge too (it has Intel's root built in), else a simulated one. */
async function readEvidence(fixtures: string): Promise<Evidence> {
  const folder = join(fixtures, 'tdx/phala-dcap-qvl')
  if (existsSync(folder)) {
    return {
      label: 'real TDX v4',
      quote: await readFile(join(folder, 'tdx_quote')),
      collateral: parseCollateral((await readFile(join(folder, 'tdx_quote_collateral.json'), 'utf8')).trim()),
      at: new Date('2025-06-25T00:00:00Z'),
      roots: vendorRoots,
    }
  }
  const at = new Date('2026-06-15T00:00:00Z')
  const simulator = createSimulator({ at })
  return {
    label: 'simulated TDX v4',
    quote: simulator.quote({ reportData: new Uint8Array(64) }),
    collateral: simulator.collateral(),
    at,
    roots: [simulator.intelRoot],
  }
}

async function createOthers({ label, quote, collateral, at, roots }: Evidence): Promise<Candidate[]> {
  const seconds = Math.floor(at.getTime() / 1000)
  const isReal = roots === vendorRoots
  if (!isReal) {
    console.log(`@phala/dcap-qvl-web cannot verify a ${label} quote (its root is built in) and is left out`)
    const verifier = new QuoteVerifier(Buffer.from(parsePem(collateral.pck_crl_issuer_chain)[1] ?? []))
    return [{ name: '@phala/dcap-qvl 0.3.9', run: () => verifier.verify(quote, collateral, seconds) }]
  }
  const wasm = createRequire(import.meta.url).resolve('@phala/dcap-qvl-web/dcap-qvl-web_bg.wasm')
  await initWasm({ module_or_path: await readFile(wasm) })
  const verifier = QuoteVerifier.newProd()
  return [
    { name: '@phala/dcap-qvl 0.3.9', run: () => verifier.verify(quote, collateral, seconds) },
    { name: '@phala/dcap-qvl-web 0.3.3', run: () => js_verify(quote, collateral, BigInt(seconds)) },
  ]
}
