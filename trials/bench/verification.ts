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
import { median } from '@countersign/testing/stack'
import { QuoteVerifier } from '@phala/dcap-qvl'
import initWasm, { js_verify } from '@phala/dcap-qvl-web'
import { type Report, type Run, toRow } from './report.ts'

type Evidence = { label: string; quote: Uint8Array; collateral: Collateral; at: Date; roots: readonly TrustedRoot[] }

const SLICE_MS = 150
/** Turns of each for every round that is asked for: they are much shorter than those of other suites. */
const TURNS = 5

/** This verifier, cold and warm, beside the best-known ones in JavaScript and WebAssembly, on the same quote. */
export async function benchVerification({ fixtures, rounds: asked }: Run): Promise<Report> {
  const rounds = asked * TURNS
  const evidence = await readEvidence(fixtures)
  const others = await createOthers(evidence)
  const warm = createVerifier(evidence)
  const measurements = await takeTurns(
    [
      { name: 'countersign, warm (platform and collateral seen before)', run: () => warm.verifyQuote(evidence) },
      {
        name: 'countersign, cold (nothing seen before)',
        run: () => createVerifier(evidence).verifyQuote(evidence),
      },
      ...others,
    ],
    rounds,
  )
  const timesOfOthers = measurements
    .filter(({ name }) => others.some((other) => other.name === name))
    .map(({ medianMs }) => medianMs)
  const fastestOther = Math.min(...timesOfOthers)
  return {
    suite: 'verification',
    title: 'Verifying a quote',
    setting: `The same ${evidence.label} quote for all; median of ${rounds} rounds.`,
    rows: measurements.map(({ name, medianMs }) =>
      toRow(name, medianMs, 'ms', { 'as fast as the fastest other': fastestOther / medianMs }),
    ),
    notes: isReal(evidence)
      ? []
      : ['`@phala/dcap-qvl-web` cannot verify a simulated quote (its root is built in) and is left out.'],
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

function isReal({ roots }: Evidence): boolean {
  return roots === vendorRoots
}

async function createOthers(evidence: Evidence): Promise<Candidate[]> {
  const { quote, collateral, at } = evidence
  const seconds = Math.floor(at.getTime() / 1000)
  const name = '`@phala/dcap-qvl` 0.3.9 (JavaScript)'
  if (!isReal(evidence)) {
    const verifier = new QuoteVerifier(Buffer.from(parsePem(collateral.pck_crl_issuer_chain)[1] ?? []))
    return [{ name, run: () => verifier.verify(quote, collateral, seconds) }]
  }
  const wasm = createRequire(import.meta.url).resolve('@phala/dcap-qvl-web/dcap-qvl-web_bg.wasm')
  await initWasm({ module_or_path: await readFile(wasm) })
  const verifier = QuoteVerifier.newProd()
  return [
    { name, run: () => verifier.verify(quote, collateral, seconds) },
    { name: '`@phala/dcap-qvl-web` 0.3.3 (WebAssembly)', run: () => js_verify(quote, collateral, BigInt(seconds)) },
  ]
}

type Candidate = { name: string; run: () => unknown }

type Measurement = { name: string; medianMs: number }

/**
 * Measures candidates in turns within one run, so that whatever else the machine does disturbs all of them alike, and
 * gives the median over rounds of the time per call of each.
 */
async function takeTurns(candidates: Candidate[], rounds: number): Promise<Measurement[]> {
  const samples = new Map(candidates.map(({ name }) => [name, [] as number[]]))
  for (const { run } of candidates) for (let index = 0; index < 20; index++) await run()
  for (let round = 0; round < rounds; round++) {
    for (const { name, run } of candidates) {
      let calls = 0
      const start = performance.now()
      while (performance.now() - start < SLICE_MS) {
        await run()
        calls += 1
      }
      samples.get(name)?.push((performance.now() - start) / calls)
    }
  }
  return candidates.map(({ name }) => ({ name, medianMs: median(samples.get(name) ?? []) }))
}
